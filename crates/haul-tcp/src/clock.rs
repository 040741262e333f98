//! The one place of the crate that reads a clock.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a round trip is measured in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
