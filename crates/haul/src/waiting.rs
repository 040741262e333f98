//! Waiting: futures for the async interface, and threads that wait for the same futures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use haul_units::Time;

use crate::clock;

/// Those who wait for one thing. Spurious wake-ups are allowed: whoever wakes looks again.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Vec<Waker>);

impl Waiters {
    pub(crate) fn add(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }

    /// Moves all to `woken`, to be woken when no lock is held.
    pub(crate) fn drain_into(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.0);
    }
}

/// Unparks this thread: for whoever polls and parks in between.
pub fn thread_waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    thread_local! {
        static WAKER: Waker = Arc::new(Unpark(thread::current())).into();
    }
    WAKER.with(Waker::clone)
}

/// Runs a future on this thread, which sleeps while there is nothing to do: for whoever has no executor.
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_until(future, Time::NEVER).expect("the deadline never comes")
}

/// Runs `future` on this thread until `deadline`; `None` if it was not done by then.
pub(crate) fn block_until<F: Future>(future: F, deadline: Time) -> Option<F::Output> {
    let waker = thread_waker();
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        if deadline == Time::NEVER {
            thread::park();
            continue;
        }
        let left = deadline.since(clock::now());
        if left == Duration::ZERO {
            return None;
        }
        thread::park_timeout(left);
    }
}
