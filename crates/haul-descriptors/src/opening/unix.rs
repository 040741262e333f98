//! What waits for a descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::shelf::clear_shelves;

/// How long a copy waits for a descriptor that others have: as long as a daemon takes to miss a client that was killed.
const PATIENCE: Duration = Duration::from_secs(12);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);

/// Whether the process, or the system, has no descriptor left.
pub fn is_none_left(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(none_left)
}

fn none_left(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// Tries again where the process, or the system, has no descriptor left.
///
/// # Errors
///
/// What `open` says; `EMFILE` or `ENFILE` only after 12 s in which none became free.
pub fn patiently<R>(mut open: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    let mut until = None;
    loop {
        match open() {
            Err(errno) if none_left(errno) => {
                let now = now();
                if now >= *until.get_or_insert(now + PATIENCE) {
                    return Err(errno);
                }
                if !clear_shelves() {
                    thread::park_timeout(LOOK);
                }
            }
            result => return result,
        }
    }
}

/// Tries once more where no descriptor is left, after what is on the shelves was closed: for who must not wait.
///
/// # Errors
///
/// What `open` says.
pub fn promptly<R>(mut open: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    match open() {
        Err(errno) if none_left(errno) && clear_shelves() => open(),
        result => result,
    }
}

/// As [`rustix::fs::openat`], [`patiently`].
///
/// # Errors
///
/// As [`patiently`].
pub fn open_at(dir: impl AsFd, name: impl rustix::path::Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    patiently(|| rustix::fs::openat(dir.as_fd(), name, flags | OFlags::CLOEXEC, mode))
}

#[expect(clippy::disallowed_methods, reason = "how long it waits is real time")]
fn now() -> Instant {
    Instant::now()
}
