//! The one place of this crate that reads the clock, and that waits for nothing but time.

use std::thread;
use std::time::{Duration, Instant};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "what is measured is bytes in a time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Lets time pass, where nothing else is to be waited for: a sender that keeps to a rate, pings that are sent one by one.
#[expect(clippy::disallowed_methods, reason = "time itself is what is waited for")]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}
