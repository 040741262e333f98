//! What must hold of a scenario.

use std::time::Duration;

/// A demand on an [`super::Outcome`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// Part of the bottleneck in use.
    UtilisationAtLeast(f64),
    /// 95th percentile of the waiting time in the bottleneck's queue.
    QueueDelayP95AtMost(Duration),
    /// All flows, each from its start.
    CompletesWithin(Duration),
    /// Jain's index of the rates.
    JainAtLeast(f64),
    /// A flow's part of all that arrives.
    ShareBetween {
        /// Its number.
        flow: usize,
        /// At least.
        least: f64,
        /// At most.
        most: f64,
    },
    /// Part of the packets that the bottleneck dropped.
    DroppedAtMost(f64),
}
