//! Ctrl-C, Ctrl-Break, and the console that is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{REQUESTED, end};
use crate::exit::Exit;

/// Whether this command connects to somebody.
static CONNECTING: AtomicBool = AtomicBool::new(false);

/// Starts to watch.
pub fn watch() {
    // Where it cannot be watched for, it ends the program as if nobody had asked.
    let _ = ctrlc::set_handler(ask);
}

/// The same for a daemon; it reads its files when it starts, and not again.
pub fn watch_daemon() {
    watch();
}

/// The same for a command that connects to somebody: until [`under_way`](super::under_way) is called, the first Ctrl-C ends it within a second.
pub fn watch_connecting() {
    CONNECTING.store(true, Ordering::Relaxed);
    watch();
}

/// Asks this program to end, as somebody else would; who asks again is not made to wait.
pub fn ask() {
    if REQUESTED.swap(true, Ordering::Relaxed) {
        std::process::exit(Exit::Interrupted.code().into());
    }
    thread::spawn(|| end(CONNECTING.load(Ordering::Relaxed)));
}
