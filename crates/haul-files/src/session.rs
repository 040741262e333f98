//! One side of one copy: the control stream, the first failure, and how everything stops after it.
//!
//! A failure anywhere is recorded once; the watchdog then tells the peer (`Stop`) and gives it [`FAREWELL`] to close the connection, which wakes every
//! thread that waits in the transport; after that it ends the connection itself. Waits inside this process look at the failure at least every [`POLL`].

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use haul_units::Bytes;

use crate::clock::{self, POLL};
use crate::locks::lock;
use crate::observe::{Event, Observer};
use crate::protocol::{self, Message, SPELLINGS};
use crate::report::{MAX_PROBLEMS, Report};
use crate::transport::{Link, Transport};
use haul_faults::{CopyError, Fault, FileProblem, MAX_NOTES, Note, Why};
use haul_units::Cancel;

/// How long a side that failed waits for its peer to hear why.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often a sender looks what its user wants.
const WISHES: Duration = Duration::from_millis(200);

/// What all threads of one side share.
pub(crate) struct Session<'a, T> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) transport: Arc<T>,
    out: Mutex<Out>,
    alarm: Arc<Alarm>,
    cancel: &'a Cancel,
    /// What the peer's hello named.
    features: AtomicU64,
    failure: Mutex<Option<CopyError>>,
    problems: Mutex<(u64, Vec<FileProblem>)>,
    /// One of them is the source's.
    misses_some: AtomicBool,
    notes: Mutex<Vec<Note>>,
    /// Files that were written to while they were copied.
    changed: AtomicU64,
    /// Names that a filter has left out.
    left_out: AtomicU64,
    /// Names that were removed at the destination.
    removed: AtomicU64,
    sends: AtomicBool,
    started: Instant,
}

struct Out {
    stream: Box<dyn Write + Send>,
    frames: Vec<u8>,
}

