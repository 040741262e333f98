//! How what one side of a connection has measured is distributed.

use haul_units::Distribution;

/// Distributions of what one side of a connection has measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distributions {
    /// Round-trip times, in microseconds: one for each report that tells of a new largest packet.
    pub rtt_us: Distribution,
    /// Queueing delay towards the peer, in microseconds: by how much the one-way delay exceeds its smallest of late. As many as of round-trip times.
    pub queue_delay_us: Distribution,
    /// Lengths of gaps in the numbers of packets received, in packets, as they appear: what is lost or comes late.
    pub gaps_pkts: Distribution,
    /// How far behind the largest number a packet came that was not in order, in packets.
    pub late_pkts: Distribution,
}
