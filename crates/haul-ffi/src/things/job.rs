//! Copies of files and trees, with one host or with a fleet, each with a thread of its own.

mod counts;
mod inside;
mod watcher;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use haul_copy::{Copier, Job as Copy, NotCopied};
use haul_files::Cancel;
use haul_peer::Host;

use self::inside::Hearing;
use crate::failure::{Code, Failure, Outcome, system};
use crate::signals;
pub use counts::{HaulCopyProgress, HaulCopyResult, HaulFleetServer, ProblemFn, ServerFn, TellFn, WouldFn};
pub use watcher::Watcher;

/// A copy that runs, or has run.
pub struct Job {
    pub cancel: Cancel,
    state: Arc<Mutex<State>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    hearing: Arc<Hearing>,
}

#[derive(Default)]
struct State {
    result: Option<Outcome<HaulCopyResult>>,
    waiting: Vec<Waker>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Copies.
    pub fn start(host: Host, copy: Copy, copier: Copier, watcher: Watcher) -> Outcome<Self> {
        Self::spawn(copier.connector.cancel.clone(), watcher, move |watcher| run(&host, &copy, copier, watcher))
    }

    /// Does `work` in a thread of its own, which `cancel` ends.
    pub fn spawn(
        cancel: Cancel,
        watcher: Watcher,
        work: impl FnOnce(&Watcher) -> Outcome<HaulCopyResult> + Send + 'static,
    ) -> Outcome<Self> {
        let state = Arc::<Mutex<State>>::default();
        let (of_thread, hearing) = (Arc::clone(&state), watcher.hearing());
        let work = move || {
            let copied = || work(&watcher);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(copied))
                .unwrap_or_else(|_| Err(Failure::new(Code::Internal, "a bug in the library: the copy's thread panicked")));
            watcher.last();
            let mut state = lock(&of_thread);
            state.result = Some(result);
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        };
        let thread = signals::blocked(|| thread::Builder::new().name("haul-copy".into()).spawn(work));
        let thread = thread.map_err(|error| system("cannot start a thread for the copy", &error))?;
        Ok(Self { cancel, state, thread: Mutex::new(Some(thread)), hearing })
    }

    /// Ready when it is over.
    pub fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Outcome<HaulCopyResult>> {
        let mut state = lock(&self.state);
        if let Some(result) = &state.result {
            return Poll::Ready(result.clone());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Stops it and waits for its thread, unless it is one of its callbacks that asks: then it ends behind it, and calls no more.
    pub fn close(&self) {
        self.cancel.cancel();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|_| !self.hearing.end_from_inside()) {
            let _ = thread.join();
        }
    }
}

fn run(host: &Host, copy: &Copy, mut copier: Copier, watcher: &Watcher) -> Outcome<HaulCopyResult> {
    let cancel = copier.connector.cancel.clone();
    match copier.copy(host, copy, watcher) {
        Ok(copied) => Ok(HaulCopyResult::from(&copied.report)),
        Err(NotCopied::Reach(_)) if cancel.is_cancelled() => Err(Failure::new(Code::Cancelled, "the copy was cancelled")),
        Err(NotCopied::Reach(error) | NotCopied::Connection(error)) => Err(error.into()),
        Err(NotCopied::Copy(error)) => Err(error.into()),
        Err(broken @ (NotCopied::Silence(_) | NotCopied::SshEnded)) => Err(Failure::new(Code::Lost, broken.to_string())),
    }
}
