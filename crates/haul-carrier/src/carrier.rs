//! The carrier: a bounded queue of trains, and the lanes that empty it.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::frames::{self, Frame, Frames, HEAD_BYTES};
use crate::lane::Lane;

/// What may wait for a lane, and for each lane besides: enough that none is ever idle, and little beside what the lanes' own buffers hold.
const QUEUE_BYTES: usize = 64 << 10;
const QUEUE_BYTES_EACH: usize = 64 << 10;
/// The last words to a peer for which there is no lane yet are kept, as far as they are this short: its first lane takes them.
const KEPT_BYTES: usize = 16 << 10;
/// What the programs say to each other and nobody has taken yet: more is lost.
const MAX_SAID: usize = 8;
/// Buffers kept for the next trains.
const MAX_SPARE: usize = 16;

/// Who a carrier works for.
pub trait Side: Send + Sync + 'static {
    /// A train has come. It must not wait for the carrier: nothing is read meanwhile.
    fn deliver(&self, train: &mut [u8], segment_bytes: usize);

    /// Whether anything of the peer's has come over UDP.
    fn heard_over_udp(&self) -> bool {
        false
    }

    /// The peer wants something to be sent to this port of its own, over UDP.
    fn call_back(&self, _port: u16) {}

    /// The last lane has ended.
    fn is_cut_off(&self) {}
}

/// Carries trains to one peer and from it. Clones are the same one.
#[derive(Clone)]
pub struct Carrier(Arc<Inner>);

struct Inner {
    side: Box<dyn Side>,
    state: Mutex<State>,
    /// There is something to write, or nothing will be any more.
    work: Condvar,
    /// There is room again, or everything has been written, or an answer has come.
    done: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// An answer is due: one is enough, however often was asked.
    pong_due: bool,
    ping_due: bool,
    /// The peer is to be asked to send to this port.
    call_due: Option<u16>,
    /// What is to be said to the peer's program, and what that has said.
    to_say: VecDeque<Vec<u8>>,
    said: VecDeque<Vec<u8>>,
    /// Lanes that write at this moment.
    writing: usize,
    lanes: usize,
    alive: Vec<Weak<Alive>>,
    spare: Vec<Vec<u8>>,
    closed: bool,
    pongs: u64,
    peer_heard_udp: Option<bool>,
    sent_bytes: u64,
    received_bytes: u64,
    received_at: Option<Instant>,
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carrier").field("lanes", &self.lanes()).finish_non_exhaustive()
    }
}

/// What has become of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// It will be written.
    Taken,
    /// There was no room for it in time, and it is still the caller's.
    Full,
    /// It is no train, or there is nothing to carry it.
    Lost,
}

impl Carrier {
    /// One without a lane: what is sent is lost, but for the last of it.
    pub fn new(side: impl Side) -> Self {
        let (state, work, done) = Default::default();
        Self(Arc::new(Inner { side: Box::new(side), state, work, done }))
    }

    /// Lanes at present.
    pub fn lanes(&self) -> usize {
        self.0.lock().lanes
    }