#[derive(Default)]
struct Alarm {
    failed: AtomicBool,
    /// Failed or cancelled; over.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

/// Control frames from the peer.
pub(crate) struct Incoming {
    stream: Box<dyn Read + Send>,
    body: Vec<u8>,
}

impl Incoming {
    /// The next message; the end of the stream is an error here, for a copy ends with a message.
    pub(crate) fn next(&mut self) -> Result<Message, CopyError> {
        match protocol::read_frame(&mut *self.stream, &mut self.body) {
            Ok(Some(Message::Stop(stop))) => Err(CopyError::Refused(stop)),
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(CopyError::Connection(io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(CopyError::PeerMisbehaved("a malformed control frame"))
            }
            Err(error) => Err(CopyError::Connection(error)),
        }
    }
}

/// Runs one side of a copy with its watchdog.
pub(crate) fn run<T: Transport>(
    link: Link<T>,
    observer: &dyn Observer,
    cancel: &Cancel,
    side: impl FnOnce(&Session<'_, T>, &mut Incoming) -> Result<Report, CopyError>,
) -> Result<Report, CopyError> {
    let alarm = Arc::new(Alarm::default());
    let session = Session {
        observer,
        transport: link.transport,
        out: Mutex::new(Out { stream: link.control_out, frames: Vec::new() }),
        alarm: alarm.clone(),
        cancel,
        features: AtomicU64::new(0),
        failure: Mutex::default(),
        problems: Mutex::default(),
        misses_some: AtomicBool::new(false),
        notes: Mutex::default(),
        changed: AtomicU64::new(0),
        left_out: AtomicU64::new(0),
        removed: AtomicU64::new(0),
        sends: AtomicBool::new(false),
        started: clock::now(),
    };
    let mut incoming = Incoming { stream: link.control_in, body: Vec::new() };
    let hook = cancel.on_cancel(move || alarm.ring());
    let result = std::thread::scope(|scope| {
        scope.spawn(|| session.watch());
        let _panics = FailsOnPanic(&session);
        let result = side(&session, &mut incoming);
        if let Err(error) = result {
            session.fail(error);
            session.drain(&mut incoming);
        } else if let Ok(report) = result {
            session.alarm.over();
            return Ok(report);
        }
        session.alarm.over();
        Err(lock(&session.failure).take().unwrap_or(CopyError::Cancelled))
    });
    drop(hook);
    result.map(|report| session.complete(report))
}

impl<T: Transport> Session<'_, T> {
    /// Sends one message and flushes it.
    pub(crate) fn send(&self, message: &Message) -> Result<(), CopyError> {
        lock(&self.out).send(message).map_err(CopyError::Connection)
    }

    /// As [`send`](Self::send), for what a receiver says: a peer that is gone is no reason to drop what has come from it. Whoever reads
    /// from it notices.
    pub(crate) fn say(&self, message: &Message) -> Result<(), CopyError> {
        match self.send(message) {
            Err(CopyError::Connection(error)) => {
                tracing::debug!(%error, "the peer hears nothing more");
                Ok(())
            }
            result => result,
        }
    }

    /// A filter has left out so many names.
    pub(crate) fn left_out(&self, names: u64) {
        self.left_out.store(names, Ordering::Relaxed);
    }

    /// So many names were removed at the destination.
    pub(crate) fn removed(&self, names: u64) {
        self.removed.store(names, Ordering::Relaxed);
    }

    /// This side sends: what its user wants of the speed is its own business.
    pub(crate) fn is_sender(&self) {
        self.sends.store(true, Ordering::Relaxed);
    }

    /// Waits for as long as its user wants that. The peer waits too, once what is on its way has no room here.
    pub(crate) fn wait_while_paused(&self) -> Result<(), CopyError> {
        while self.observer.wishes().is_some_and(|wishes| wishes.paused) && !self.is_cut_off() {
            self.check()?;
            self.wait_until_over(POLL);
        }
        Ok(())
    }

    /// Whether the source could not be read whole.
    pub(crate) fn misses_some(&self) -> bool {
        self.misses_some.load(Ordering::Relaxed)
    }

    /// What stops this side.
    pub(crate) fn cancel(&self) -> &Cancel {
        self.cancel
    }

    /// Takes the features of the peer's hello.
    pub(crate) fn meet(&self, features: u64) {
        self.features.store(features, Ordering::Relaxed);
    }

    /// Whether the peer has a feature.
    pub(crate) fn peer_has(&self, feature: u64) -> bool {
        self.features.load(Ordering::Relaxed) & feature != 0
    }

    /// Records the first failure and wakes the watchdog.
    pub(crate) fn fail(&self, error: CopyError) {
        let error = if self.cancel.is_cancelled() { CopyError::Cancelled } else { error };
        let mut failure = lock(&self.failure);
        // The peer's own words say more than the broken connection that follows them.
        let better = matches!((&*failure, &error), (Some(CopyError::Connection(_)), CopyError::Refused(_)));
        if failure.is_none() || better {
            tracing::debug!(%error, "copy fails");
            *failure = Some(error);
        }
        drop(failure);
        self.alarm.failed.store(true, Ordering::SeqCst);
        self.alarm.ring();
    }

    /// Runs the body of a thread; its error fails the copy, and so does a panic, for the other threads would wait for this one.
    pub(crate) fn guard(&self, body: impl FnOnce() -> Result<(), CopyError>) {
        let panics = FailsOnPanic(self);
        if let Err(error) = body() {
            self.fail(error);
        }
        drop(panics);
    }

    /// An error once the copy has failed or was cancelled. The error returned is not recorded again.
    pub(crate) fn check(&self) -> Result<(), CopyError> {
        if self.alarm.failed.load(Ordering::Relaxed) || self.cancel.is_cancelled() { Err(CopyError::Cancelled) } else { Ok(()) }
    }

    /// Waits until something has come from the peer after `then`: it was there still.
    pub(crate) fn hear_after(&self, then: Instant) -> Result<(), CopyError> {
        loop {
            self.check()?;
            let silence = self.transport.silence().map_err(CopyError::Connection)?;
            if silence.is_none_or(|silence| silence < clock::now() - then) {
                return Ok(());
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// Whether the copy failed because the peer or the way to it is gone: what has arrived is as good as before.
    pub(crate) fn is_cut_off(&self) -> bool {
        let cut_off = matches!(*lock(&self.failure), Some(CopyError::Connection(_) | CopyError::Refused(_)));
        cut_off && !self.cancel.is_cancelled()
    }

    /// As [`check`](Self::check), but goes on where only the peer is gone: what has come from it is worked off to the last.
    pub(crate) fn check_what_came(&self) -> Result<(), CopyError> {
        self.check().or_else(|stopped| if self.is_cut_off() { Ok(()) } else { Err(stopped) })
    }

    /// Notes a problem of this side and tells the peer.
    pub(crate) fn problem(&self, mut problem: FileProblem) -> Result<(), CopyError> {
        self.note(problem.clone());
        if !self.peer_has(SPELLINGS) {
            problem.why = problem.why.plain();
        }
        self.say(&Message::Problem(problem))
    }

    /// Notes a problem.
    pub(crate) fn note(&self, problem: FileProblem) {
        self.observer.event(Event::Problem(&problem));
        // What is no file, link or directory is never copied, and is no part of the source.
        if problem.fault == Fault::Source && problem.why != Why::Special {
            self.misses_some.store(true, Ordering::Relaxed);
        }
        let mut problems = lock(&self.problems);
        problems.0 += 1;
        if problems.1.len() < MAX_PROBLEMS {
            problems.1.push(problem);
        }
    }

    /// Notes what is worth knowing on this side, and tells the peer.
    pub(crate) fn remark(&self, note: Note) -> Result<(), CopyError> {
        let counts = matches!(note, Note::Changed(_));
        if self.take_note(note.clone()) || counts { self.say(&Message::Note(note)) } else { Ok(()) }
    }

    /// Notes what is worth knowing; false where enough was said.
    pub(crate) fn take_note(&self, note: Note) -> bool {
        if matches!(note, Note::Changed(_)) {
            self.changed.fetch_add(1, Ordering::Relaxed);
        }
        let note = note.bounded();
        let mut notes = lock(&self.notes);
        if notes.len() >= MAX_NOTES || notes.contains(&note) {
            return false;
        }
        self.observer.event(Event::Note(&note));
        notes.push(note);
        true
    }

    /// Tells the observer what the receiver reports.
    pub(crate) fn progress(&self, progress: &protocol::Progress) {
        self.observer.event(Event::Arrived { files: progress.files, bytes: Bytes(progress.bytes) });
        self.observer.event(Event::Kept { files: progress.kept_files, bytes: Bytes(progress.kept_bytes) });
    }

    fn complete(&self, mut report: Report) -> Report {
        let problems = std::mem::take(&mut *lock(&self.problems));
        report.problem_count = problems.0;
        report.problems = problems.1;
        report.changed_files = self.changed.load(Ordering::Relaxed);
        report.left_out = self.left_out.load(Ordering::Relaxed);
        report.removed = self.removed.load(Ordering::Relaxed);
        report.notes = std::mem::take(&mut *lock(&self.notes));
        report.elapsed = clock::now() - self.started;
        report
    }

    /// Reads until the peer has closed, so that it hears why this side stops; what it says may be the better reason.
    fn drain(&self, incoming: &mut Incoming) {
        loop {
            match incoming.next() {
                Ok(Message::Bye) => return,
                Ok(_) => {}
                Err(error @ CopyError::Refused(_)) => return self.fail(error),
                Err(_) => return,
            }
        }
    }

    fn watch(&self) {
        // Nothing has been said to the transport yet.
        let mut limit = self.observer.wishes().map(|_| None);
        let mut state = lock(&self.alarm.state);
        while !state.0 && !state.1 {
            let Some(known) = limit else {
                state = self.alarm.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state = self.alarm.changed.wait_timeout(state, WISHES).unwrap_or_else(PoisonError::into_inner).0;
            let wanted = self.observer.wishes().map(|wishes| wishes.limit);
            if wanted != known && self.sends.load(Ordering::Relaxed) {
                self.transport.limit(wanted.flatten());
                limit = Some(wanted);
            }
        }
        let over = state.1;
        drop(state);
        if over {
            return;
        }
        if lock(&self.failure).is_none() {
            self.fail(CopyError::Cancelled);
        }
        let stop = lock(&self.failure).as_ref().and_then(CopyError::told);
        std::thread::scope(|scope| {
            if let Some(stop) = stop {
                // Not on this thread: if the peer is gone, the write may wait for room until the connection is aborted.
                scope.spawn(move || self.tell(&Message::Stop(stop)));
                self.wait_until_over(FAREWELL);
            } else if matches!(*lock(&self.failure), Some(CopyError::Connection(_))) {
                // A peer that gave up has closed its streams, and its reason is still on the way.
                self.wait_until_over(FAREWELL);
            }
            self.transport.abort("the copy stopped");
        });
    }

    /// Waits until the copy is over, for `time` at most.
    fn wait_until_over(&self, time: Duration) {
        let deadline = clock::now() + time;
        let mut state = lock(&self.alarm.state);
        while !state.1 && clock::now() < deadline {
            state = self.alarm.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells the peer, unless a thread stays stuck in the control stream until nobody waits any more.
    fn tell(&self, message: &Message) {
        let deadline = clock::now() + FAREWELL;
        while clock::now() < deadline {
            match self.out.try_lock() {
                Ok(mut out) => return drop(out.send(message)),
                Err(TryLockError::Poisoned(poisoned)) => return drop(poisoned.into_inner().send(message)),
                Err(TryLockError::WouldBlock) => self.wait_until_over(POLL),
            }
        }
    }
}

/// A thread that panics (an observer's code runs in it too) fails the copy.
struct FailsOnPanic<'s, 'a, T: Transport>(&'s Session<'a, T>);

impl<T: Transport> Drop for FailsOnPanic<'_, '_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(CopyError::Cancelled);
        }
    }
}

impl Out {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        self.frames.clear();
        protocol::encode(message, &mut self.frames).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.stream.write_all(&self.frames)?;
        self.stream.flush()
    }
}

impl Alarm {
    fn ring(&self) {
        lock(&self.state).0 = true;
        self.changed.notify_all();
    }

    fn over(&self) {
        lock(&self.state).1 = true;
        self.changed.notify_all();
    }
}
