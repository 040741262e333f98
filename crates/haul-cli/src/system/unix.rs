//! Unix.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use haul_tunnel::program::Local;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many descriptors as this user may have: the usual soft limit is there for programs that use select(2).
pub fn prepare() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is forbidden, what there is must do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// One that ssh has brought is run by a descriptor, and would have its number for a name.
pub fn call_this_haul() {
    let _ = rustix::thread::set_name(c"haul");
}

/// Whether nobody reads standard output any more; for so long, less than a second, that is looked at.
pub fn is_stdout_gone(patience: Duration) -> bool {
    let stdout = io::stdout();
    // Errors and hang-ups are told unasked.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    poll(&mut watched, Some(&patience)).is_ok_and(|ready| ready > 0)
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
