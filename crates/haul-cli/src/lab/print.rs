//! Texts and tables on standard output, where whoever reads may have read enough.

use std::io;

use crate::exit::{Exit, Failure};
use crate::output;

/// All that a command has to say.
pub fn print(text: &str) -> Result<Exit, Failure> {
    write(text).map(|()| Exit::Done).map_err(|error| Failure::new(format!("cannot write: {error}")))
}

/// A line or more of a table, on standard output.
pub fn write(text: &str) -> io::Result<()> {
    match output::out_bytes(text.as_bytes()) {
        // Whoever reads has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
