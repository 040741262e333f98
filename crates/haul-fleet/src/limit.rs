//! What all members of a job bring or take together, at most: said when it begins, and changed by whoever watches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_units::BitRate;

/// A limit that may change while the job runs; its clones are the same limit.
#[derive(Debug, Clone, Default)]
pub struct JobLimit(Arc<AtomicU64>);

impl JobLimit {
    /// What holds at this moment; none: no limit.
    pub fn get(&self) -> Option<BitRate> {
        Some(self.0.load(Ordering::Relaxed)).filter(|bps| *bps != NONE).map(BitRate::from_bps)
    }

    /// Holds from now on: within a tenth of a second for what is sent, with the next block for what comes.
    pub fn set(&self, limit: Option<BitRate>) {
        self.0.store(limit.map_or(NONE, |limit| limit.as_bps().max(1)), Ordering::Relaxed);
    }
}

impl From<Option<BitRate>> for JobLimit {
    fn from(limit: Option<BitRate>) -> Self {
        let this = Self::default();
        this.set(limit);
        this
    }
}

/// Nobody wants a job that never moves.
const NONE: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_clones_are_the_same_limit() {
        let limit = JobLimit::from(Some(BitRate::mbps(5)));
        let other = limit.clone();
        assert_eq!(other.get(), Some(BitRate::mbps(5)));
        limit.set(None);
        assert_eq!(other.get(), None);
        limit.set(Some(BitRate::ZERO));
        assert_eq!(other.get(), Some(BitRate::from_bps(1)), "as slow as it can be, and no word for no limit");
    }
}
