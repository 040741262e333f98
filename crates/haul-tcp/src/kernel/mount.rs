//! A bpf file system: what has a name there outlives the process that made it, and a restart of the machine takes it away.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::statfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// `BPF_FS_MAGIC`.
const MAGIC: u64 = 0xcafe_4a11;

pub(crate) fn is_mounted(at: &Path) -> bool {
    statfs(at).is_ok_and(|about| about.f_type as u64 & 0xffff_ffff == MAGIC)
}

/// Whether what is mounted here is seen by those that started this process: `ip netns exec` gives its program mounts of its own.
pub(crate) fn is_shared() -> bool {
    /// More ancestors than any shell in a shell has.
    const GENERATIONS: usize = 64;
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own = of("self");
    let mut process = "self".to_owned();
    for _ in 0..GENERATIONS {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let Some(parent) = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim) else { break };
        // One that may not be looked at tells nothing.
        if of(parent).is_some_and(|theirs| Some(theirs) != own) {
            return false;
        }
        parent.clone_into(&mut process);
    }
    true
}

pub(crate) fn mount_bpf(at: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(at)?;
    if is_mounted(at) {
        return Ok(());
    }
    Ok(mount("haul", at, "bpf", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, Some(c"mode=0700"))?)
}

pub(crate) fn unmount_bpf(at: &Path) -> io::Result<()> {
    if is_mounted(at) {
        unmount(at, UnmountFlags::DETACH)?;
    }
    match fs::remove_dir(at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
