//! Congestion control, rate sampling and pacing, without a clock or a socket.
//!
//! One trait, [`Controller`]: events come in as structs, each a whole batch (an acknowledgement covers many packets), and a window, a
//! rate and a burst size come out. Bytes are counted as they travel: UDP payload, header and tag included. The transport asks
//! [`Controller::window`] and [`Controller::rate`] after every event; the [`Pacer`] turns the rate into departure times of whole trains.
//! [`ControllerChoice`] names the controllers; [`RateSampler`], [`RttEstimator`] and [`OneWayDelay`] make the measurements they live on.

mod bbr;
mod bic;
mod choice;
mod controller;
mod coupled;
mod coupling;
mod cubic;
mod dispersion;
mod fast;
mod fixed;
mod highspeed;
mod learned;
mod ledbat;
mod lfn;
mod one_way;
mod pacer;
mod path_start;
mod rate_sampler;
mod reno;
#[cfg(test)]
mod rounds;
mod rtt;
mod scalable;
mod trains;
mod udt;
mod window;
mod windowed;

pub use choice::{ControllerChoice, ParseControllerError};
pub use controller::{AckSample, Controller, EcnSample, LossSample, SentSample, Snapshot};
pub use coupling::{Company, Share};
pub use dispersion::{DispersionMeter, DispersionSample};
pub use fixed::Fixed;
pub use learned::Learned;
pub use lfn::{Lfn, Mode};
pub use one_way::OneWayDelay;
pub use pacer::{Pacer, quantum};
pub use path_start::PathStart;
pub use rate_sampler::{AckReport, RateSample, RateSampler, SentState};
pub use rtt::RttEstimator;
pub use trains::Trains;
