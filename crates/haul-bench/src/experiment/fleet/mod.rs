//! One client, thirteen storage servers, far away: what they bring together.
//!
//! ```text
//!   a1 .. a5    lines of 1 Gbit/s   (10 Gbit/s in simulation)  \
//!   a6 .. a13   lines of 100 Mbit/s (1 Gbit/s)                  +-- 150 ms, 1 Gbit/s (10 Gbit/s) -- b, the client
//! ```
//!
//! The evaluation of the IPSJ paper on parallel transfers by UDT, at its full size in simulation and at a tenth and a hundredth of it on real sockets.

mod fetchers;
mod outcome;
pub mod over_transport;
mod paper;
mod places;
mod processors;
mod real;
mod simulated;

use super::Experiment;

pub const FLEET: Experiment = Experiment {
    name: "fleet",
    about: "One client and 1 to 13 storage servers: total and per-server rate, a slow server, a dead one, and others who do the same",
    reproduces: "Parallel transfer by UDT (IPSJ): 13 servers, five of 10 Gbit/s and eight of 1 Gbit/s, at 150 ms: 6.992 Gbit/s of 10",
    simulate: Some(simulated::simulated),
    measure: real::measured,
};
