//! Bytes from a reader to a stream and from a stream to a writer, each direction for itself.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::{RecvStream, SendStream, StreamError};
use haul_units::Cancel;

use super::READER_GONE;
use super::outlet::Outlet;
use super::own_end::{Drain, Source};

/// Bytes moved at once: many packets, few calls.
const CHUNK: usize = 256 << 10;

/// How both directions ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// Bytes sent. All of them are acknowledged, unless the command that they went to has ended before.
    pub sent: u64,
    /// Bytes received and written.
    pub received: u64,
    /// What we wrote to has gone: the reader of our output, or the one over there. Not an error; there is just no need to go on.
    pub reader_gone: bool,
}

enum Done {
    /// Whether the peer took all of it.
    Sent(io::Result<bool>),
    Received(io::Result<Moved>),
    CommandEnded,
}

/// Where both directions tell that they have ended.
pub(super) struct Events {
    done: mpsc::Sender<Done>,
    events: mpsc::Receiver<Done>,
}

/// Tells that the command at the other end has ended: what it has not read by then nobody will, and nobody waits for an acknowledgement of it.
pub(super) struct CommandEnd(mpsc::Sender<Done>);

impl Events {
    pub(super) fn new() -> Self {
        let (done, events) = mpsc::channel();
        Self { done, events }
    }

    /// For whoever hears how a command ended.
    pub(super) fn command_end(&self) -> CommandEnd {
        CommandEnd(self.done.clone())
    }
}

impl CommandEnd {
    pub(super) fn tell(&self) {
        let _ = self.0.send(Done::CommandEnded);
    }
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

/// Goes on until this is cancelled.
pub(super) fn unless_cancelled(cancel: &Cancel) -> io::Result<()> {
    if cancel.is_cancelled() { Err(io::Error::other("interrupted")) } else { Ok(()) }
}

/// How often to look whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Moves bytes both ways until both directions have ended, or `goes_on`, which is asked again and again, says why not. A command's end is the end of what is sent to it.
pub(super) fn exchange(
    input: impl Read + Send + 'static,
    output: impl Outlet,
    streams: (SendStream, RecvStream),
    stop: Stop<'_>,
    Events { done, events }: Events,
    goes_on: &dyn Fn() -> io::Result<()>,
) -> io::Result<Ends> {
    let (send, receive) = streams;
    // Told while it is sent: a command may end before all of it is.
    let sent = Arc::new(AtomicU64::new(0));
    let (counter, told) = (Arc::clone(&sent), done.clone());
    thread::spawn(move || told.send(Done::Sent(send_all(Source(input), send, &counter))));
    thread::spawn(move || {
        let mut output = Drain(output);
        let received = receive_all(receive, &mut output);
        if received.as_ref().is_ok_and(|moved| !moved.reader_gone) {
            output.0.end();
        }
        drop(output);
        done.send(Done::Received(received))
    });
    let mut ends = Ends::default();
    let (mut sends, mut receives) = (true, true);
    while sends || receives {
        match events.recv_timeout(LOOK) {
            Ok(Done::Sent(all)) if sends => {
                ends.reader_gone |= !all?;
                sends = false;
            }
            Ok(Done::Received(moved)) => {
                let moved = moved?;
                ends.received = moved.bytes;
                ends.reader_gone |= moved.reader_gone;
                receives = false;
                if let Stop::WithPeer(flag) = stop {
                    flag.store(true, Ordering::Relaxed);
                }
            }
            Ok(Done::CommandEnded) => sends = false,
            Err(RecvTimeoutError::Timeout) => goes_on()?,
            Ok(Done::Sent(_)) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a thread ended without a word")),
        }
    }
    ends.sent = sent.load(Ordering::Relaxed);
    Ok(ends)
}

/// Sends what the reader gives, and the end; waits until the peer has it. False if it wants no more of it.
fn send_all(input: impl Read, mut stream: SendStream, sent: &AtomicU64) -> io::Result<bool> {
    let all = send_to_end(input, &mut stream, sent)?;
    Ok(arrived(&mut stream)? && all)
}

/// Waits until the peer has all that was sent, and the end; false if it wants no more of it.
pub(super) fn arrived(stream: &mut SendStream) -> io::Result<bool> {
    match stream.wait_acknowledged().map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if stopped(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends what the reader gives, and the end, and waits for nothing; `sent` counts the bytes. False if the peer wants no more of it.
pub(super) fn send_to_end(mut input: impl Read, stream: &mut SendStream, sent: &AtomicU64) -> io::Result<bool> {
    let result = pump(&mut input, |chunk| {
        stream.write_all(chunk)?;
        sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Ok(())
    });
    match result.and_then(|()| Ok(stream.finish()?)) {
        Ok(()) => Ok(true),
        // It has all that it wanted.
        Err(error) if stopped(&error) => Ok(false),
        Err(error) => {
            // Half of something must not look like all of it.
            stream.reset(0);
            Err(error)
        }
    }
}

/// Writes what comes.
pub(super) fn receive_all(mut stream: RecvStream, output: &mut impl Write) -> io::Result<Moved> {
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

#[cfg(test)]
mod tests {
    use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};

    use super::*;

    impl Outlet for io::Sink {}

    #[test]
    fn the_end_of_a_command_is_the_end_of_what_is_sent_to_it() {
        let identity = Identity::generate();
        let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
        let anywhere = "127.0.0.1:0".parse().expect("an address");
        let server = Endpoint::listen(anywhere, ServerConfig::new(identity, PeerTrust::Anyone)).expect("it listens");
        let client = Endpoint::bind(anywhere).expect("a port");
        let near = client.connect(server.local_addr(), ClientConfig::new(trust)).expect("connected");
        let far = server.accept().expect("a client");
        let (mut send, receive) = near.open_bi().expect("a stream");
        send.write_all(&[0]).expect("sent");
        let (mut answer, _unread) = far.accept_bi().expect("a stream");
        answer.write_all(b"said").expect("sent");
        answer.finish().expect("ended");
        let events = Events::new();
        events.command_end().tell();
        // Input without an end, which nobody reads.
        let ends = exchange(io::repeat(7), io::sink(), (send, receive), Stop::AtEnd, events, &|| Ok(()));
        assert_eq!(ends.expect("moved").received, 4);
    }
}
