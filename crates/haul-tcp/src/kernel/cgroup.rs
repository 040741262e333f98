//! Cgroups: where the second hierarchy is, and groups of our own in it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::TcpError;
use crate::kernel::bpf::{self, Attach};

/// The root of the second hierarchy.
pub(crate) fn root() -> Result<PathBuf, TcpError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words.get(2) == Some(&"cgroup2"));
    found.and_then(|words| words.get(1).map(PathBuf::from)).ok_or(TcpError::NoCgroups)
}

/// Whether programs can be attached to this directory.
pub(crate) fn is_group(dir: &Path) -> bool {
    root().is_ok_and(|root| dir.starts_with(root)) && dir.join("cgroup.procs").exists()
}

/// Moves this process there, and what it starts from now on with it.
pub(crate) fn join(dir: &Path) -> io::Result<()> {
    fs::write(dir.join("cgroup.procs"), "0")
}

/// Has a program look at the connections ([`Attach::Sockops`]) or the packets ([`Attach::Egress`]) of the programs there, for as long as the link lives.
pub(crate) fn attach(dir: &Path, program: BorrowedFd<'_>, to: Attach) -> Result<OwnedFd, TcpError> {
    let linked = fs::File::open(dir).and_then(|dir| bpf::link(program, Some(dir.as_fd()), to));
    linked.map_err(TcpError::doing("attaching to a cgroup"))
}

/// The group of this process in the second hierarchy.
pub fn own() -> Result<PathBuf, TcpError> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    Ok(root()?.join(path))
}

/// Removes a group; those that are still in it go to the one above.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    let processes = match fs::read_to_string(dir.join("cgroup.procs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        processes => processes?,
    };
    if let Some(parent) = dir.parent() {
        for process in processes.lines() {
            // One that has ended meanwhile is where it should be.
            let _ = fs::write(parent.join("cgroup.procs"), process);
        }
    }
    fs::remove_dir(dir)
}
