//! The one place of this crate that reads the clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "how long a client stayed is part of what is said of it")]
pub fn now() -> Instant {
    Instant::now()
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "an audit log says when")]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
