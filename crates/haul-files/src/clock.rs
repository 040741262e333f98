//! The clock, for the report and for timers; nothing that is copied depends on it.

use std::time::{Duration, Instant};

/// How often waiting threads look for a failure.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// Now.
#[expect(clippy::disallowed_methods, reason = "this crate drives files and threads; its clock is read here only")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Adds the time that `work` takes to `sum`.
pub(crate) fn timed<R>(sum: &mut Duration, work: impl FnOnce() -> R) -> R {
    let start = now();
    let result = work();
    *sum += now() - start;
    result
}
