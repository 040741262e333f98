//! Whose turn it is: tests that measure would disturb each other.

use std::sync::{Condvar, Mutex, PoisonError};

static UNDER_WAY: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Held by a test while it runs.
pub struct Turn(());

impl Turn {
    /// Waits for it. One test of a program has it at a time, or as many as `HAUL_E2E_AT_ONCE` says: those that wait for a slow path disturb nobody.
    pub fn wait() -> Self {
        let at_once = std::env::var("HAUL_E2E_AT_ONCE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut under_way = ENDED.wait_while(under_way, |count| *count >= at_once.max(1)).unwrap_or_else(PoisonError::into_inner);
        *under_way += 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
