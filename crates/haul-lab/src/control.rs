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

    /// Readable when there is a request, until [`Control::on_woken`].
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The thread's side: [`Control::wake_fd`] was readable. It must not stay so, whether or not the request that made it so is there still.
    pub fn on_woken(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    /// The thread's side: what is asked, if anything is.
    pub fn take(&self) -> Option<Request> {
        if !self.rung.swap(false, Ordering::AcqRel) {
            return None;
        }
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
        // Before the thread is woken, which has nothing to wait for then: it has the higher priority, and this one may not get its processor back for long.
        self.rung.store(true, Ordering::Release);
        // The only failure is a counter at its limit, and then it is readable.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_readable(control: &Control) -> bool {
        let wake = control.wake_fd();
        poll(&mut [PollFd::new(&wake, PollFlags::IN)], Some(&rustix::event::Timespec::default())).is_ok_and(|ready| ready == 1)
    }

    #[test]
    fn a_request_is_heard_once_and_wakes_once() {
        let control = Control::new().expect("an eventfd");
        assert!(control.take().is_none() && !is_readable(&control));
        control.stop();
        // Seen before the thread was woken for it: being woken is no other request, and does not last.
        assert!(control.take().is_some_and(|request| request.stop));
        assert!(is_readable(&control));
        control.on_woken();
        assert!(!is_readable(&control) && control.take().is_none());
        control.set(LinkConfig::default());
        assert!(is_readable(&control));
        control.on_woken();
        assert!(control.take().is_some_and(|request| request.config.is_some()), "woken first, it is there all the same");
    }
}
