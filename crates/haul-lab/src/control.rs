//! Talking to the thread of a direction: other properties, a look at its counts, the end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haul_sim::{LinkConfig, LinkStats};
use haul_units::{Bytes, Time};
use rustix::event::{EventfdFlags, eventfd};

/// What a direction has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectionStats {
    /// When these were taken.
    pub at: Time,
    /// The link's counts, in packets.
    pub link: LinkStats,
    /// IP bytes handed to the link.
    pub offered: Bytes,
    /// IP bytes that came through.
    pub delivered: Bytes,
    /// In the queue.
    pub queued: Bytes,
    /// Packets in the queue and on the way.
    pub inside_pkts: u64,
    /// Reads and writes of the devices: a super-packet is one.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// Packets for an address that nobody has, or that were no IP packets; they did not enter the link.
    pub unroutable_pkts: u64,
    /// Writes that the system refused.
    pub failed_writes: u64,
    /// How late packets came out beyond what the link asked for: altogether over all writes, and the worst.
    pub late: Duration,
    /// See `late`.
    pub latest: Duration,
    /// Processor time of the thread.
    pub cpu: Duration,
    /// Memory for packets.
    pub memory: Bytes,
}

/// Shared between the thread and whoever asks.
#[derive(Debug)]
pub struct Control {
    wake: OwnedFd,
    /// Something is asked: spares the thread a system call each turn.
    rung: AtomicBool,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    config: Option<LinkConfig>,
    stop: bool,
    asked: u64,
    answers: u64,
    stats: DirectionStats,
}

/// What the thread is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    pub config: Option<LinkConfig>,
    pub stop: bool,
    asked: u64,
}

/// A thread that takes longer than this to answer has other problems.
const PATIENCE: Duration = Duration::from_secs(2);

impl Control {
    /// Nothing asked yet.
    pub fn new() -> rustix::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wake, rung: AtomicBool::new(false), state: Mutex::default(), answered: Condvar::new() })
    }

    /// The counts as they are at this point; those of the last time if the thread does not answer.
    pub fn stats(&self) -> DirectionStats {
        let mut state = self.lock();
        state.asked += 1;
        let asked = state.asked;
        self.wake_up();
        let waiting = |state: &mut State| state.answers < asked && !state.stop;
        let (state, _) = self.answered.wait_timeout_while(state, PATIENCE, waiting).unwrap_or_else(PoisonError::into_inner);
        state.stats
    }

    /// Gives the link other properties.
    pub fn set(&self, config: LinkConfig) {
        self.lock().config = Some(config);
        self.wake_up();
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.lock().stop = true;
        self.wake_up();
    }

    /// Readable when there is a request.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The thread's side: what is asked, if anything is.
    pub fn take(&self) -> Option<Request> {
        if !self.rung.swap(false, Ordering::AcqRel) {
            return None;
        }
        // It may have been read for an earlier request.
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        let mut state = self.lock();
        Some(Request { config: state.config.take(), stop: state.stop, asked: state.asked })
    }

    /// The thread's side: the answer to a request.
    pub fn answer(&self, request: &Request, stats: DirectionStats) {
        let mut state = self.lock();
        state.answers = request.asked;
        state.stats = stats;
        self.answered.notify_all();
    }

    fn wake_up(&self) {
        // The only failure is a counter at its limit, and then it is readable.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        // After that: who sees this can read the counter, and it does not stay readable without this being set.
        self.rung.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
