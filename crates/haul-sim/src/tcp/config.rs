//! What a TCP connection is like. With several ways it has a subflow on each.

use std::time::Duration;

use haul_units::Bytes;

/// How a sender finds its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpControl {
    /// One packet more a round trip, half on loss (RFC 5681).
    Reno,
    /// A cubic function of the time since the last loss (RFC 9438).
    #[default]
    Cubic,
    /// The rate that arrives and the smallest round-trip time, whatever is lost (BBR, version 1).
    Bbr,
    /// Reno, coupled over subflows (RFC 6356).
    Lia,
    /// Reno, coupled over subflows (draft-khalili-mptcp-congestion-control-05).
    Olia,
    /// Reno, coupled over subflows (draft-walid-mptcp-congestion-control-04).
    Balia,
}

impl TcpControl {
    /// Whether the subflows of a connection know of each other.
    pub const fn is_coupled(self) -> bool {
        matches!(self, Self::Lia | Self::Olia | Self::Balia)
    }
}

/// A connection that begins by scattering its packets over all ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scatter {
    /// So many packets; what is longer goes on with a subflow for each way.
    pub pkts: u32,
    /// So many that left later must have arrived before one is lost, in place of three.
    pub reordering_pkts: u32,
}

/// What a TCP connection is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConfig {
    /// How the window is found.
    pub control: TcpControl,
    /// Leaves slow start when the path is full, as Linux does for CUBIC.
    pub hystart: bool,
    /// Packets at the start; 10 (RFC 6928).
    pub initial_window_pkts: u32,
    /// Most packets in flight: the receiver's window.
    pub max_window_pkts: u32,
    /// Payload of a full packet; 1448 bytes of 1500.
    pub payload: Bytes,
    /// Least retransmission timeout beyond the round-trip time; 200 ms, as in Linux.
    pub min_timeout: Duration,
    /// How long an acknowledgement waits for a second packet; 40 ms.
    pub ack_delay: Duration,
    /// Packets can be marked, and marks are heeded.
    pub ecn: bool,
    /// Scatters its first packets.
    pub scatter: Option<Scatter>,
}

impl TcpConfig {
    /// CUBIC with HyStart, as Linux has it.
    pub const CUBIC: Self = Self {
        control: TcpControl::Cubic,
        hystart: true,
        initial_window_pkts: 10,
        max_window_pkts: 1 << 20,
        payload: Bytes(1448),
        min_timeout: Duration::from_millis(200),
        ack_delay: Duration::from_millis(40),
        ecn: false,
        scatter: None,
    };

    /// BBR, version 1.
    pub const BBR: Self = Self { control: TcpControl::Bbr, hystart: false, ..Self::CUBIC };

    /// Multipath TCP with coupled windows.
    pub const MPTCP: Self = Self { control: TcpControl::Lia, hystart: false, ..Self::CUBIC };

    /// Reno.
    pub const RENO: Self = Self { control: TcpControl::Reno, hystart: false, ..Self::CUBIC };

    /// How many subflows a connection with so many ways has. One that scatters goes by all ways, and is followed by one on each.
    pub(super) fn subflows(&self, ways: u16) -> u16 {
        ways.max(1) + u16::from(self.scatter.is_some())
    }

    /// The way of a subflow; of one that scatters, that of its answers.
    pub(super) fn way(&self, subflow: u16) -> u16 {
        if self.scatter.is_some() { subflow.saturating_sub(1) } else { subflow }
    }
}
