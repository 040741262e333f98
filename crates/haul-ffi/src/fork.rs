//! A process that was forked has none of the library's threads, and locks that nobody will open: it is told so before it touches any.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Code, Failure, Outcome};

/// There are, or were, handles: their threads are not in a child.
static IN_USE: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// A handle is made.
pub fn note_use() {
    if !IN_USE.load(Ordering::Relaxed) {
        IN_USE.store(true, Ordering::Release);
    }
}

/// Has children marked. A child of a process without handles may go on: it is a daemon that went to the background.
pub fn watch() {
    static WATCHING: Once = Once::new();
    extern "C" fn in_child() {
        FORKED.store(IN_USE.load(Ordering::Acquire), Ordering::Release);
    }
    // SAFETY: the function only touches atomics, which a child of a process with threads may.
    WATCHING.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

pub fn check() -> Outcome<()> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Failure::new(
            Code::Forked,
            "this process was forked, and the library's threads stayed behind: exec a program, or fork before the first handle",
        ));
    }
    Ok(())
}
