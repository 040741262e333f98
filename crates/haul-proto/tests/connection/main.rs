//! Whole connections in a simulated network: real handshakes, real encryption, virtual time. A failure names its seed and replays from it.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod bulk;
mod carried;
mod evidence;
mod harness;
mod hostile;
mod life;
mod paths;
mod random;
mod returning;
mod sealing;
mod server_addresses;
mod start;
