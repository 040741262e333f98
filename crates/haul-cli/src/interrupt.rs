//! Ctrl-C, the polite request to end, and the terminal that goes away.
//!
//! The first SIGINT, SIGTERM or SIGHUP only asks: it cancels [`cancel`], by which whoever copies saves what can be resumed and returns. A second one ends the
//! program at once; that is safe too, for the journal survives `kill -9`. As long as nothing has arrived there is nothing to save: then the first
//! one ends the program within [`GRACE`], whatever it waits for. SIGPIPE stays ignored as Rust leaves it: a closed pipe
//! is an error that the writer sees, not a death.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use haul_units::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::{clock, terminal};

/// How long a command that has nothing to save may take to end by itself, and tell what it has to tell.
const GRACE: Duration = Duration::from_millis(700);

/// Cancelled by the first signal.
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::new);
/// The same, set by the handler itself: a second signal looks at it, whatever the threads of this program do.
static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether somebody asked for files to be read again.
static RELOAD: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether something has arrived, or is served: from then on an end takes the time that it takes.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// Starts to watch for SIGINT, SIGTERM and SIGHUP; the last stays ignored where it is (`nohup`).
pub fn watch() {
    watch_for(false);
}

/// The same for a daemon: SIGHUP asks it to read its files again; see [`reload_requested`].
pub fn watch_daemon() {
    ask_to_end(&[SIGINT, SIGTERM], false);
    // Without it there is no reload, which nothing here can mend.
    let _ = flag::register(SIGHUP, Arc::clone(&RELOAD));
}

/// The same for a command that connects to somebody: until [`under_way`] is called, the first signal ends it within a second.
pub fn watch_connecting() {
    watch_for(true);
}

/// The same for what stands in the place of ssh: whoever has started it with SIGINT ignored (a backup that ends its remote shell itself) wants that to stay.
pub fn watch_as_shell() {
    let heard: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    ask_to_end(&heard, true);
}

/// Whether files were to be read again since the last call.
pub fn reload_requested() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// What the first signal cancels.
pub fn cancel() -> &'static Cancel {
    &CANCEL
}

/// Something has arrived, or was answered: an interrupt has something to save or to tell.
pub fn under_way() {
    UNDER_WAY.store(true, Ordering::Relaxed);
}

/// Whether anything has.
pub fn is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Relaxed)
}

/// Asks this program to end, as somebody else would.
pub fn ask() {
    // It may always signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
}

/// Whether somebody asked the program to end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

fn watch_for(connecting: bool) {
    if is_ignored(SIGHUP) {
        ask_to_end(&[SIGINT, SIGTERM], connecting);
    } else {
        ask_to_end(&[SIGINT, SIGTERM, SIGHUP], connecting);
    }
}

/// Has these signals ask for the end. Where a signal cannot be watched for, it ends the program as if nobody had asked.
fn ask_to_end(signals: &[i32], connecting: bool) {
    for &signal in signals {
        // In this order: the first signal passes the first of the two, for the flag is not set yet.
        let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&REQUESTED));
        let _ = flag::register(signal, Arc::clone(&REQUESTED));
    }
    let Ok(mut asked) = Signals::new(signals) else { return };
    thread::spawn(move || {
        if asked.forever().next().is_none() {
            return;
        }
        CANCEL.cancel();
        if connecting {
            clock::pause(GRACE);
            if !is_under_way() {
                terminal::err("interrupted");
                // What was started for this command ends with it (haul_peer::spawn).
                std::process::exit(Exit::Interrupted.code().into());
            }
        }
    });
}

/// Whether a signal was ignored when this program was started: the mask `SigIgn` of proc_pid_status(5), whose lowest bit is signal 1.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
