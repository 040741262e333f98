//! Memory of the incomplete blocks of a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use haul_units::Bytes;

/// What all streams of a connection have in incomplete blocks, and may have.
#[derive(Debug, Default)]
pub(crate) struct BlockMemory {
    held: AtomicUsize,
    /// Zero: as the sinks were made.
    limit: AtomicUsize,
}

impl BlockMemory {
    /// What incomplete blocks may take where a connection has this memory: an honest peer's stay far below it, for what is missing in them
    /// is on its way.
    pub(super) fn limit_for(memory: u64) -> usize {
        usize::try_from(memory).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(64 << 20)
    }

    /// The connection has other memory now.
    pub(crate) fn set_memory(&self, memory: Bytes) {
        self.limit.store(Self::limit_for(memory.as_u64()), Ordering::Relaxed);
    }

    /// The limit that has been set, or this one.
    pub(super) fn limit_or(&self, own: usize) -> usize {
        match self.limit.load(Ordering::Relaxed) {
            0 => own,
            limit => limit,
        }
    }

    /// Takes memory; how much is held then.
    pub(super) fn take(&self, bytes: usize) -> usize {
        self.held.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(super) fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}
