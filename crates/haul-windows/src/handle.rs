//! Handles and locks of this process.

use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windows_sys::Win32::Foundation::HANDLE;

pub(crate) fn raw(handle: &OwnedHandle) -> HANDLE {
    handle.as_raw_handle()
}

/// Locks; another thread's panic has failed the copy already.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
