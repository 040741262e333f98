//! One client, thirteen storage servers, far away: what they bring together.
//!
//! ```text
//!   a1 .. a5    lines of 1 Gbit/s   (10 Gbit/s in simulation)  \
//!   a6 .. a13   lines of 100 Mbit/s (1 Gbit/s)                  +-- 150 ms, 1 Gbit/s (10 Gbit/s) -- b, the client
//! ```
//!
//! The evaluation of the IPSJ paper on parallel transfers by UDT, at its full size in simulation and at a tenth and a hundredth of it on real sockets.

mod contestants;
mod outcome;
mod real;
mod simulated;

use std::time::Duration;

use haul_units::BitRate;

use super::Experiment;

pub const FLEET: Experiment = Experiment {
    name: "fleet",
    about: "One client and 1 to 13 storage servers: total and per-server rate, a slow server, a dead one, and others who do the same",
    reproduces: "Parallel transfer by UDT (IPSJ): 13 servers, five of 10 Gbit/s and eight of 1 Gbit/s, at 150 ms: 6.992 Gbit/s of 10",
    simulate: simulated::simulated,
    measure: real::measured,
};

/// How many servers there are.
const SERVERS: usize = 13;
/// The first of them have fast lines.
const FAST: usize = 5;
/// To the client and back.
const RTT: Duration = Duration::from_millis(150);
/// What the start may take before the rate counts: ten round trips.
const START: Duration = Duration::from_millis(1500);
/// The paper's part of the client's link.
const PAPERS_SHARE: f64 = 0.6992;
/// Ours, after the start.
const WANTED_SHARE: f64 = 0.97;

/// The line of a server, before a client whose link has this rate.
fn line(server: usize, client: BitRate) -> BitRate {
    if server < FAST { client } else { client.scaled(0.1) }
}
