//! The `haul` command: one module a command, around the libraries.
//!
//! ```text
//!   args        the command line, its help, its manual pages
//!   cp, ctl, fleet, perf, pace, pipe, proxy, rsh, rsync, serve, key, tcp, trace, lab, remote the commands; manual, completions: what is made of their definition
//!   config      what the configuration file adds to a command line
//!   program     another program, run to its end
//!   left_out    commands of Linux, where this is another system
//!   system      what is different there besides
//!   bootstrap   haul for a far side that has none
//!   meanwhile   what libraries tell and ask while they work
//!   orders      what `haul ctl` tells a command that runs
//!   output      progress, summary, verdict
//!   interrupt   signals, and the one `Cancel` that they cancel
//!   logging, diagnosis  HAUL_LOG; HAUL_TRACE and HAUL_KEYLOG
//!   exit        exit status, error: and hint:
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(windows, allow(dead_code, unused_imports, reason = "what only commands of Linux use"))]

mod args;
mod bootstrap;
mod clock;
mod completions;
mod config;
mod cp;
#[cfg(unix)]
mod ctl;
mod diagnosis;
mod exit;
#[cfg(unix)]
mod fleet;
mod interrupt;
mod key;
#[cfg(unix)]
mod lab;
#[cfg(windows)]
mod left_out;
mod logging;
mod manners;
mod manual;
mod meanwhile;
mod orders;
mod output;
#[cfg(unix)]
mod pace;
mod perf;
mod pipe;
mod program;
mod proxy;
mod remote;
#[cfg(unix)]
mod rsh;
#[cfg(unix)]
mod rsync;
mod serve;
mod system;
#[cfg(unix)]
mod tcp;
mod terminal;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::Command;
use crate::exit::{Exit, Failure};
#[cfg(windows)]
use crate::left_out::{ctl, fleet, lab, pace, rsh, rsync, tcp};

fn main() -> ExitCode {
    clock::begin();
    let line: Vec<OsString> = std::env::args_os().collect();
    let arguments = haul_config::behind_name(&line, &["hcp", "hperf", "ssh"]);
    let in_ssh_s_place = args::is_shell(&line);
    let command = match args::parse(line) {
        Ok(command) => command,
        Err(error) => {
            let exit = match error.use_stderr() {
                true if in_ssh_s_place => rsh::FAILED,
                true => Exit::Failed,
                false => Exit::Done,
            };
            // Help into a closed pipe is read enough.
            let _ = error.print();
            return exit.into();
        }
    };
    system::prepare();
    let exit = diagnosis::start().and_then(|()| run(command, arguments)).unwrap_or_else(|failure| {
        output::print_failure(&failure);
        if interrupt::requested() { Exit::Interrupted } else { Exit::Failed }
    });
    with_all_said(exit).into()
}

/// What was printed and is not there is not done.
fn with_all_said(exit: Exit) -> Exit {
    let Some(error) = output::unwritten() else { return exit };
    output::print_failure(&Failure::new(format!("standard output: {error}")));
    if exit == Exit::Done { Exit::Partial } else { exit }
}

/// `arguments` are those behind the command's name, to be parsed again with what the configuration file says.
fn run(command: Command, arguments: Vec<OsString>) -> Result<Exit, Failure> {
    match command {
        Command::Cp(args) => cp::run(&args, &config::command_line(arguments)?),
        Command::Ctl(args) => ctl::run(&args),
        Command::Fleet(args) => fleet::run(args, &arguments),
        Command::Pipe(args) => pipe::run(&pipe::configured(*args, arguments)?),
        Command::Proxy(args) => proxy::run(&proxy::configured(*args, arguments)?),
        Command::Rsync(args) => rsync::run(&args),
        Command::Rsh(args) => Ok(rsh::run(*args, &arguments)),
        Command::Serve(args) => serve::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Perf(args) => perf::run(&perf::configured(*args, arguments)?),
        Command::Tcp(args) => tcp::run(&args),
        Command::Pace(args) => pace::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Remote(args) => remote::run(&args),
        Command::Man { dir } => manual::man(dir.as_deref()),
        Command::Completions { shell, name } => Ok(completions::completions(shell, &name)),
    }
}
