//! Rests of the threads of an injector.

use std::time::Duration;

/// Until it is time to look again: what is ahead on the line, a window, an answer of a neighbour.
#[expect(clippy::disallowed_methods, reason = "what is ahead on the line is exact; when a thread looks again is not")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
