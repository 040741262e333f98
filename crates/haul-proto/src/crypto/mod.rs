//! Ciphers: the choice of a suite, the keys of data packets, their change.
//!
//! TLS (see [`crate::handshake`]) agrees on a suite and yields one exporter secret; from there on the packets of a connection are
//! sealed and opened by keys of our own, out of place, so that a byte is touched once on its way between a buffer and a datagram.
//! Nothing in here allocates per packet.

mod data;
mod key;
mod suite;
mod traffic;

pub use data::{DataKeys, OpenError, Opener, SealError, Sealer};
pub use key::TAG_LEN;
pub(crate) use key::{PacketKey, Secret};
pub(crate) use suite::has_aes_instructions;
pub use suite::{CipherSuite, provider};
pub use traffic::TrafficSecret;

/// Which side of a connection this is: decides which directional secret seals and which one opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sent the first datagram.
    Client,
    /// Accepted it.
    Server,
}
