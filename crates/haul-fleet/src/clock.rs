//! The one place of this crate that reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "starts have deadlines, and jobs tell how long they take")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, for people who read logs.
#[expect(clippy::disallowed_methods, reason = "a log says when its job was")]
pub fn unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
