//! Memory of a connection's block streams.
//!
//! Credit counts bytes; this counts what is held for them: whole buffers, complete or not, until the application drops its block, and what is noted about each. A peer
//! that sends a byte here and a byte there has credit for many more of them than there is memory: what finds no room counts as lost on the way, and comes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_units::Bytes;

use super::assembly::MAX_BLOCK;
use super::spares::Spares;

/// What all block streams of a connection hold, and may hold.
#[derive(Debug)]
pub(crate) struct BlockMemory {
    held: AtomicUsize,
    limit: AtomicUsize,
    /// Of the process.
    spares: Arc<Spares>,
}

impl BlockMemory {
    /// Nothing is held, and a connection with `memory` is served.
    pub(super) fn new(memory: Bytes, spares: Arc<Spares>) -> Self {
        spares.enter();
        Self { held: AtomicUsize::new(0), limit: AtomicUsize::new(limit_for(memory)), spares }
    }

    /// The connection has other memory now.
    pub(super) fn set_memory(&self, memory: Bytes) {
        self.limit.store(limit_for(memory), Ordering::Relaxed);
    }

    /// Takes memory if there is enough left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let fits = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.limit.load(Ordering::Relaxed);
        if !fits {
            self.give(bytes);
        }
        fits
    }

    /// Takes memory for what is noted about bytes that are held already: little, and bounded by them.
    pub(super) fn note(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A buffer that was used before, if there is one and enough memory left for it; it is held now.
    pub(super) fn recycled(&self) -> Option<Vec<u8>> {
        self.spares.take(|bytes| self.take(bytes))
    }

    /// A buffer that was held is not used any more.
    pub(super) fn recycle(&self, buffer: Vec<u8>) {
        self.give(buffer.len());
        self.spares.keep(buffer);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for BlockMemory {
    fn drop(&mut self) {
        self.spares.leave();
    }
}

/// What blocks may take where a connection has this memory. An honest peer's take less than twice the bytes that it has credit for, as buffers are no more than twice what they
/// were needed for, and some blocks are at their beginning.
fn limit_for(memory: Bytes) -> usize {
    usize::try_from(memory.as_u64()).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(4 * MAX_BLOCK)
}
