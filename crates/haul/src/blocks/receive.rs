//! The application's end of an incoming stream of blocks.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};

use haul_proto::StreamId;

use crate::arriving::{Complete, End, Queue};
use crate::driver::Open;
use crate::error::{ConnectionError, StreamError};
use crate::waiting::block_on;

/// Takes the blocks of a stream. Clones share the stream: each block goes to one of them. Dropping the last one tells the peer to stop.
#[derive(Clone)]
pub struct BlockReceiver {
    inner: Arc<Receiving>,
}

struct Receiving {
    connection: Arc<Open>,
    id: StreamId,
    queue: Arc<Queue>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.connection.link().act(|state, _| {
            state.queues.remove(self.id);
            // A sender whose blocks have all arrived is not told to stop: it would take that for a failure.
            if !self.queue.is_complete() {
                state.connection.stop(self.id, 0);
            }
        });
    }
}

impl fmt::Debug for BlockReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockReceiver").field("id", &self.inner.id).finish_non_exhaustive()
    }
}

impl BlockReceiver {
    pub(crate) fn new(connection: Arc<Open>, id: StreamId, queue: Arc<Queue>) -> Self {
        Self { inner: Arc::new(Receiving { connection, id, queue }) }
    }

    /// The stream's name: the same on both sides.
    pub fn id(&self) -> StreamId {
        self.inner.id
    }

    /// Bytes that have arrived, each counted once, those of incomplete blocks included.
    pub fn received(&self) -> u64 {
        self.inner.queue.received()
    }

    /// Waits for a block, whichever is complete next; `None` when the sender has finished and all blocks were taken.
    pub fn recv(&self) -> Result<Option<Block>, StreamError> {
        block_on(self.recv_async())
    }

    /// As [`BlockReceiver::recv`], for any async executor. A future that is dropped before it is ready has taken no block.
    pub async fn recv_async(&self) -> Result<Option<Block>, StreamError> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// A block if there is one, or registers the task to be woken.
    pub fn poll_recv(&self, cx: &Context<'_>) -> Poll<Result<Option<Block>, StreamError>> {
        self.inner.queue.poll_take(cx).map(|taken| match taken {
            Ok(Some(Complete { index, buffer, len })) => Ok(Some(Block { inner: self.inner.clone(), index, buffer, len })),
            Ok(None) => Ok(None),
            Err(End::Reset(code)) => Err(self.closed().map_or(StreamError::Reset { code }, StreamError::Connection)),
            Err(End::ConnectionClosed) => Err(self.closed().unwrap_or(ConnectionError::ClosedHere).into()),
        })
    }

    fn closed(&self) -> Option<ConnectionError> {
        self.inner.connection.link().look(|state| state.closed.clone())
    }
}

/// A received block. Dropping it gives its memory back to the stream, and the peer may send as much again.
pub struct Block {
    inner: Arc<Receiving>,
    index: u64,
    buffer: Vec<u8>,
    len: usize,
}

impl Block {
    /// Which one it is, in the order of sending.
    pub fn index(&self) -> u64 {
        self.index
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("index", &self.index).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.inner.queue.give_back(std::mem::take(&mut self.buffer), self.len);
        self.inner.connection.link().note_consumed();
    }
}
