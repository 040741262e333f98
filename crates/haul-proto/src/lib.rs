//! The haul transport, sans-IO: wire format, handshake, paths, recovery, streams.

pub mod crypto;
pub mod handshake;
pub mod identity;
