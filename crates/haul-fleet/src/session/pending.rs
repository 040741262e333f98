//! A job as a future, for any executor: it runs on a thread of its own, and wakes whoever waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use haul_units::Cancel;

use super::error::SessionError;

/// A job that runs. It begins at once, whether it is awaited or not; dropped, it is cancelled, in a state that can be resumed.
#[derive(Debug)]
#[must_use = "dropped, it is cancelled"]
pub struct Pending<T> {
    shared: Arc<Mutex<Shared<T>>>,
    cancel: Cancel,
}

#[derive(Debug)]
struct Shared<T> {
    result: Option<Result<T, SessionError>>,
    waker: Option<Waker>,
}

impl<T: Send + 'static> Pending<T> {
    pub(super) fn run(work: impl FnOnce(&Cancel) -> Result<T, SessionError> + Send + 'static) -> Self {
        let pending = Self { shared: Arc::new(Mutex::new(Shared { result: None, waker: None })), cancel: Cancel::new() };
        let done = Done(pending.shared.clone());
        let cancel = pending.cancel.clone();
        let started = thread::Builder::new().spawn(move || {
            let result = work(&cancel);
            lock(&done.0).result = Some(result);
            drop(done);
        });
        // Where no thread could be had, `done` is gone too, and has said so.
        drop(started);
        pending
    }

    /// Has the job end; what it had done can be resumed.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, SessionError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut shared = lock(&self.shared);
        if let Some(result) = shared.result.take() {
            return Poll::Ready(result);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Held by the thread: however it ends, whoever waits is woken.
struct Done<T>(Arc<Mutex<Shared<T>>>);

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.result.get_or_insert(Err(SessionError::Failed));
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use haul::block_on;

    use super::*;

    #[test]
    fn what_comes_later_wakes_whoever_waits() {
        let (go, may_go) = mpsc::channel::<()>();
        let pending = Pending::run(move |_| {
            may_go.recv().expect("told");
            Ok(7)
        });
        let telling = thread::spawn(move || go.send(()));
        assert_eq!(block_on(pending).expect("a result"), 7);
        telling.join().expect("no panic").expect("heard");
    }

    #[test]
    fn dropped_it_is_cancelled_and_a_panic_is_an_error() {
        let (tell, told) = mpsc::channel();
        let pending = Pending::run(move |cancel| {
            let hook = cancel.on_cancel(move || tell.send(()).unwrap_or_default());
            while !cancel.is_cancelled() {
                thread::park_timeout(std::time::Duration::from_millis(1));
            }
            drop(hook);
            Ok(())
        });
        drop(pending);
        told.recv().expect("cancelled");
        let failing = Pending::<()>::run(|_| panic!("for the test"));
        assert!(matches!(block_on(failing), Err(SessionError::Failed)));
    }
}
