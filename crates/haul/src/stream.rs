//! Streams of ordered bytes.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};

use haul_proto::{ReadError, StreamId, WriteError};

use crate::driver::{Open, State, Wanted};
use crate::error::StreamError;
use crate::waiting::block_on;

/// The sending half of a stream. Dropped without [`SendStream::finish`] it is reset, so that the peer does not take what it has for all.
pub struct SendStream {
    connection: Arc<Open>,
    id: StreamId,
    over: bool,
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SendStream {
    pub(crate) fn new(connection: Arc<Open>, id: StreamId) -> Self {
        Self { connection, id, over: false }
    }

    /// Its name: the same on both sides.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some bytes, or registers the task to be woken when there is room.
    pub fn poll_write(&mut self, cx: &Context<'_>, data: &[u8]) -> Poll<Result<usize, StreamError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        // The lock is held while bytes are copied: not for long at once.
        let part = data.get(..COPY_BYTES).unwrap_or(data);
        self.connection.link().poll(cx, Wanted::Writable(self.id), |state, _| match state.connection.write(self.id, part) {
            Ok(written) => Poll::Ready(Ok(written)),
            Err(WriteError::Blocked) if state.closed.is_none() => Poll::Pending,
            Err(error) => Poll::Ready(Err(write_error(error, self.id, state))),
        })
    }

    /// Ready when a write would take something, or fail; nothing is written. For those who wait for many things at once.
    pub fn poll_writable(&mut self, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
        poll_writable(&self.connection, self.id, Wanted::Writable(self.id), cx)
    }

    /// Writes some bytes, as `Write::write` does. A future that is dropped before it is ready has written nothing.
    pub async fn write_async(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        poll_fn(|cx| self.poll_write(cx, data)).await
    }

    /// Writes all bytes. A future that is dropped before it is ready may have written some of them, and does not say how many: use
    /// [`SendStream::write_async`] where that matters.
    pub async fn write_all_async(&mut self, mut data: &[u8]) -> Result<(), StreamError> {
        while !data.is_empty() {
            let written = self.write_async(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Nothing more will be written: the peer reads the end after what was.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.over = true;
        self.connection
            .link()
            .act(|state, _| state.connection.finish(self.id).map_err(|error| write_error(error, self.id, state)))
    }

    /// Waits until the peer has acknowledged everything, the end included; call [`SendStream::finish`] first. Acknowledged means that
    /// the peer's transport has it, not that its application has read it.
    pub fn wait_acknowledged(&mut self) -> Result<(), StreamError> {
        block_on(self.wait_acknowledged_async())
    }

    /// As [`SendStream::wait_acknowledged`], for any async executor.
    pub async fn wait_acknowledged_async(&mut self) -> Result<(), StreamError> {
        poll_fn(|cx| self.poll_acknowledged(cx)).await
    }

    /// Ready once there is no more to be done: the peer has acknowledged everything on a finished stream, or wants no more, or the connection is
    /// over. Before [`SendStream::finish`] it tells a writer that has nothing to write that the peer has stopped the stream.
    pub fn poll_acknowledged(&mut self, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
        poll_acknowledged(&self.connection, self.id, cx)
    }

    /// Gives up: what was not sent is dropped, the peer reads an error with this code.
    pub fn reset(&mut self, code: u64) {
        self.over = true;
        self.connection.link().act(|state, _| state.connection.reset(self.id, code));
    }

    /// Sets who goes first among streams with something to send: higher before lower, equals take turns. Starts at 128.
    pub fn set_priority(&mut self, priority: u8) {
        self.connection.link().act(|state, _| state.connection.set_priority(self.id, priority));
    }
}

impl Write for SendStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(block_on(self.write_async(data))?)
    }

    /// Does nothing: what is written is sent without being asked for.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.over {
            self.reset(0);
        }
        self.connection.link().look(|state| state.forget_sender(self.id));
    }
}

