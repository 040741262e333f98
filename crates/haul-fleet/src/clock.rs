//! The one place of this crate that reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "starts have deadlines, and jobs tell how long they take")]
pub fn now() -> Instant {
    Instant::now()
}
