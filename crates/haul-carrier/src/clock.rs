//! Where this crate reads the clock.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "lanes are real: how long one waits is real time")]
pub fn now() -> Instant {
    Instant::now()
}
