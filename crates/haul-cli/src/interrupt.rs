//! Ctrl-C, and the polite request to end.
//!
//! The first SIGINT or SIGTERM only sets a flag: whoever copies sees it, saves what can be resumed and returns. A second one ends the
//! program at once; that is safe too, for the journal survives `kill -9`. SIGPIPE stays ignored as Rust leaves it: a closed pipe
//! is an error that the writer sees, not a death.

use std::sync::atomic::{AtomicU32, Ordering};

static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Starts to watch for SIGINT and SIGTERM.
pub fn watch() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: `on_signal` touches nothing but an atomic and async-signal-safe calls; the struct is zeroed, which is a valid
        // sigaction, and outlives the call. SA_RESTART keeps other system calls unaware of the signal.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether somebody asked the program to end.
pub fn requested() -> bool {
    REQUESTS.load(Ordering::Relaxed) > 0
}

extern "C" fn on_signal(signal: libc::c_int) {
    if REQUESTS.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: _exit is async-signal-safe; no destructor runs, which is what a second request asks for.
        unsafe { libc::_exit(128 + signal) }
    }
}
