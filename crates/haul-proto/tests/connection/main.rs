//! Whole connections in a simulated network: real handshakes, real encryption, virtual time. A failure names its seed and replays from it.

mod bulk;
mod harness;
mod life;
mod random;
