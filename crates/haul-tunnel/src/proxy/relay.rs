//! The bytes of one TCP connection and one stream, both ways.
//!
//! Each direction is for itself: an end is passed on when everything before it has been, and the other direction goes on. A reset of either side cuts both at
//! once. A direction holds one buffer while it has bytes that the other side does not take yet, and then reads no more: so a reader that stands
//! still stops its writer, all the way. Without bytes it holds none.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use haul::{ConnectionError, RecvStream, SendStream, StreamError};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::wire::{CODE_RESET, Refused};
use crate::reset::resets_when_dropped;

/// Bytes of a buffer.
const BUFFER: usize = 64 << 10;
/// Buffers that a thread keeps for the next who needs one.
const KEPT: usize = 16;

/// A stream of the haul connection, both ways.
pub type Streams = (SendStream, RecvStream);

/// Bytes that were carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// From the TCP connection.
    pub up: u64,
    /// To it.
    pub down: u64,
}

/// Why a connection was cut.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// The TCP connection on this side is broken.
    #[error("broken on this side: {0}")]
    Here(#[source] io::Error),
    /// The one on the other side is.
    #[error("reset on the other side")]
    There,
    /// The other side could not connect.
    #[error("{}", .0.why)]
    Refused(Refused),
    /// The haul connection is over.
    #[error("{0}")]
    Link(#[source] ConnectionError),
}

/// The other side's answer, which comes before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It has been read, or this is the side that gives it.
    Had,
    /// It is still to come.
    Awaited,
}

/// Carries bytes until both directions have ended, or one side is broken: then so is the other.
pub async fn relay(tcp: TcpStream, mut streams: Streams, reply: Reply) -> (Moved, Result<(), Cut>) {
    resets_when_dropped(&tcp, true);
    let (mut up, mut down) = (Up::default(), Down::new(reply));
    let result = carry(&tcp, &mut streams, &mut up, &mut down).await;
    match result {
        Ok(()) => resets_when_dropped(&tcp, false),
        Err(_) => cut(tcp, &mut streams),
    }
    (Moved { up: up.bytes, down: down.bytes }, result)
}

/// Resets a TCP connection and its stream: neither side may take what it has for all.
pub fn cut(tcp: TcpStream, (send, receive): &mut Streams) {
    reset(tcp);
    send.reset(CODE_RESET);
    receive.stop(CODE_RESET);
}

/// Closes a TCP connection by a reset.
pub fn reset(tcp: TcpStream) {
    resets_when_dropped(&tcp, true);
    drop(tcp);
}

async fn carry(tcp: &TcpStream, (send, receive): &mut Streams, up: &mut Up, down: &mut Down) -> Result<(), Cut> {
    let mut broken = pin!(broken(tcp));
    poll_fn(|cx| {
        // First what came: a refusal says more than that its sender reads no more.
        let downwards = down.poll(cx, tcp, receive)?;
        let upwards = up.poll(cx, tcp, send)?;
        if upwards.is_ready() && downwards.is_ready() {
            return Poll::Ready(Ok(()));
        }
        broken.as_mut().poll(cx).map(|error| Err(Cut::Here(error)))
    })
    .await
}

/// Waits for an error of the connection: it may come while this side neither reads nor writes.
async fn broken(tcp: &TcpStream) -> io::Error {
    if let Err(error) = tcp.ready(Interest::ERROR).await {
        return error;
    }
    match tcp.take_error() {
        Ok(Some(error)) | Err(error) => error,
        // Whoever reads or writes has had it.
        Ok(None) => std::future::pending().await,
    }
}

/// From the TCP connection to the stream.
#[derive(Default)]
struct Up {
    chunk: Option<Chunk>,
    ended: bool,
    bytes: u64,
}

