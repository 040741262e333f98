//! Stopping a copy from outside.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Hook = Box<dyn Fn() + Send>;

/// Stops a copy from another thread, for instance on SIGINT. Clones stop the same copy. What arrived stays; the same command resumes.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    hook: Mutex<Option<Hook>>,
}

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the copy: it returns [`CopyError::Cancelled`](crate::CopyError::Cancelled) soon. Not for use inside a signal handler (it takes a lock).
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        if let Some(hook) = &*self.0.hook.lock().unwrap_or_else(PoisonError::into_inner) {
            hook();
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Runs `hook` when cancelled, at once if that was before.
    pub(crate) fn on_cancel(&self, hook: impl Fn() + Send + 'static) {
        let mut slot = self.0.hook.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_cancelled() {
            hook();
        }
        *slot = Some(Box::new(hook));
    }

    /// Forgets the hook.
    pub(crate) fn release(&self) {
        *self.0.hook.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}
