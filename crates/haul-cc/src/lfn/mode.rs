//! The four modes: one engine, and what differs between them.

/// How the controller for long fat networks deals with others on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Keeps shares equal among its like, and a fair part beside other traffic.
    #[default]
    Fair,
    /// As fair, with a start that measures the path by its first packets.
    Quickstart,
    /// Takes what others leave; short queues and a steady rate.
    Modest,
    /// Takes what it can get.
    Aggressive,
}

impl Mode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Quickstart => "quickstart",
            Self::Modest => "modest",
            Self::Aggressive => "aggressive",
        }
    }

    /// Part of the round trip by which an attempt at more may lengthen the queue.
    pub(super) const fn up_part(self) -> u32 {
        match self {
            Self::Fair | Self::Quickstart => 16,
            Self::Modest => 32,
            Self::Aggressive => 4,
        }
    }

    /// Whether a standing queue is drained.
    pub(super) const fn drains(self) -> bool {
        !matches!(self, Self::Aggressive)
    }
}
