//! What is to happen in time, or the connection ends.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::Connection;

use super::CLOSE_ABORTED;

/// Closes a connection on which nothing was said in time; dropped when something was.
pub struct Deadline {
    said: Option<mpsc::Sender<()>>,
    waiting: Option<thread::JoinHandle<bool>>,
}

impl Deadline {
    /// From now on; `missing` is what the peer is told.
    pub fn start(connection: &Connection, patience: Duration, missing: &'static str) -> Self {
        let (said, heard) = mpsc::channel::<()>();
        let connection = connection.clone();
        let waiting = thread::spawn(move || {
            let over = heard.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
            if over {
                connection.close(CLOSE_ABORTED, missing);
            }
            over
        });
        Self { said: Some(said), waiting: Some(waiting) }
    }

    /// Ends the wait; whether it was over.
    pub fn has_passed(mut self) -> bool {
        drop(self.said.take());
        self.waiting.take().is_some_and(|waiting| waiting.join().unwrap_or(false))
    }
}
