//! What an injector counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What an injector has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InjectStats {
    /// Packets sent.
    pub packets: u64,
    /// PAUSE frames sent.
    pub gaps: u64,
    /// What these took on the line.
    pub gap_bytes: u64,
    /// Packets for which a class had no room.
    pub dropped: u64,
    /// Packets to whom nobody on the line answers.
    pub unresolved: u64,
    /// Times at which the line fell silent although something waited: places were late.
    pub silences: u64,
}

/// The same while it runs.
#[derive(Debug, Default)]
pub struct Counters {
    pub packets: AtomicU64,
    pub gaps: AtomicU64,
    pub gap_bytes: AtomicU64,
    pub dropped: AtomicU64,
    pub unresolved: AtomicU64,
    pub silences: AtomicU64,
}

impl Counters {
    pub fn read(&self) -> InjectStats {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Self { packets, gaps, gap_bytes, dropped, unresolved, silences } = self;
        InjectStats {
            packets: value(packets),
            gaps: value(gaps),
            gap_bytes: value(gap_bytes),
            dropped: value(dropped),
            unresolved: value(unresolved),
            silences: value(silences),
        }
    }
}
