//! Congestion control, rate sampling and pacing, without a clock or a socket.
//!
//! One trait, [`Controller`]: events come in as structs, each a whole batch (an acknowledgement covers many packets), and a window, a
//! rate and a burst size come out. Bytes are counted as they travel: UDP payload, header and tag included. The transport asks
//! [`Controller::window`] and [`Controller::rate`] after every event; the pacer turns the rate into departure times of whole trains.

mod controller;

pub use controller::{AckSample, Controller, EcnSample, LossSample, RateSample, SentSample, Snapshot};
