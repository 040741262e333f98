//! The one place of this crate that reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "addresses get head starts and logins deadlines: both need a clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the rights of a key end at a date")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Duration::ZERO, |since| since).as_secs()
}
