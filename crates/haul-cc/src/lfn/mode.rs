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

    /// Part of the round trip by which an attempt at more may lengthen the queue: fair's is a quarter of the longest that it wants, 1/4, modest's the least that is seen.
    pub(super) const fn up_part(self) -> u32 {
        match self {
            Self::Fair | Self::Quickstart => 16,
            Self::Modest => 32,
            Self::Aggressive => 4,
        }
    }

    /// How long a queue the flow wants to see, as a part of what fair wants. By the square root of `share.rs` a flow beside fair has 1/16 or 16 times as much.
    pub(super) const fn queue_share(self) -> f64 {
        match self {
            Self::Fair | Self::Quickstart => 1.0,
            Self::Modest => 0.25,
            Self::Aggressive => 4.0,
        }
    }

    /// Products of bandwidth and round-trip time in flight in cruise: the longest queue that is wanted, and as much again for one that others make: 1 + 2 x 0.25, 1 + 2 x 0.75.
    pub(super) const fn window_gain(self) -> f64 {
        match self {
            Self::Fair | Self::Quickstart | Self::Modest => 1.5,
            Self::Aggressive => 2.5,
        }
    }

    /// Whether an equal part is held against flows that keep the queue full.
    pub(super) const fn competes(self) -> bool {
        matches!(self, Self::Fair | Self::Quickstart)
    }

    /// Shortest and longest queue the flow may want to see, as parts of the round trip. A queue of 0.25 products is a short one of a router, of which modest leaves more than half.
    pub(super) const fn queue_parts(self) -> (f64, f64) {
        match self {
            Self::Fair | Self::Quickstart => (0.0, 0.25),
            Self::Modest => (0.0, 0.1),
            Self::Aggressive => (0.75, 0.75),
        }
    }
}
