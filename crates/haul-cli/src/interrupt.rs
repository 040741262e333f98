//! Ctrl-C, the polite request to end, and the terminal that goes away.
//!
//! The first SIGINT, SIGTERM or SIGHUP only sets a flag: whoever copies sees it, saves what can be resumed and returns. A second one ends the
//! program at once; that is safe too, for the journal survives `kill -9`. As long as nothing has arrived there is nothing to save: then the first
//! one ends the program within [`GRACE`], whatever it waits for. SIGPIPE stays ignored as Rust leaves it: a closed pipe
//! is an error that the writer sees, not a death.

use std::io::Read as _;
use std::os::fd::IntoRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::exit::Exit;
use crate::{clock, output};

/// How long a command that has nothing to save may take to end by itself, and tell what it has to tell.
const GRACE: Duration = Duration::from_millis(700);

static REQUESTS: AtomicU32 = AtomicU32::new(0);
/// Whether somebody asked for files to be read again.
static RELOAD: AtomicBool = AtomicBool::new(false);
/// Whether something has arrived, or is served: from then on an end takes the time that it takes.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
/// Where the handler writes a byte at each signal; -1 for nowhere.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// Starts to watch for SIGINT, SIGTERM and SIGHUP; the last stays ignored where it is (`nohup`).
pub fn watch() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `on_signal` touches nothing but atomics and async-signal-safe calls; the structs are zeroed, which is a valid
        // sigaction, and outlive the calls. SA_RESTART keeps other system calls unaware of the signal.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if signal == libc::SIGHUP
                && libc::sigaction(signal, std::ptr::null(), &raw mut before) == 0
                && before.sa_sigaction == libc::SIG_IGN
            {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// From now on SIGHUP asks a daemon to read its files again; see [`reload_requested`].
pub fn watch_reload() {
    // SAFETY: `on_reload` stores to an atomic, which is async-signal-safe; the struct is zeroed, which is a valid sigaction, and outlives the call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_reload as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGHUP, &raw const action, std::ptr::null_mut());
    }
}

/// Whether that was asked for since the last call.
pub fn reload_requested() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

extern "C" fn on_reload(_signal: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
}

/// The same for a command that connects to somebody: until [`under_way`] is called, the first signal ends it within a second.
pub fn watch_connecting() {
    if let Ok((mut rung, bell)) = std::io::pipe() {
        BELL.store(bell.into_raw_fd(), Ordering::Relaxed);
        thread::spawn(move || {
            if rung.read(&mut [0]).is_ok() {
                clock::pause(GRACE);
                if !UNDER_WAY.load(Ordering::Relaxed) {
                    output::print_line("interrupted");
                    // What was started for this command ends with it (ssh::spawn).
                    std::process::exit(Exit::Interrupted.code().into());
                }
            }
        });
    }
    watch();
}

/// Something has arrived, or was answered: an interrupt has something to save or to tell.
pub fn under_way() {
    UNDER_WAY.store(true, Ordering::Relaxed);
}

/// Whether anything has.
pub fn is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed)
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
    let bell = BELL.load(Ordering::Relaxed);
    if bell >= 0 {
        // SAFETY: write is async-signal-safe; one byte fits into a pipe that nobody else writes to, and errno is put back.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(bell, [0_u8].as_ptr().cast(), 1);
            *libc::__errno_location() = errno;
        }
    }
}
