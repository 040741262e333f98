//! What carries each command where the network is in the way, how fast, and ssh alone beside it.
//!
//! ```text
//!   near (a) ---- emulated link, 1 Gbit/s, 100 ms ---- far (b): sshd, firewall of the case
//!                                                       |
//!                                                      b2: the relay of both behind NATs, or the far host behind a narrow line
//! ```
//! Every transfer goes from near to far and is timed from the command to its end, its login included. What carried it is what haul says; what left the near host, by
//! protocol and port, has to say the same.

mod cases;
mod commands;
mod real;
mod show;

use super::Experiment;

pub const BLOCKED: Experiment = Experiment {
    name: "blocked",
    about: "What carries each command where UDP is blocked, limited or behind NATs, and how fast, beside ssh alone",
    reproduces: "HTTP/3's fallback (RFC 9114 3.1, RFC 9308 2): who blocks UDP keeps nobody out, and nobody waits",
    simulate: None,
    measure: real::measured,
};
