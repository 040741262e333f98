//! What a placement is told before it begins.

use std::time::Duration;

use haul_units::Time;

/// How members are chosen for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlacementPolicy {
    /// Members pull, the fast ones more, large files first.
    #[default]
    Dynamic,
    /// Files are dealt in turn, whatever the members do with them; only a death or a full disk changes that. What the system of the IPSJ paper does, to compare with.
    RoundRobin,
    /// The members with the most room get the next file, so that their disks fill evenly. A member whose room nobody knows comes last.
    Space,
}

impl PlacementPolicy {
    /// All of them, with the names that users give them.
    pub const NAMES: [(&'static str, Self); 3] =
        [("dynamic", Self::Dynamic), ("round-robin", Self::RoundRobin), ("space", Self::Space)];
}

/// How files are placed.
#[derive(Debug, Clone, Copy)]
pub struct PlacementSettings {
    /// How members are chosen.
    pub policy: PlacementPolicy,
    /// On how many different members each file is to be; 1..=[`MAX_REPLICAS`]. Default 1.
    pub replicas: usize,
    /// Nothing is placed before.
    pub start_at: Time,
    /// How long a member rests after each file. Not zero: it has one file at a time.
    pub pause: Duration,
}

/// Most replicas of a file: more than that is a mistake, and each costs two bytes a file.
pub const MAX_REPLICAS: usize = 64;

impl Default for PlacementSettings {
    fn default() -> Self {
        Self { policy: PlacementPolicy::default(), replicas: 1, start_at: Time::ZERO, pause: Duration::ZERO }
    }
}
