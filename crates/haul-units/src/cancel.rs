//! Stopping what is under way, from outside.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Hook = Box<dyn Fn() + Send>;

/// Stops a copy, a measurement or a wait from another thread, for instance on SIGINT. Clones stop the same work, for good: there is no way back.
///
/// Who works looks at [`is_cancelled`](Self::is_cancelled) where it can stop; who sleeps is woken by a hook.
///
/// ```
/// use haul_units::Cancel;
/// use std::sync::mpsc;
///
/// let cancel = Cancel::new();
/// let (wake, woken) = mpsc::channel();
/// let hook = cancel.on_cancel(move || drop(wake.send(())));
/// cancel.clone().cancel();
/// assert!(cancel.is_cancelled() && woken.recv().is_ok());
/// drop(hook);
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    hooks: Mutex<Hooks>,
}

#[derive(Default)]
struct Hooks {
    next: u64,
    list: Vec<(u64, Hook)>,
}

/// A hook that is run when its [`Cancel`] is cancelled, until this is dropped.
#[must_use = "a hook that is dropped is forgotten"]
pub struct CancelHook {
    cancel: Cancel,
    number: u64,
}

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the work. Not for use inside a signal handler: it takes a lock.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.hooks().list.iter().for_each(|(_, hook)| hook());
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Runs `hook` at every [`cancel`](Self::cancel) until what is returned is dropped; at once if that was before. The hook must be
    /// short, and must neither add hooks here nor drop them.
    pub fn on_cancel(&self, hook: impl Fn() + Send + 'static) -> CancelHook {
        let mut hooks = self.hooks();
        if self.0.cancelled.load(Ordering::SeqCst) {
            hook();
        }
        hooks.next += 1;
        let number = hooks.next;
        hooks.list.push((number, Box::new(hook)));
        CancelHook { cancel: self.clone(), number }
    }

    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelHook {
    fn drop(&mut self) {
        self.cancel.hooks().list.retain(|(number, _)| *number != self.number);
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl fmt::Debug for CancelHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelHook").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn counted(cancel: &Cancel) -> (CancelHook, Arc<AtomicU32>) {
        let count = Arc::new(AtomicU32::new(0));
        let runs = Arc::clone(&count);
        let hook = cancel.on_cancel(move || {
            runs.fetch_add(1, Ordering::SeqCst);
        });
        (hook, count)
    }

    #[test]
    fn hooks_run_until_they_are_dropped() {
        let cancel = Cancel::new();
        let ((_kept, kept), (gone, dropped)) = (counted(&cancel), counted(&cancel));
        drop(gone);
        cancel.clone().cancel();
        assert_eq!([&kept, &dropped].map(|count| count.load(Ordering::SeqCst)), [1, 0]);
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn a_hook_that_comes_late_runs_at_once() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert_eq!(counted(&cancel).1.load(Ordering::SeqCst), 1);
    }
}
