//! What each fuzz target does with its input.
//!
//! A target is a function from bytes that panics where haul is wrong. libFuzzer calls it in `fuzz/`, the test of this crate calls it with every file
//! of `fuzz/corpus/`: what was found once stays found.
//!
//! A connection has stronger ones: see `connection.rs` for a network that does its worst and `peer.rs` for a peer that has the keys, and `neighbours.rs` for two connections of one endpoint. Each decoder has two properties: no input makes it panic or take memory without bound, and what it accepts survives a round trip through the
//! encoder.

mod carrier;
mod connection;
mod feed;
mod files;
mod fleet;
mod handshake;
mod neighbours;
mod peer;
mod sink;
mod wire;
mod world;

/// A target and the name of its corpus.
pub struct Target {
    /// Name in `fuzz/fuzz_targets` and `fuzz/corpus`.
    pub name: &'static str,
    /// Panics where haul is wrong.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "acceptor", run: acceptor },
    Target { name: "ack", run: ack },
    Target { name: "authenticated_peer", run: authenticated_peer },
    Target { name: "block", run: block },
    Target { name: "carrier", run: carrier },
    Target { name: "connection", run: connection },
    Target { name: "control_message", run: control_message },
    Target { name: "fleet_messages", run: fleet_messages },
    Target { name: "frames", run: frames },
    Target { name: "handshake_datagram", run: handshake_datagram },
    Target { name: "journal", run: journal },
    Target { name: "neighbours", run: neighbours },
    Target { name: "packed_block", run: packed_block },
    Target { name: "packet_header", run: packet_header },
    Target { name: "transport_params", run: transport_params },
];

pub use carrier::carrier;
pub use connection::connection;
pub use files::{block, control_message, journal, packed_block};
pub use fleet::fleet_messages;
pub use handshake::{acceptor, handshake_datagram, transport_params};
pub use neighbours::neighbours;
pub use peer::authenticated_peer;
pub use wire::{ack, frames, packet_header};