    /// Bytes of trains that lanes have taken, and that have come.
    pub fn moved_bytes(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.sent_bytes, state.received_bytes)
    }

    /// Takes a lane into use: two threads of its own.
    pub fn add(&self, lane: Lane) -> io::Result<()> {
        let Lane { read, write, finish } = lane;
        {
            let mut state = self.0.lock();
            if state.closed {
                return Err(ErrorKind::NotConnected.into());
            }
            state.lanes += 1;
        }
        let alive = Arc::new(Alive { inner: Arc::clone(&self.0), ended: Mutex::new(false) });
        {
            let mut state = self.0.lock();
            state.alive.retain(|lane| lane.strong_count() > 0);
            state.alive.push(Arc::downgrade(&alive));
        }
        let (writer, reader) = (Arc::clone(&alive), Arc::clone(&alive));
        let out = thread::Builder::new().name("haul-lane-out".to_owned()).spawn(move || {
            if let Err(error) = writer.write(write) {
                tracing::debug!(%error, "a lane takes no more");
            }
            writer.end();
            finish();
        });
        let started = out.and_then(|_| {
            thread::Builder::new().name("haul-lane-in".to_owned()).spawn(move || {
                if let Err(error) = reader.read(read) {
                    tracing::debug!(%error, "a lane brings no more");
                }
                reader.end();
            })
        });
        if started.is_err() {
            alive.end();
        }
        started.map(drop)
    }

    /// Gives all lanes up, which may be dead and not know it yet: what they have is lost, and what comes by them.
    pub fn leave_lanes(&self) {
        let lanes = std::mem::take(&mut self.0.lock().alive);
        lanes.iter().filter_map(Weak::upgrade).for_each(|lane| lane.end());
    }

    /// Hands a train to a lane, waiting for room for so long.
    pub fn send(&self, train: &[u8], segment_bytes: usize, patience: Duration) -> Handed {
        if !frames::fits(train.len(), segment_bytes) {
            return Handed::Lost;
        }
        let deadline = clock::now() + patience;
        let mut state = self.0.lock();
        while state.lanes > 0 && !state.closed && !state.has_room(train.len()) {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Handed::Full;
            }
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed {
            return Handed::Lost;
        }
        if state.lanes == 0 {
            state.keep(train, segment_bytes);
            return Handed::Lost;
        }
        state.push(train, segment_bytes);
        drop(state);
        self.0.work.notify_one();
        Handed::Taken
    }

    /// Asks the peer whether it is there, and waits for its answer: whether anything has come to it over UDP. None if there is none in time.
    pub fn ask(&self, patience: Duration) -> Option<bool> {
        let deadline = clock::now() + patience;
        let mut state = self.0.lock();
        let before = state.pongs;
        state.ping_due = true;
        self.0.work.notify_one();
        while state.pongs == before && !state.closed && state.lanes > 0 {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return None;
            }
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.peer_heard_udp.filter(|_| state.pongs != before)
    }

    /// Wants the peer to send something over UDP to this port; what is [asked](Self::ask) next is answered when it has.
    pub fn call_back(&self, port: u16) {
        self.0.lock().call_due = Some(port);
        self.0.work.notify_one();
    }

    /// Says something to the peer's program, which must know that it may: at most [`MAX_SAID_BYTES`](crate::MAX_SAID_BYTES).
    pub fn say(&self, words: &[u8]) {
        let mut state = self.0.lock();
        if state.to_say.len() < MAX_SAID {
            state.to_say.push_back(frames::say(words));
        }
        drop(state);
        self.0.work.notify_one();
    }

    /// What the peer's program has said, waited for so long.
    pub fn hear(&self, patience: Duration) -> Option<Vec<u8>> {
        let deadline = clock::now() + patience;
        let mut state = self.0.lock();
        loop {
            if let Some(said) = state.said.pop_front() {
                return Some(said);
            }
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() || state.closed {
                return None;
            }
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How long nothing has come; none if nothing ever has.
    pub fn silence(&self) -> Option<Duration> {
        Some(clock::now().saturating_duration_since(self.0.lock().received_at?))
    }

    /// Waits until all that was sent has been written, for so long at most.
    pub fn flush(&self, patience: Duration) {
        let deadline = clock::now() + patience;
        let mut state = self.0.lock();
        while state.lanes > 0 && (!state.queue.is_empty() || state.writing > 0) {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes nothing more; the lanes end when what was taken is written.
    pub fn close(&self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
        self.0.done.notify_all();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    const fn has_room(&self, bytes: usize) -> bool {
        self.queued_bytes + bytes <= QUEUE_BYTES + self.lanes * QUEUE_BYTES_EACH
    }

    fn push(&mut self, train: &[u8], segment_bytes: usize) {
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(&frames::head(train.len(), segment_bytes));
        frame.extend_from_slice(train);
        self.queued_bytes += frame.len();
        self.queue.push_back(frame);
    }

    /// Keeps the newest of what nobody takes.
    fn keep(&mut self, train: &[u8], segment_bytes: usize) {
        if train.len() > KEPT_BYTES {
            return;
        }
        self.push(train, segment_bytes);
        while self.queued_bytes > KEPT_BYTES + HEAD_BYTES {
            let Some(oldest) = self.queue.pop_front() else { break };
            self.queued_bytes -= oldest.len();
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let control = if std::mem::take(&mut self.pong_due) {
            None
        } else if let Some(port) = self.call_due.take() {
            return Some(frames::call_back(port).concat());
        } else if let Some(words) = self.to_say.pop_front() {
            return Some(words);
        } else if std::mem::take(&mut self.ping_due) {
            Some(frames::ping())
        } else {
            let frame = self.queue.pop_front()?;
            self.queued_bytes -= frame.len();
            self.sent_bytes += frame.len() as u64;
            return Some(frame);
        };
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(&control.unwrap_or_default());
        Some(frame)
    }
}

/// A lane in use: it is one lane less as soon as either of its threads ends.
struct Alive {
    inner: Arc<Inner>,
    ended: Mutex<bool>,
}

impl Alive {
    fn end(&self) {
        if std::mem::replace(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner), true) {
            return;
        }
        let mut state = self.inner.lock();
        state.lanes -= 1;
        let is_last = state.lanes == 0;
        drop(state);
        self.inner.work.notify_all();
        self.inner.done.notify_all();
        if is_last {
            self.inner.side.is_cut_off();
        }
    }

    fn has_ended(&self) -> bool {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut to: impl Write) -> io::Result<()> {
        let mut state = self.inner.lock();
        loop {
            if self.has_ended() {
                return Ok(());
            }
            let is_pong = state.pong_due;
            let Some(mut frame) = state.take() else {
                if state.closed {
                    return Ok(());
                }
                state = self.inner.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.writing += 1;
            drop(state);
            if is_pong {
                frame.clear();
                frame.extend_from_slice(&frames::pong(self.inner.side.heard_over_udp()));
            }
            let written = to.write_all(&frame).and_then(|()| to.flush());
            state = self.inner.lock();
            state.writing -= 1;
            if state.spare.len() < MAX_SPARE {
                state.spare.push(frame);
            }
            self.inner.done.notify_all();
            written?;
        }
    }

    fn read(&self, mut from: impl Read) -> io::Result<()> {
        let mut frames = Frames::default();
        loop {
            let read = match from.read(frames.room()) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                    if self.has_ended() || self.inner.lock().closed {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            if self.has_ended() {
                return Ok(());
            }
            frames.on_read(read);
            let mut bytes = 0;
            while let Some(frame) = frames.next().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))? {
                match frame {
                    Frame::Train { train, segment_bytes } => {
                        bytes += train.len() as u64;
                        self.inner.side.deliver(train, segment_bytes);
                    }
                    Frame::Ping => {
                        self.inner.lock().pong_due = true;
                        self.inner.work.notify_one();
                    }
                    Frame::Pong { heard_over_udp } => {
                        let mut state = self.inner.lock();
                        state.pongs += 1;
                        state.peer_heard_udp = Some(heard_over_udp);
                        drop(state);
                        self.inner.done.notify_all();
                    }
                    Frame::CallBack { port } => self.inner.side.call_back(port),
                    Frame::Said(words) => {
                        let mut state = self.inner.lock();
                        if state.said.len() < MAX_SAID {
                            state.said.push_back(words.to_vec());
                        }
                        drop(state);
                        self.inner.done.notify_all();
                    }
                    Frame::Unknown => {}
                }
            }
            let mut state = self.inner.lock();
            state.received_bytes += bytes;
            state.received_at = Some(clock::now());
        }
    }
}
