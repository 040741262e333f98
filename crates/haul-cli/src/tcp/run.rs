//! `haul tcp run`: one program whose connections have a mode.

use std::ffi::OsString;

use haul_tcp::{Choice, Tcp};

use crate::exit::{Exit, Failure};
use crate::{interrupt, program};

/// Runs it, and ends as it ends.
pub fn run(tcp: &Tcp, mode: &Choice, command: &[OsString]) -> Result<Exit, Failure> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(Failure::new("no program is named"));
    };
    // Before anything is changed: an interrupt that comes then still has it taken back.
    interrupt::watch();
    let run = tcp.run(mode)?;
    let mut left = Ok(());
    let ended = program::run(name, arguments, || left = run.leave());
    run.end()?;
    left?;
    ended
}
