//! The one place of these tests that reads a clock and sleeps: they watch real processes, which take real time.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Time since it was started.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "these tests watch real processes")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "these tests watch real processes")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until `condition` holds; false if it did not within `limit`.
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let watch = Stopwatch::start();
    loop {
        if condition() {
            return true;
        }
        if watch.elapsed() > limit {
            return false;
        }
        pause(POLL);
    }
}
