//! The haul transport, sans-IO: wire format, handshake, paths, recovery, streams.
