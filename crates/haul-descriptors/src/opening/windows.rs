//! There are millions of handles, so what is on the shelves is bounded by what a copy gains of it, and nobody waits for one.

use std::io;

use crate::shelf::clear_shelves;

/// Whether the process, or the system, has no handle left: `ERROR_TOO_MANY_OPEN_FILES`, or WSAEMFILE of a socket.
pub fn is_none_left(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(4 | 10024))
}

/// Tries once more where no handle is left, after what is on the shelves was closed.
///
/// # Errors
///
/// What `open` says.
pub fn promptly<R>(mut open: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    match open() {
        Err(error) if is_none_left(&error) && clear_shelves() => open(),
        result => result,
    }
}
