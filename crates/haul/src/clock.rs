//! The one clock: time as the transport counts it, from the start of the process.

use std::sync::OnceLock;
use std::time::Instant;

use haul_units::Time;

/// Nanoseconds since the clock was first read. All endpoints of a process share the origin.
#[expect(clippy::disallowed_methods, reason = "the driver is where time comes from")]
pub(crate) fn now() -> Time {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    let since = now.saturating_duration_since(*ORIGIN.get_or_init(|| now));
    // From a second on: zero is left for "before everything".
    Time::from_nanos(since.as_nanos() as u64 + 1_000_000_000)
}
