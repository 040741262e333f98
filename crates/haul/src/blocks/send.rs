//! The application's end of an outgoing stream of blocks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use haul_proto::{BlockData, StreamId, WriteError};

use crate::arriving::MAX_BLOCK;
use crate::driver::{Open, Wanted};
use crate::error::StreamError;
use crate::stream::{poll_acknowledged, poll_writable, write_error};
use crate::waiting::block_on;

/// Sends blocks. Clones send on the same stream. If the last one is dropped before [`BlockSender::finish`] the stream is reset.
#[derive(Clone)]
pub struct BlockSender {
    inner: Arc<Sending>,
}

struct Sending {
    connection: Arc<Open>,
    id: StreamId,
    next: AtomicU64,
    finished: AtomicBool,
    /// Buffers that have come back.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.finished.load(Ordering::Acquire) {
            self.connection.link().act(|state, _| state.connection.reset(self.id, 0));
        }
        self.connection.link().look(|state| state.stopped.remove(&self.id));
    }
}

impl fmt::Debug for BlockSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockSender").field("id", &self.inner.id).finish_non_exhaustive()
    }
}

impl BlockSender {
    pub(crate) fn new(connection: Arc<Open>, id: StreamId) -> Self {
        Self {
            inner: Arc::new(Sending {
                connection,
                id,
                next: AtomicU64::new(0),
                finished: AtomicBool::new(false),
                spare: Mutex::default(),
            }),
        }
    }

    /// The stream's name: the same on both sides.
    pub fn id(&self) -> StreamId {
        self.inner.id
    }

    /// An empty buffer to build a block in: one whose block has been acknowledged if there is one, with its capacity.
    pub fn buffer(&self) -> Vec<u8> {
        let spare = self.inner.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let released = || self.inner.connection.link().look(|state| state.connection.take_released());
        let mut buffer = spare.or_else(released).unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Sends a block of 1 byte to [`MAX_BLOCK`], and returns its index: blocks are counted in the order of sending, from 0. Waits while as much
    /// is on its way as the connection can use, which keeps memory bounded.
    ///
    /// The block may be a `Vec<u8>`, whose memory comes back by [`BlockSender::buffer`], or [`SharedBytes`](crate::SharedBytes), which are sent from where they lie and may be
    /// sent by others and again at the same time.
    ///
    /// A block that cannot be sent, of a wrong size or on a stream that is over, is dropped; [`BlockSender::send_async`] gives it back.
    pub fn send(&self, block: impl Into<BlockData>) -> Result<u64, StreamError> {
        block_on(self.send_async(block))
    }

    /// As [`BlockSender::send`], for any async executor. Dropping the future before it is ready sends nothing of the block: see [`SendBlock`].
    pub fn send_async(&self, block: impl Into<BlockData>) -> SendBlock<'_> {
        SendBlock { sender: self, block: Some(block.into()) }
    }

    /// Takes the block and sends it, or registers the task to be woken when there is room. The block is taken if an index is returned, and stays
    /// where it is if not.
    pub fn poll_send(&self, cx: &Context<'_>, block: &mut Option<BlockData>) -> Poll<Result<u64, StreamError>> {
        let len = block.as_deref().map_or(0, <[u8]>::len);
        if !(1..=MAX_BLOCK).contains(&len) {
            return Poll::Ready(Err(StreamError::BlockSize { len }));
        }
        let Sending { connection, id, next, spare, .. } = &*self.inner;
        connection.link().poll(cx, Wanted::Budget, |state, _| {
            if let Some(error) = &state.closed {
                return Poll::Ready(Err(error.clone().into()));
            }
            // Only changed under the connection's lock, which orders the blocks.
            let index = next.load(Ordering::Relaxed);
            let Some(data) = block.take() else { return Poll::Pending };
            match state.connection.write_block(*id, index * MAX_BLOCK as u64, data) {
                Ok(()) => {}
                Err((WriteError::Blocked, data)) => {
                    *block = Some(data);
                    return Poll::Pending;
                }
                Err((error, data)) => {
                    *block = Some(data);
                    return Poll::Ready(Err(write_error(error, *id, state)));
                }
            }
            next.store(index + 1, Ordering::Relaxed);
            let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(buffer) = state.connection.take_released() {
                if spare.len() < MAX_SPARE {
                    spare.push(buffer);
                }
            }
            Poll::Ready(Ok(index))
        })
    }

