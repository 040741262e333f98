//! Two links that are unlike, and a connection with a path on each: what they carry together, beside what each carries alone.
//!
//! ```text
//!   500 Mbit/s at 20 ms and at 200 ms                              blocks (files) 95 % of the sum, one ordered stream 90 %
//!   12 Mbit/s, and 1 Mbit/s with a queue that takes a second       never less than the 12 alone
//! ```
//! On real sockets the server tells of its address on the second link, and the connection's paths leave by the two interfaces, as with `haul cp --via`.

mod cases;
mod real;
mod show;
mod simulated;

use super::Experiment;

pub const PATHS: Experiment = Experiment {
    name: "paths",
    about: "One connection over two unlike links: files and an ordered stream, beside each link alone",
    reproduces: "MPTCP's acceptance (Raiciu et al., NSDI 2012): several links carry their sum, and a slow one never lowers a fast one",
    simulate: Some(simulated::simulated),
    measure: real::measured,
};
