//! What the paper had, and what is wanted of us.

use std::time::Duration;

use haul_units::BitRate;

/// How many servers there are.
pub const SERVERS: usize = 13;
/// The first of them have fast lines.
pub const FAST: usize = 5;
/// To the client and back.
pub const RTT: Duration = Duration::from_millis(150);
/// What the start may take before the rate counts: ten round trips.
pub const START: Duration = Duration::from_millis(1500);
/// The paper's part of the client's link.
pub const PAPERS_SHARE: f64 = 0.6992;
/// Ours, after the start.
pub const WANTED_SHARE: f64 = 0.97;
/// The time of a job of which a server dies, beside that of one where nobody does.
pub const KILLED_MOST: f64 = 1.05;

/// The line of a server, before a client whose link has this rate.
pub fn line(server: usize, client: BitRate) -> BitRate {
    if server < FAST { client } else { client.scaled(0.1) }
}
