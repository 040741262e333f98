//! `haul tcp run`: one program whose connections have a mode.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use haul_tcp::{Choice, Tcp};

use crate::exit::{Exit, Failure};
use crate::interrupt;

/// Runs it, and ends as it ends.
pub fn run(tcp: &Tcp, mode: &Choice, command: &[OsString]) -> Result<Exit, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::new("no program is named"));
    };
    // The program gets the terminal's signals too, and ends by them; what was changed is taken back afterwards.
    interrupt::watch();
    let run = tcp.run(mode)?;
    let child = Command::new(program).args(arguments).spawn();
    let left = run.leave();
    let status = child.and_then(|mut child| child.wait());
    run.end()?;
    left?;
    let status = status.map_err(|error| Failure::new(format!("{}: {error}", program.display())))?;
    // As a shell has it: 128 and the signal.
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)))
}
