//! Threads that wait for what polls, as long as they are willing to and nobody closes the handle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Code, Failure, Outcome};

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// Not at all.
    None,
    Until(Instant),
    Forever,
}

impl Patience {
    /// Below 0 is for ever.
    pub fn from_ms(ms: i64) -> Self {
        match u64::try_from(ms) {
            Err(_) => Self::Forever,
            Ok(0) => Self::None,
            // A time that the clock does not reach is for ever.
            Ok(ms) => now().checked_add(Duration::from_millis(ms)).map_or(Self::Forever, Self::Until),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "timeouts of the application's are of its clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Where threads wait for one handle; closing it lets them all go.
#[derive(Default)]
pub struct Gate {
    closed: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Gate {
    /// Ends all waiting, now and later.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Has a task woken when the gate is closed.
    pub fn add(&self, waker: &Waker) {
        let mut waiting = self.waiting();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Waits until `poll` is ready, and fails when the gate is closed or patience ends before.
    pub fn wait<T>(&self, patience: Patience, mut poll: impl FnMut(&mut Context<'_>) -> Poll<Outcome<T>>) -> Outcome<T> {
        let waker = haul::thread_waker();
        let mut cx = Context::from_waker(&waker);
        let mut inside = None;
        loop {
            if self.closed.load(Ordering::SeqCst) {
                return Err(Failure::new(Code::Closed, "the handle was closed by another thread"));
            }
            if let Poll::Ready(result) = poll(&mut cx) {
                return result;
            }
            if let Patience::None = patience {
                return Err(Failure::new(Code::Again, "nothing to be done without waiting"));
            }
            // Whoever closes from here on wakes this thread; whoever did before is seen in the next turn.
            if inside.is_none() {
                inside = Some(Inside::enter(self, &waker));
                continue;
            }
            park(patience)?;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread among those that wait at a gate.
struct Inside<'a> {
    gate: &'a Gate,
    waker: &'a Waker,
}

impl<'a> Inside<'a> {
    fn enter(gate: &'a Gate, waker: &'a Waker) -> Self {
        gate.add(waker);
        Self { gate, waker }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gate.waiting().retain(|waker| !waker.will_wake(self.waker));
    }
}

/// Sleeps until the thread is woken, for whatever reason.
pub fn park(patience: Patience) -> Outcome<()> {
    match patience {
        Patience::Forever => thread::park(),
        Patience::None => return Err(timed_out()),
        Patience::Until(end) => match end.saturating_duration_since(now()) {
            Duration::ZERO => return Err(timed_out()),
            left => thread::park_timeout(left),
        },
    }
    Ok(())
}

fn timed_out() -> Failure {
    Failure::new(Code::TimedOut, "timed out")
}
