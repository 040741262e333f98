//! Reliable, encrypted transport over UDP for long fat networks: a socket library in user land.

pub mod udp;
