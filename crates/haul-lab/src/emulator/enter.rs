//! A command on a host: in its network namespace, among the emulator's processes.

use std::env;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::talk::Namespaces;

/// Why a command cannot be run on a host.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The system refuses.
    #[error("cannot enter the WAN's namespaces: {0}")]
    Namespaces(#[source] io::Error),
    /// No word.
    #[error("no command to run")]
    NoCommand,
}

/// A command in these namespaces, not started yet; it is killed when this process ends.
///
/// From then on all children of the calling thread go to that process namespace, also those of other commands: this is for a process that does nothing else.
pub fn command(namespaces: &Namespaces, words: &[OsString]) -> Result<Command, EnterError> {
    let failed = EnterError::Namespaces;
    let (program, args) = words.split_first().ok_or(EnterError::NoCommand)?;
    // SAFETY: concerns only the children of this process.
    if unsafe { libc::setns(namespaces.pid.as_raw_fd(), libc::CLONE_NEWPID) } < 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    let here = env::current_dir().unwrap_or_else(|_| "/".into());
    let here = CString::new(here.into_os_string().into_vec()).map_err(|error| failed(error.into()))?;
    // Held by the command, for as long as it can be started.
    let clone = |fd: &std::os::fd::OwnedFd| fd.try_clone().map_err(failed);
    let (mnt, net) = (clone(&namespaces.mnt)?, clone(&namespaces.net)?);
    let enter = move || {
        // SAFETY: system calls on descriptors and memory that outlive them. Entering mounts goes to their root, from where the way
        // back is by name.
        let entered = unsafe {
            libc::setns(mnt.as_raw_fd(), libc::CLONE_NEWNS) == 0
                && libc::setns(net.as_raw_fd(), libc::CLONE_NEWNET) == 0
                && libc::chdir(here.as_ptr()) == 0
                && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) == 0
        };
        if entered { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    let mut command = Command::new(program);
    command.args(args);
    // SAFETY: between fork and exec the closure makes only async-signal-safe system calls.
    unsafe { command.pre_exec(enter) };
    Ok(command)
}
