//! Another program, run to its end for the user.

use std::ffi::OsString;
use std::process::Command;

use crate::exit::{Exit, Failure};

/// Runs it, and ends as it ends; `started` is called as soon as it runs, or could not be started. It gets the terminal's signals too, and ends by them. Whoever has something to take back
/// afterwards watches for these signals before.
pub fn run(program: &OsString, arguments: &[OsString], started: impl FnOnce()) -> Result<Exit, Failure> {
    let child = Command::new(program).args(arguments).spawn();
    started();
    let status = child.and_then(|mut child| child.wait());
    status.map(Exit::from).map_err(|error| Failure::new(format!("{}: {error}", program.display())))
}
