//! Memory of the incomplete blocks of a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use haul_units::Bytes;

/// What all streams of a connection have in incomplete blocks, and may have.
#[derive(Debug)]
pub(crate) struct BlockMemory {
    held: AtomicUsize,
    limit: AtomicUsize,
}

impl BlockMemory {
    /// Nothing is held, and a connection with `memory` is served.
    pub(super) fn new(memory: Bytes) -> Self {
        Self { held: AtomicUsize::new(0), limit: AtomicUsize::new(Self::limit_for(memory)) }
    }

    /// What incomplete blocks may take where a connection has this memory: an honest peer's stay far below it, for what is missing in them
    /// is on its way.
    fn limit_for(memory: Bytes) -> usize {
        usize::try_from(memory.as_u64()).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(64 << 20)
    }

    /// The connection has other memory now.
    pub(super) fn set_memory(&self, memory: Bytes) {
        self.limit.store(Self::limit_for(memory), Ordering::Relaxed);
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
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
