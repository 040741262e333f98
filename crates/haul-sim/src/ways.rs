//! Which of several equal paths a flow takes.

use crate::Rng;

/// The ways of a flow through a network with several equal paths. Packets of both directions of a way pass the same wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// So many, each chosen by a hash of its own, as switches choose by the ports of a flow (RFC 2992): some may coincide.
    Hashed(u16),
    /// So many, on different paths as long as there are such: as an orchestrator of paths places them.
    Apart(u16),
    /// One, on this path.
    Only(u16),
}

impl Ways {
    /// How many there are; at least one.
    pub fn count(self) -> u16 {
        match self {
            Self::Hashed(count) | Self::Apart(count) => count.max(1),
            Self::Only(_) => 1,
        }
    }

    /// Which of so many paths the flow with this number takes on one of its ways.
    pub(crate) fn choice(self, flow: u64, way: u16, choices: usize) -> usize {
        let choices = choices.max(1);
        match self {
            Self::Hashed(_) => Rng::new(flow.wrapping_add(u64::from(way) << 48)).below(choices as u64) as usize,
            Self::Apart(_) => (Rng::new(flow).below(choices as u64) as usize + usize::from(way)) % choices,
            Self::Only(path) => usize::from(path) % choices,
        }
    }
}

impl Default for Ways {
    fn default() -> Self {
        Self::Hashed(1)
    }
}
