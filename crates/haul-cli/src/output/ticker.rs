//! A thread that looks at something ten times a second, and once more at the end.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);

/// The looking thread, until [`Ticker::finish`].
pub struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    /// Makes what looks, in the thread, has it look, and ends it.
    pub fn start<T: 'static>(make: impl FnOnce() -> T + Send + 'static, look: fn(&mut T), end: fn(T)) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut watch = make();
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                look(&mut watch);
            }
            look(&mut watch);
            end(watch);
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// Shows what is left to show, and ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.end();
    }
}
