//! The one place of the crate that reads a clock.

use std::time::{Duration, Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a round trip is measured in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "what is remembered over a restart of the machine is dated")]
pub(crate) fn calendar() -> SystemTime {
    SystemTime::now()
}

/// By the clock that programs in the kernel read.
pub(crate) fn since_start() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