impl Up {
    fn poll(&mut self, cx: &mut Context<'_>, tcp: &TcpStream, send: &mut SendStream) -> Poll<Result<(), Cut>> {
        while !self.ended {
            if let Some(chunk) = &mut self.chunk {
                self.bytes += chunk.advance(ready!(send.poll_write(cx, chunk.rest())).map_err(Cut::of)?);
                if chunk.is_empty() {
                    self.chunk = None;
                }
                continue;
            }
            let Poll::Ready(readable) = tcp.poll_read_ready(cx) else {
                // With nothing to write, the other side's reset is seen only here.
                return send.poll_acknowledged(cx).map_err(Cut::of).map_ok(drop);
            };
            readable.map_err(Cut::Here)?;
            let mut chunk = Chunk::new();
            match tcp.try_read(&mut chunk.data) {
                Ok(0) => {
                    send.finish().map_err(Cut::of)?;
                    self.ended = true;
                }
                Ok(read) => {
                    chunk.end = read;
                    self.chunk = Some(chunk);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(Cut::Here(error))),
            }
        }
        send.poll_acknowledged(cx).map_err(Cut::of)
    }
}

/// From the stream to the TCP connection.
struct Down {
    reply: Reply,
    refused: Option<Vec<u8>>,
    chunk: Option<Chunk>,
    ended: bool,
    bytes: u64,
}

impl Down {
    fn new(reply: Reply) -> Self {
        Self { reply, refused: None, chunk: None, ended: false, bytes: 0 }
    }

    fn poll(&mut self, cx: &mut Context<'_>, tcp: &TcpStream, receive: &mut RecvStream) -> Poll<Result<(), Cut>> {
        if self.reply == Reply::Awaited {
            ready!(self.poll_reply(cx, receive))?;
        }
        while !self.ended {
            if let Some(chunk) = &mut self.chunk {
                ready!(tcp.poll_write_ready(cx)).map_err(Cut::Here)?;
                match tcp.try_write(chunk.rest()) {
                    Ok(written) => self.bytes += chunk.advance(written),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(Cut::Here(error))),
                }
                if chunk.is_empty() {
                    self.chunk = None;
                }
                continue;
            }
            let mut chunk = Chunk::new();
            match ready!(receive.poll_read(cx, &mut chunk.data)).map_err(Cut::of)? {
                0 => {
                    SockRef::from(tcp).shutdown(Shutdown::Write).map_err(Cut::Here)?;
                    self.ended = true;
                }
                read => {
                    chunk.end = read;
                    self.chunk = Some(chunk);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the answer off; what comes behind a refusal are its words.
    fn poll_reply(&mut self, cx: &mut Context<'_>, receive: &mut RecvStream) -> Poll<Result<(), Cut>> {
        loop {
            let mut part = [0; 64];
            let room = if self.refused.is_some() { 64 } else { 1 };
            let read = ready!(receive.poll_read(cx, &mut part[..room])).map_err(Cut::of)?;
            match (&mut self.refused, part[..read].first()) {
                (None, Some(0)) => {
                    self.reply = Reply::Had;
                    return Poll::Ready(Ok(()));
                }
                (None, Some(_)) => self.refused = Some(part[..read].to_vec()),
                (Some(answer), Some(_)) if answer.len() < Refused::LONGEST => answer.extend_from_slice(&part[..read]),
                // It had nothing to say, or has said it all.
                _ => {
                    return Poll::Ready(Err(self
                        .refused
                        .as_deref()
                        .map_or(Cut::There, |answer| Cut::Refused(Refused::parse(answer)))));
                }
            }
        }
    }
}

impl Cut {
    fn of(error: StreamError) -> Self {
        match error {
            StreamError::Connection(error) => Self::Link(error),
            _ => Self::There,
        }
    }
}

/// A buffer with bytes to be written.
struct Chunk {
    data: Box<[u8]>,
    start: usize,
    end: usize,
}

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

impl Chunk {
    fn new() -> Self {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        Self { data: spare.unwrap_or_else(|| vec![0; BUFFER].into_boxed_slice()), start: 0, end: 0 }
    }

    fn rest(&self) -> &[u8] {
        self.data.get(self.start..self.end).unwrap_or_default()
    }

    fn advance(&mut self, by: usize) -> u64 {
        self.start += by;
        by as u64
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT {
                spare.push(data);
            }
        });
    }
}
