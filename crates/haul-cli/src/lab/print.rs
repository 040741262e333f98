//! Texts and tables on standard output, where whoever reads may have read enough.

use std::io;
use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::output;

/// All that a command has to say.
pub fn print(text: &str) -> Result<Exit, Failure> {
    write(text).map(|()| Exit::Done).map_err(|error| Failure::new(format!("cannot write: {error}")))
}

/// The results of a measurement: written first and printed then, so that a full disk behind standard output does not lose what took hours.
pub fn keep<E>(out: &Path, written: Result<impl Sized, E>, text: &str) -> Result<(), Failure>
where
    Failure: From<E>,
{
    let printed = print(text);
    written?;
    output::print_line(&format!("Results are in {}", out.display()));
    printed.map(drop)
}

/// A line or more of a table, on standard output.
pub fn write(text: &str) -> io::Result<()> {
    match output::out_bytes(text.as_bytes()) {
        // Whoever reads has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
