//! A network in virtual time: links, queues, loss, topologies.
//!
//! A [`Link`] is one direction with a rate, a delay, a queue and everything that goes wrong on the way; it knows no clock and is driven
//! by whoever owns it, in a simulation as well as in real time. A [`Network`] joins [`Endpoint`]s by links and runs them to a deadline.
//! All chance comes from a seed: the same seed gives the same run.

mod agenda;
mod config;
mod discipline;
mod link;
mod network;
mod policer;
mod rng;

pub use config::{Change, LinkConfig, LossModel, LossState, Reorder};
pub use discipline::{CoDel, Discipline, Red};
pub use link::{Delivered, Link, LinkStats, Verdict};
pub use network::{Endpoint, EndpointId, LinkId, Network, Parcel, Transmit};
pub use policer::Policer;
pub use rng::Rng;
