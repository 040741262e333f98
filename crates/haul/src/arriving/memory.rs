//! Memory of a connection's block streams.
//!
//! Credit counts bytes; this counts what is held for them: whole buffers, complete or not, until the application drops its block, and what is noted about each. A peer
//! that sends a byte here and a byte there has credit for many more of them than there is memory: what finds no room counts as lost on the way, and comes again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_units::Bytes;

use super::assembly::MAX_BLOCK;

/// What all block streams of a connection hold, and may hold.
#[derive(Debug)]
pub(crate) struct BlockMemory {
    held: AtomicUsize,
    limit: AtomicUsize,
    /// Buffers that nobody uses, for the next blocks. Held too.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl BlockMemory {
    /// Nothing is held, and a connection with `memory` is served.
    pub(super) fn new(memory: Bytes) -> Self {
        Self { held: AtomicUsize::new(0), limit: AtomicUsize::new(limit_for(memory)), spare: Mutex::default() }
    }

    /// The connection has other memory now.
    pub(super) fn set_memory(&self, memory: Bytes) {
        self.limit.store(limit_for(memory), Ordering::Relaxed);
        if self.held() > limit_for(memory) {
            self.drop_spare();
        }
    }

    /// Takes memory if there is enough left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= limit {
            return true;
        }
        self.drop_spare();
        let fits = self.held() <= limit;
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

    /// A buffer that nobody uses, which is held already.
    pub(super) fn recycled(&self) -> Option<Vec<u8>> {
        self.spare().pop()
    }

    /// A buffer that was held is not used any more.
    pub(super) fn recycle(&self, buffer: Vec<u8>) {
        let mut spare = self.spare();
        let most = MAX_SPARE_BYTES.min(self.limit.load(Ordering::Relaxed) / 4);
        if spare.iter().map(Vec::len).sum::<usize>() + buffer.len() <= most {
            spare.push(buffer);
        } else {
            drop(spare);
            self.give(buffer.len());
        }
    }

    fn drop_spare(&self) {
        let spare = std::mem::take(&mut *self.spare());
        self.give(spare.iter().map(Vec::len).sum());
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// What blocks may take where a connection has this memory. An honest peer's take less than twice the bytes that it has credit for, as buffers are no more than twice what they
/// were needed for, and some blocks are at their beginning.
fn limit_for(memory: Bytes) -> usize {
    usize::try_from(memory.as_u64()).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(4 * MAX_BLOCK)
}

/// Buffers kept for the next blocks: what a fast receiver has in use at once.
const MAX_SPARE_BYTES: usize = 48 << 20;
