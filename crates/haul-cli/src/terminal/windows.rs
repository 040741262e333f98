//! A terminal is a console, or a program that says by `TERM` what it is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::AsHandle;

/// The console that this program was started from, to read from and to write to.
pub fn console() -> io::Result<(File, File)> {
    let open = |name| OpenOptions::new().read(true).write(true).open(name);
    Ok((open("CONIN$")?, open("CONOUT$")?))
}

/// Columns and lines.
pub fn size_of(stream: impl AsHandle) -> Option<(usize, usize)> {
    terminal_size::terminal_size_of(stream).map(|(columns, lines)| (columns.0.into(), lines.0.into()))
}

/// Whether the console was told to take them, and did (see [`crate::system::prepare`]).
pub fn takes_colours() -> bool {
    match std::env::var_os("TERM") {
        Some(term) => term != "dumb",
        None => anstyle_query::windows::enable_ansi_colors().unwrap_or(false),
    }
}
