//! The end of a session: the last words should arrive, but nobody waits for a peer that is gone.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul_units::Cancel;

use crate::clock;

/// How long a peer may take to hear the last words.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether there is no time for that.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `farewell` on a thread of its own and waits for its end: for a while, and no longer once `hurry` is cancelled.
///
/// Whoever then closes the connection ends the thread too.
pub fn wait_for(farewell: impl FnOnce() + Send + 'static, hurry: &Cancel) {
    let (parted, when_parted) = mpsc::channel();
    thread::spawn(move || {
        farewell();
        let _ = parted.send(());
    });
    let deadline = clock::now() + PATIENCE;
    while when_parted.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if hurry.is_cancelled() || clock::now() > deadline {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farewell_is_waited_for() {
        let (done, is_done) = mpsc::channel();
        wait_for(move || done.send(()).expect("waited for"), &Cancel::new());
        is_done.try_recv().expect("done before the wait ended");
    }

    #[test]
    fn nobody_waits_once_there_is_no_time() {
        let (alive, gone) = mpsc::channel::<()>();
        let hurry = Cancel::new();
        let other = hurry.clone();
        let hurrying = thread::spawn(move || other.cancel());
        // Ends only after the wait has.
        wait_for(move || gone.recv().unwrap_or_default(), &hurry);
        drop(alive);
        hurrying.join().expect("cancels");
    }
}
