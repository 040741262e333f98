//! One test at a time: they measure time and memory on one machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test whose turn it is.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
