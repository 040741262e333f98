//! The one place where time is read.

use std::sync::OnceLock;
use std::time::Instant;

use haul_units::Time;

/// Now, since the first call.
#[expect(clippy::disallowed_methods, reason = "a line of the real world has the time of the real world")]
pub fn now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    Time::ZERO + START.get_or_init(Instant::now).elapsed()
}
