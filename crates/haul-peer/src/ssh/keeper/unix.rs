//! Sessions, and on Linux a signal for who is left.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

#[cfg(target_os = "linux")]
use rustix::process::Signal;

/// Gives a program a session of its own.
pub(super) fn leave(command: &mut Command) {
    let leave = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// Starts a program that the kernel ends with this process.
pub(super) fn spawn_tied(mut command: Command) -> io::Result<Child> {
    tie(&mut command);
    command.spawn()
}

#[cfg(target_os = "linux")]
fn tie(command: &mut Command) {
    let parent = rustix::process::getpid();
    let tie = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have died before.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

#[cfg(not(target_os = "linux"))]
fn tie(_command: &mut Command) {}
