//! The one place of this crate that reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "how long a transfer took is part of its outcome")]
pub fn now() -> Instant {
    Instant::now()
}
