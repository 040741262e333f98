//! A network in virtual time: links, queues, loss, topologies, and TCP to share them with.
//!
//! A [`Link`] is one direction with a rate, a delay, a queue and everything that goes wrong on the way; it knows no clock and is driven
//! by whoever owns it, in a simulation as well as in real time. A [`Network`] joins [`Endpoint`]s by links and runs them to a deadline;
//! a [`Topology`] lays the links. [`Tcp`] is a model of TCP, [`Cbr`] a constant flow. A [`Plan`] says all that as data, with what must hold at the end.
//! All chance comes from a seed: the same seed gives the same run.
//!
//! ```
//! use std::borrow::Cow;
//! use std::time::Duration;
//!
//! use haul_sim::{Check, Flow, Path, Plan, Tcp, TcpConfig, Topology};
//! use haul_units::{BitRate, Bytes};
//!
//! const TWO_FLOWS: Plan<TcpConfig> = Plan {
//!     name: "two_reno_flows",
//!     seed: 1,
//!     topology: Topology::Dumbbell { pairs: 1, path: Path::new(BitRate::mbps(10), Duration::from_millis(20)) },
//!     flows: Cow::Borrowed(&[Flow::endless(TcpConfig::RENO, 0, 1), Flow::bulk(TcpConfig::RENO, 0, 1, Bytes::mib(1))]),
//!     length: Duration::from_secs(20),
//!     checks: &[Check::UtilisationAtLeast(0.9)],
//! };
//!
//! let outcome = TWO_FLOWS.run(|flow| {
//!     (Tcp::sender(*flow.kind, flow.receiver, flow.start, flow.size), Tcp::receiver(*flow.kind, flow.size))
//! });
//! TWO_FLOWS.check(&outcome, "cargo test --doc -p haul-sim").unwrap();
//! assert!(outcome.completed[1].unwrap() < Duration::from_secs(3));
//! ```

mod agenda;
mod bucket;
mod cbr;
mod config;
mod discipline;
mod link;
mod mixed;
mod network;
mod rng;
mod scenario;
mod tcp;
mod topology;
mod ways;

pub use bucket::TokenBucket;
pub use cbr::{Cbr, CbrConfig, CbrInterval, CbrMeter, CbrPacket};
pub use config::{Change, LinkConfig, LossModel, LossState, Reorder};
pub use discipline::{CoDel, Discipline, Red};
pub use link::{Delivered, Link, LinkStats, Verdict};
pub use mixed::Mixed;
pub use network::{Endpoint, EndpointId, LinkId, Network, Parcel, Transmit};
pub use rng::Rng;
pub use scenario::{Check, Failure, Flow, FlowEnd, FlowSpec, Outcome, Plan, Scene};
pub use tcp::{Scatter, Segment, Tcp, TcpConfig, TcpControl, TcpStats};
pub use topology::{Back, Fabric, Path, Queue, Topology};
pub use ways::Ways;
