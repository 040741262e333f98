//! The end of a session: the last words should arrive, but nobody waits for a peer that is gone.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul_units::Cancel;

use crate::clock;

/// How long a peer may take to hear the last words, or to go once it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether there is no time for that.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `farewell` on a thread of its own and waits for its end: for a while, and no longer once `hurry` is cancelled.
///
/// Whoever then closes the connection ends the thread too.
pub fn wait_for(farewell: impl FnOnce() + Send + 'static, hurry: &Cancel) {
    until_heard(|| {}, farewell, hurry, PATIENCE);
}

/// Waits until the peer has heard the last words, which `hears` does as long as there is a connection: it may be behind an outage, and would take the end of the connection for the end of what it does. Then, for
/// a while, until it has gone (`goes`). No longer than that once `hurry` is cancelled.
pub fn wait_until_heard(hears: impl FnOnce() + Send + 'static, goes: impl FnOnce() + Send + 'static, hurry: &Cancel) {
    until_heard(hears, goes, hurry, PATIENCE);
}

fn until_heard(hears: impl FnOnce() + Send + 'static, goes: impl FnOnce() + Send + 'static, hurry: &Cancel, patience: Duration) {
    let (step, steps) = mpsc::channel();
    thread::spawn(move || {
        hears();
        let _ = step.send(());
        goes();
    });
    let mut deadline = None;
    loop {
        match steps.recv_timeout(LOOK) {
            Ok(()) => deadline = Some(clock::now() + patience),
            Err(RecvTimeoutError::Timeout) if hurry.is_cancelled() || deadline.is_some_and(|at| clock::now() > at) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_heard_is_waited_for_and_who_has_is_soon_left() {
        let (hear, hears) = mpsc::channel::<()>();
        let (never, goes) = mpsc::channel::<()>();
        let (over, is_over) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let wait = |words: mpsc::Receiver<()>| move || words.recv().unwrap_or_default();
            until_heard(wait(hears), wait(goes), &Cancel::new(), Duration::ZERO);
            let _ = over.send(());
        });
        assert_eq!(is_over.recv_timeout(LOOK * 10), Err(RecvTimeoutError::Timeout), "it has not heard");
        hear.send(()).expect("it listens");
        // It does not go: nobody waits for that.
        waiting.join().expect("over");
        drop(never);
    }

    #[test]
    fn nobody_waits_to_be_heard_once_there_is_no_time() {
        let (never, hears) = mpsc::channel::<()>();
        let hurry = Cancel::new();
        hurry.cancel();
        until_heard(move || hears.recv().unwrap_or_default(), || {}, &hurry, PATIENCE);
        drop(never);
    }

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
