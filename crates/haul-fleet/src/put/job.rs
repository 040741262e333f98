//! What is to be put where.

use std::path::PathBuf;
use std::time::Duration;

use haul_files::{Filter, Options};

use haul_plan::PlacementPolicy;

use crate::limit::JobLimit;

/// Files of this machine, to go to members.
#[derive(Debug, Clone)]
pub struct PutJob {
    /// What to send; at least one, all of one store (this machine's directories, `gfarm:`, `ram:`). Directories need [`Options::recursive`]; of one that has no name of its own (`.`, `..`, `a/.`) the content goes straight to the destination.
    pub sources: Vec<PathBuf>,
    /// A directory on each member, which is made where its parent is there. All sources go into it, under their own names.
    pub destination: PathBuf,
    /// How. With [`Options::update`] or [`Options::skip_same`], and after a run that was interrupted, members are asked first what they have: a file that one has already (the same name, size and
    /// modification time, or newer with `update`) counts as placed there. Each name of a file with several (hard links) is a file of its own.
    pub options: Options,
    /// What is left out of the sources.
    pub filter: Filter,
    /// On how many different members each file is to be, 1..=[`MAX_REPLICAS`](crate::MAX_REPLICAS). Default 1. Directories and symbolic links go to all.
    pub replicas: usize,
    /// How members are chosen.
    pub policy: PlacementPolicy,
    /// All members together are sent no more than this. Default none. A limit for one of them is [`Member::limit`](crate::Member::limit).
    pub limit: JobLimit,
    /// How long a member rests after each file. Not zero: it gets one file at a time. Default zero.
    pub pause: Duration,
    /// Nothing is sent until so long after the call. Default zero.
    pub start_after: Duration,
}

impl PutJob {
    /// With the defaults.
    pub fn new(sources: Vec<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        Self {
            sources,
            destination: destination.into(),
            options: Options::default(),
            filter: Filter::default(),
            replicas: 1,
            policy: PlacementPolicy::default(),
            limit: JobLimit::default(),
            pause: Duration::ZERO,
            start_after: Duration::ZERO,
        }
    }
}
