//! The one place of this crate that reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "how busy a processor was is a part of a time")]
pub fn now() -> Instant {
    Instant::now()
}
