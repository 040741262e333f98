//! Mutexes whose holder may have panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; another thread's panic has failed the copy already.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
