//! Between the transport, which completes blocks, and the application, which takes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::memory::BlockMemory;
use crate::waiting::Waiters;

/// Complete blocks of one stream, and its buffers while nobody uses them.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    /// Bytes of the blocks that the application has dropped.
    consumed: AtomicU64,
    /// Bytes that have arrived, each once.
    received: AtomicU64,
    /// Of all streams of the connection.
    memory: Arc<BlockMemory>,
}

#[derive(Default)]
struct Inner {
    ready: VecDeque<Complete>,
    /// Bytes in all blocks completed so far.
    complete_bytes: u64,
    /// Bytes of the whole stream, once known.
    total_bytes: Option<u64>,
    end: Option<End>,
    waiting: Waiters,
}

/// A complete block: the first `len` bytes of `buffer`.
pub(crate) struct Complete {
    pub(crate) index: u64,
    pub(crate) buffer: Vec<u8>,
    pub(crate) len: usize,
}

/// Why no more blocks come before the stream is complete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Reset(u64),
    ConnectionClosed,
}

impl Queue {
    /// Of a stream with nothing received, of a connection with this memory.
    pub(super) fn new(memory: Arc<BlockMemory>) -> Self {
        Self { inner: Mutex::default(), consumed: AtomicU64::new(0), received: AtomicU64::new(0), memory }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes those who wait for it.
    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner();
        change(&mut inner);
        let mut woken = Vec::new();
        inner.waiting.drain_into(&mut woken);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }

    /// A block is complete; its buffer is held.
    pub(super) fn push(&self, index: u64, buffer: Vec<u8>, len: usize) {
        let buffer = self.fitting(buffer, len);
        self.memory.note(NOTED_BYTES);
        self.change(|inner| {
            inner.complete_bytes += len as u64;
            inner.ready.push_back(Complete { index, buffer, len });
        });
    }

    pub(super) fn finish(&self, total_bytes: u64) {
        self.change(|inner| inner.total_bytes = Some(total_bytes));
    }

    pub(super) fn reset(&self, code: u64) {
        self.change(|inner| {
            inner.end.get_or_insert(End::Reset(code));
        });
    }

    /// The connection is over: what is complete can still be taken.
    pub(super) fn connection_closed(&self) {
        self.change(|inner| {
            inner.end.get_or_insert(End::ConnectionClosed);
        });
    }

    /// Bytes have arrived. Only the sink calls it, so that an atomic addition is not needed.
    pub(super) fn note_received(&self, bytes: usize) {
        self.received.store(self.received.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn memory(&self) -> &BlockMemory {
        &self.memory
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Acquire)
    }

    /// A block that is much smaller than its buffer moves to one of its size: many small blocks may wait here.
    fn fitting(&self, buffer: Vec<u8>, len: usize) -> Vec<u8> {
        if len > buffer.len() / 4 {
            return buffer;
        }
        let small = buffer.get(..len).unwrap_or_default().to_vec();
        self.memory.note(small.len());
        self.memory.recycle(buffer);
        small
    }

    /// Whether all blocks of the stream have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        let inner = self.inner();
        inner.total_bytes == Some(inner.complete_bytes)
    }

    /// The next complete block; `None` if the stream has ended.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Result<Option<Complete>, End>> {
        let mut inner = self.inner();
        if let Some(complete) = inner.ready.pop_front() {
            return Poll::Ready(Ok(Some(complete)));
        }
        if inner.total_bytes == Some(inner.complete_bytes) {
            return Poll::Ready(Ok(None));
        }
        if let Some(end) = inner.end {
            return Poll::Ready(Err(end));
        }
        inner.waiting.add(cx);
        Poll::Pending
    }

    /// The application is done with a block of `len` bytes.
    pub(crate) fn give_back(&self, buffer: Vec<u8>, len: usize) {
        self.memory.give(NOTED_BYTES);
        if buffer.len() >= WORTH_KEEPING && self.inner().end.is_none() {
            self.memory.recycle(buffer);
        } else {
            self.memory.give(buffer.len());
        }
        self.consumed.fetch_add(len as u64, Ordering::AcqRel);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.memory.give(inner.ready.iter().map(|complete| complete.buffer.len() + NOTED_BYTES).sum());
    }
}

/// What a complete block takes besides its bytes, the system's own notes about its memory included.
const NOTED_BYTES: usize = size_of::<Complete>() + 32;

/// Smaller buffers are not kept for other blocks.
const WORTH_KEEPING: usize = 16 << 10;
