//! The one place of the program that reads the clock, and that waits for nothing but time.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the program shows rates and keeps deadlines: it needs a clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// When the program began; none before it has said so.
static BEGUN: OnceLock<Instant> = OnceLock::new();

/// The program begins.
pub fn begin() {
    BEGUN.get_or_init(now);
}

/// How long the program has run.
pub fn since_begin() -> Duration {
    BEGUN.get().map_or(Duration::ZERO, |begun| now() - *begun)
}

/// Lets time pass, where nothing else is to be waited for: a sender that keeps to a rate, pings that are sent one by one.
#[expect(clippy::disallowed_methods, reason = "time itself is what is waited for")]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    unix_time().as_secs()
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "what was learned about a path is kept for a day, and an audit log says when")]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