    /// Ready when a block would be taken, or refused; nothing is sent. For those who wait for many things at once.
    pub fn poll_writable(&self, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
        poll_writable(&self.inner.connection, self.inner.id, Wanted::Budget, cx)
    }

    /// Bytes that have left, each counted once however often it left; `None` once the peer has acknowledged the whole stream.
    pub fn sent(&self) -> Option<u64> {
        self.inner.connection.link().look(|state| state.connection.sent(self.inner.id))
    }

    /// Ends the stream and waits until the peer has acknowledged all blocks: its transport has them.
    pub fn finish(&self) -> Result<(), StreamError> {
        block_on(self.finish_async())
    }

    /// As [`BlockSender::finish`], for any async executor.
    pub async fn finish_async(&self) -> Result<(), StreamError> {
        let Sending { connection, id, finished, .. } = &*self.inner;
        if !finished.swap(true, Ordering::AcqRel) {
            connection.link().act(|state, _| state.connection.finish(*id).map_err(|error| write_error(error, *id, state)))?;
        }
        poll_fn(|cx| poll_acknowledged(connection, *id, cx)).await
    }

    /// Gives up: the peer's receiver gets an error with this code.
    pub fn reset(&self, code: u64) {
        self.inner.finished.store(true, Ordering::Release);
        self.inner.connection.link().act(|state, _| state.connection.reset(self.inner.id, code));
    }

    /// Sets who goes first among streams with something to send: higher before lower, equals take turns. Starts at 128.
    pub fn set_priority(&self, priority: u8) {
        self.inner.connection.link().act(|state, _| state.connection.set_priority(self.inner.id, priority));
    }
}

/// The future of [`BlockSender::send_async`].
///
/// A block is sent whole or not at all. As soon as the future is ready with an index the block is the connection's; before that, and after an error, it is still
/// in here. Dropping the future drops it, and the stream goes on as if it had never been: no index is used up. Whoever wants to keep the block, for another
/// attempt after a timeout, polls the future by reference and asks for it with [`SendBlock::take_block`].
///
/// ```
/// # use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
/// # let identity = Identity::generate();
/// # let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
/// # let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
/// # let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
/// # let connection = endpoint.connect(server.local_addr(), ClientConfig::new(trust))?;
/// let sender = connection.open_blocks()?;
/// let mut sending = sender.send_async(vec![7; 100_000]);
/// // Something else was more important: it was never polled, and the block comes back.
/// let block = sending.take_block().expect("not sent");
/// assert_eq!(sender.send(block)?, 0);
/// # let receiver = server.accept()?.accept_blocks()?;
/// # sender.finish()?;
/// # assert_eq!(receiver.recv()?.expect("a block").len(), 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a future does nothing before it is awaited"]
#[derive(Debug)]
pub struct SendBlock<'a> {
    sender: &'a BlockSender,
    block: Option<BlockData>,
}

impl SendBlock<'_> {
    /// The block, if it has not been sent: this call gives the attempt up. `None` means that it is on its way.
    pub fn take_block(&mut self) -> Option<BlockData> {
        self.block.take()
    }
}

impl Future for SendBlock<'_> {
    type Output = Result<u64, StreamError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { sender, block } = self.get_mut();
        sender.poll_send(cx, block)
    }
}

/// Buffers kept for the next blocks.
const MAX_SPARE: usize = 16;
