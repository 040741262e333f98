//! Modes keep others out.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// A word of the command line, or a path, from its bytes.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}

/// Whether a word is a path of this machine, though it looks like one of another: no such here.
pub(crate) const fn is_path_here(_word: &[u8]) -> bool {
    false
}

/// What the ssh of this system is to be told besides.
pub(crate) const SSH_SETTINGS: [&str; 0] = [];

/// The ssh that is started where none is named: the first in PATH.
pub(crate) fn ssh() -> OsString {
    "ssh".into()
}

/// Where this user's programs keep what they are configured with, if that is not said.
pub(crate) fn config_dir() -> Option<PathBuf> {
    config_of(std::env::var_os("HOME"), rustix::process::geteuid().is_root())
}

fn config_of(home: Option<OsString>, root: bool) -> Option<PathBuf> {
    if root {
        return Some(PathBuf::from("/etc/haul"));
    }
    home.map(PathBuf::from).filter(|home| home.is_absolute()).map(|home| home.join(".config/haul"))
}

/// Makes a directory that is this user's alone, and those above it.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A file that these options make can be read by this user alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Waits for a lock on a file, which is made; it is no link. Held until it is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = private(options.write(true).create(true).truncate(false)).custom_flags(libc::O_NOFOLLOW).open(path)?;
    match retry_on_intr(|| flock(&file, FlockOperation::LockExclusive)) {
        // Some file systems of clusters have no locks: what is there can be changed without.
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(file),
        Err(errno) => Err(errno.into()),
    }
}

/// Memory of this machine.
pub(crate) fn memory_bytes() -> u64 {
    let machine = rustix::system::sysinfo();
    (machine.totalram as u64).saturating_mul(machine.mem_unit.into())
}

/// Minutes since midnight here, at so many seconds since 1970.
pub(crate) fn local_minute(unix_seconds: u64) -> Option<i64> {
    let seconds = libc::time_t::try_from(unix_seconds).unwrap_or_default();
    // SAFETY: a `tm` is numbers and a pointer, for all of which zero is a value; it is plain data that the call writes to, and the pointer is not used.
    let (local, found) = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        let found = libc::localtime_r(&raw const seconds, &raw mut local);
        (local, !found.is_null())
    };
    found.then(|| i64::from(local.tm_hour) * 60 + i64::from(local.tm_min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_users_or_the_machines() {
        let chosen = |home: &str, root| config_of((!home.is_empty()).then(|| home.into()), root);
        assert_eq!(chosen("/root", true), Some("/etc/haul".into()));
        assert_eq!(chosen("/h", false), Some("/h/.config/haul".into()));
        assert_eq!((chosen("", false), chosen("relative", false)), (None, None));
    }
}
