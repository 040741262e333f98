//! Where a connection stands.

use haul_units::Time;

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Handshaking,
    Established,
    /// We have closed: the peer is told until then.
    Closing(Time),
    /// The peer has closed, or is gone: late packets are ignored until then.
    Draining(Time),
    Drained,
}
