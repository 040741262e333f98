//! By what a contender of the simulation is sent on real sockets, and what a sender tells of a flow.

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_scenarios::fattree::Contender;
use haul_units::Bytes;

/// By what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The kernel's TCP.
    Tcp,
    /// The kernel's MPTCP.
    Mptcp,
    /// haul in a mode, with so many paths.
    Haul(ControllerChoice, u8),
}

/// What a sender tells of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Of each subflow or path, the first one first; of TCP payload, of haul UDP payload.
    pub by_subflow: Vec<Bytes>,
    pub resent_pkts: u64,
    pub timeouts: u64,
}

impl Way {
    pub fn of(contender: &Contender) -> Self {
        let ways = contender.ways.count();
        match contender.kind {
            Kind::Haul(mode) => Self::Haul(mode, ways as u8),
            _ if ways > 1 => Self::Mptcp,
            _ => Self::Tcp,
        }
    }
}
