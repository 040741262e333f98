//! A terminal is a device, and `TERM` says of which kind.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;

/// The terminal that this program was started from, to read from and to write to.
pub fn console() -> io::Result<(File, File)> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok((terminal.try_clone()?, terminal))
}

/// Columns and lines.
pub fn size_of(stream: impl AsFd) -> Option<(usize, usize)> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether it is no dumb one.
pub fn takes_colours() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
