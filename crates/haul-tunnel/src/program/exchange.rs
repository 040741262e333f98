//! Bytes from a reader to a stream and from a stream to a writer, each direction for itself.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::{RecvStream, SendStream, StreamError};
use haul_units::Cancel;

use super::READER_GONE;

/// Bytes moved at once: many packets, few calls.
const CHUNK: usize = 256 << 10;

/// How both directions ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// Bytes sent, once all of them are acknowledged.
    pub sent: u64,
    /// Bytes received and written.
    pub received: u64,
    /// What we wrote to has gone: the reader of our output, or the one over there. Not an error; there is just no need to go on.
    pub reader_gone: bool,
}

enum Done {
    Sent(io::Result<Moved>),
    Received(io::Result<Moved>),
}

pub(super) struct Moved {
    bytes: u64,
    reader_gone: bool,
}

/// Whether the peer's end is a reason to give up an input that would never end by itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop<'a> {
    /// Read until the end.
    AtEnd,
    /// Set this when the peer has ended.
    WithPeer(&'a AtomicBool),
}

/// How often to look whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Moves bytes both ways until both directions have ended, or somebody wants no more.
pub(super) fn exchange(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    streams: (SendStream, RecvStream),
    stop: Stop<'_>,
    cancel: &Cancel,
) -> io::Result<Ends> {
    let (done, events) = mpsc::channel();
    let (send, receive) = streams;
    let sent = done.clone();
    thread::spawn(move || sent.send(Done::Sent(send_all(input, send))));
    thread::spawn(move || done.send(Done::Received(receive_all(receive, output))));
    let mut ends = Ends::default();
    let mut under_way = 2;
    while under_way > 0 {
        under_way -= 1;
        match events.recv_timeout(LOOK) {
            Ok(Done::Sent(moved)) => {
                let moved = moved?;
                ends.sent = moved.bytes;
                ends.reader_gone |= moved.reader_gone;
            }
            Ok(Done::Received(moved)) => {
                let moved = moved?;
                ends.received = moved.bytes;
                ends.reader_gone |= moved.reader_gone;
                if let Stop::WithPeer(flag) = stop {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Err(io::Error::other("interrupted")),
            Err(RecvTimeoutError::Timeout) => under_way += 1,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a thread ended without a word")),
        }
    }
    Ok(ends)
}

/// Sends what the reader gives, and the end; waits until the peer has it.
fn send_all(input: impl Read, mut stream: SendStream) -> io::Result<Moved> {
    let mut moved = send_to_end(input, &mut stream)?;
    moved.reader_gone |= !arrived(&mut stream)?;
    Ok(moved)
}

/// Waits until the peer has all that was sent, and the end; false if it wants no more of it.
pub(super) fn arrived(stream: &mut SendStream) -> io::Result<bool> {
    match stream.wait_acknowledged().map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if stopped(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends what the reader gives, and the end, and waits for nothing.
pub(super) fn send_to_end(mut input: impl Read, stream: &mut SendStream) -> io::Result<Moved> {
    let mut bytes = 0;
    let result = pump(&mut input, |chunk| {
        stream.write_all(chunk)?;
        bytes += chunk.len() as u64;
        Ok(())
    });
    match result.and_then(|()| Ok(stream.finish()?)) {
        Ok(()) => Ok(Moved { bytes, reader_gone: false }),
        // It has all that it wanted.
        Err(error) if stopped(&error) => Ok(Moved { bytes, reader_gone: true }),
        Err(error) => {
            // Half of something must not look like all of it.
            stream.reset(0);
            Err(error)
        }
    }
}

/// Writes what comes.
pub(super) fn receive_all(mut stream: RecvStream, mut output: impl Write) -> io::Result<Moved> {
    let mut gone = false;
    let mut bytes = 0;
    let result = pump(&mut stream, |chunk| {
        bytes += chunk.len() as u64;
        let written = output.write_all(chunk).and_then(|()| output.flush());
        gone = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written
    });
    match result {
        Ok(()) => Ok(Moved { bytes, reader_gone: false }),
        Err(_) if gone => {
            stream.stop(READER_GONE);
            Ok(Moved { bytes, reader_gone: true })
        }
        Err(error) => Err(error),
    }
}

fn pump(input: &mut impl Read, mut output: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => output(buffer.get(..read).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn stopped(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<StreamError>());
    matches!(inner, Some(StreamError::Stopped { .. }))
}
