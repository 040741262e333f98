//! Ctrl-C, the polite request to end, and the terminal that goes away.
//!
//! The first SIGINT, SIGTERM or SIGHUP only asks: it cancels [`cancel`], by which whoever copies saves what can be resumed and returns. A second one ends the
//! program at once; that is safe too, for the journal survives `kill -9`. As long as nothing has arrived there is nothing to save: then the first
//! one ends the program within [`GRACE`], whatever it waits for. SIGPIPE stays ignored as Rust leaves it: a closed pipe
//! is an error that the writer sees, not a death. On Windows Ctrl-C, Ctrl-Break and a console that is closed ask.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use haul_units::Cancel;

use crate::exit::Exit;
use crate::{clock, terminal};

#[cfg(unix)]
pub use unix::{ask, watch, watch_as_shell, watch_connecting, watch_daemon};
#[cfg(windows)]
pub use windows::{ask, watch, watch_connecting, watch_daemon};

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

/// Whether somebody asked the program to end.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Somebody has asked for the first time.
fn end(connecting: bool) {
    CANCEL.cancel();
    if connecting {
        clock::pause(GRACE);
        if !is_under_way() {
            terminal::err("interrupted");
            // What was started for this command ends with it (haul_peer::spawn).
            std::process::exit(Exit::Interrupted.code().into());
        }
    }
}
