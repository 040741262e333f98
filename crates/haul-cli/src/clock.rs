//! The one place of the program that reads the clock.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the program shows rates and keeps deadlines: it needs a clock")]
pub fn now() -> Instant {
    Instant::now()
}
