//! A command of the user's at the end of a copy: `--on-success`, `--on-failure`.
//!
//! The shell runs it, with nothing on its standard input, and its output where messages go. What the copy came to is in its environment, never in the command itself: names of hosts and files are no words of a shell.

use std::process::{Command, Stdio};

use haul_copy::told::Outcome;

use crate::args::CpArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the one that is for this end, and gives the status that the command ends with: a hook of success that fails is part of what was asked for.
pub fn run(args: &CpArgs, outcome: &Outcome, failures: &[Failure], exit: Exit) -> Exit {
    let hook = if exit == Exit::Done { &args.on_success } else { &args.on_failure };
    let Some(hook) = hook.as_ref().filter(|_| !args.looks_only()) else { return exit };
    let target = args.operands.last().cloned().unwrap_or_default();
    let mut command = Command::new("sh");
    command.arg("-c").arg(hook).stdin(Stdio::null());
    command.env("HAUL_STATUS", exit.code().to_string()).env("HAUL_TARGET", target);
    command.env("HAUL_FILES", outcome.report.files.to_string()).env("HAUL_BYTES", outcome.report.bytes.as_u64().to_string());
    command.env("HAUL_ERROR", failures.first().map(|failure| failure.message.as_str()).unwrap_or_default());
    let status = command.stdout(output::for_program()).status();
    let name = if exit == Exit::Done { "--on-success" } else { "--on-failure" };
    match status {
        Ok(status) if status.success() => exit,
        Ok(status) => failed(exit, &format!("{name}: {hook}: {status}")),
        Err(error) => failed(exit, &format!("{name}: sh: {error}")),
    }
}

fn failed(exit: Exit, message: &str) -> Exit {
    output::print_failure(&Failure::new(message));
    if exit == Exit::Done { Exit::Partial } else { exit }
}
