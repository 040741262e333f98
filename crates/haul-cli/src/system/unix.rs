//! Unix.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use haul_tunnel::program::Local;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many descriptors as this user may have: the usual soft limit is there for programs that use select(2).
pub fn prepare() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is forbidden, what there is must do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Whether what goes wrong, goes wrong as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Standard input, if it is to be read, and standard output, without buffers of their own.
pub fn standard(reads: bool) -> io::Result<Local> {
    let input = if reads { Some(io::stdin().as_fd().try_clone_to_owned()?) } else { None };
    Ok(Local { input, output: io::stdout().as_fd().try_clone_to_owned()? })
}

/// As a shell has it: the program's own, or 128 and the signal that ended it.
pub fn status_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
