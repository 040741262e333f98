//! A terminal is a device, and `TERM` says of which kind.

use std::os::fd::AsFd;

/// Columns and lines.
pub fn size_of(stream: impl AsFd) -> Option<(usize, usize)> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether it is no dumb one.
pub fn takes_colours() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
