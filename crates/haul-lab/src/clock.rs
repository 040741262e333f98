//! The one place of the emulator that reads clocks.

use std::time::Duration;

use haul_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock.
pub fn now() -> Time {
    let time = clock_gettime(ClockId::Monotonic);
    Time::from_nanos((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Processor time that this thread has used, what the kernel did on its behalf included.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
