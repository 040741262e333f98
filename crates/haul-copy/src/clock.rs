//! The one place of this crate that reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "how busy a processor was is a part of a time, and logins and outages take some")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "what was learned about a path is kept for a day")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Duration::ZERO, |since| since).as_secs()
}