/// The receiving half of a stream. Dropped before its end, it tells the peer to stop.
pub struct RecvStream {
    connection: Arc<Open>,
    id: StreamId,
    over: bool,
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl RecvStream {
    pub(crate) fn new(connection: Arc<Open>, id: StreamId) -> Self {
        Self { connection, id, over: false }
    }

    /// Its name: the same on both sides.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads some bytes, or registers the task to be woken when there are any; 0 is the end.
    pub fn poll_read(&mut self, cx: &Context<'_>, buffer: &mut [u8]) -> Poll<Result<usize, StreamError>> {
        if self.over || buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        // The lock is held while bytes are copied: not for long at once.
        let len = buffer.len().min(COPY_BYTES);
        let part = buffer.get_mut(..len).unwrap_or_default();
        let (id, over) = (self.id, &mut self.over);
        self.connection.link().poll(cx, Wanted::Readable(id), |state, _| match state.connection.read(id, part) {
            Ok(read) => {
                *over = read == 0;
                Poll::Ready(Ok(read))
            }
            Err(ReadError::Blocked) if state.closed.is_none() => Poll::Pending,
            Err(error) => {
                *over = true;
                Poll::Ready(Err(read_error(error, state)))
            }
        })
    }

    /// Reads some bytes, as `Read::read` does; 0 is the end. A future that is dropped before it is ready has read nothing.
    pub async fn read_async(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Reads no more; the peer's writer gets an error with this code.
    pub fn stop(&mut self, code: u64) {
        self.over = true;
        self.connection.link().act(|state, _| state.connection.stop(self.id, code));
    }
}

impl Read for RecvStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(block_on(self.read_async(buffer))?)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.over {
            self.stop(0);
        }
        self.connection.link().look(|state| state.forget_receiver(self.id));
    }
}

/// Ready when a stream takes something, or fails.
pub(crate) fn poll_writable(connection: &Open, id: StreamId, wanted: Wanted, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
    connection.link().poll(cx, wanted, |state, _| match state.connection.writable(id) {
        Ok(_) => Poll::Ready(Ok(())),
        Err(WriteError::Blocked) if state.closed.is_none() => Poll::Pending,
        Err(error) => Poll::Ready(Err(write_error(error, id, state))),
    })
}

/// Ready when the peer has acknowledged everything on a finished stream.
pub(crate) fn poll_acknowledged(connection: &Open, id: StreamId, cx: &Context<'_>) -> Poll<Result<(), StreamError>> {
    connection.link().poll(cx, Wanted::Acknowledged(id), |state, _| {
        if let Some(&code) = state.stopped.get(&id) {
            return Poll::Ready(Err(StreamError::Stopped { code }));
        }
        if state.connection.unacknowledged(id).is_none_or(|bytes| bytes == 0) {
            return Poll::Ready(Ok(()));
        }
        match &state.closed {
            Some(error) => Poll::Ready(Err(error.clone().into())),
            None => Poll::Pending,
        }
    })
}

pub(crate) fn write_error(error: WriteError, id: StreamId, state: &State) -> StreamError {
    // The transport forgets a stopped stream before its handle is gone.
    if let Some(&code) = state.stopped.get(&id) {
        return StreamError::Stopped { code };
    }
    match error {
        WriteError::Stopped(code) => StreamError::Stopped { code },
        WriteError::Blocked | WriteError::Closed | WriteError::Unknown | WriteError::BadBlock => closed(state),
    }
}

fn read_error(error: ReadError, state: &State) -> StreamError {
    match error {
        ReadError::Reset(code) => StreamError::Reset { code },
        ReadError::Blocked | ReadError::Closed | ReadError::Unknown => closed(state),
    }
}

fn closed(state: &State) -> StreamError {
    match &state.closed {
        Some(error) => StreamError::Connection(error.clone()),
        None => StreamError::Finished,
    }
}

/// Bytes copied while the lock is held.
const COPY_BYTES: usize = 128 << 10;
