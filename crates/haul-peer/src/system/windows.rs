//! What is in a user's own directories is kept from others by what these directories pass on.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::size_of;
use std::os::windows::io::AsRawHandle as _;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{FILETIME, SYSTEMTIME};
use windows_sys::Win32::Storage::FileSystem::{LOCKFILE_EXCLUSIVE_LOCK, LockFileEx};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Time::{FileTimeToSystemTime, SystemTimeToTzSpecificLocalTime};

/// A word of the command line, or a path, from its bytes. What is not UTF-8 gets a character that says so, and names nothing.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(OsStr::new(text)),
        Cow::Owned(text) => Cow::Owned(OsString::from(text)),
    }
}

/// Whether a word is a path of this machine, though it looks like one of another: `C:\x`, `c:x`, `\\?\C:\x`. A host of one letter is written `scp://c/x`.
pub(crate) const fn is_path_here(word: &[u8]) -> bool {
    match word {
        [letter, b':', ..] => letter.is_ascii_alphabetic(),
        [first, second, ..] => *first == b'\\' && *second == b'\\',
        _ => false,
    }
}

/// What the ssh of this system is to be told besides. It shares no connections, and fails where a configuration that came from elsewhere asks for that (PowerShell/Win32-OpenSSH, issue 405).
pub(crate) const SSH_SETTINGS: [&str; 2] = ["ControlMaster=no", "ControlPath=none"];

/// The ssh that is started where none is named: the first in PATH, or else that of Windows, which is in the PATH of who has logged in since it was installed.
pub(crate) fn ssh() -> OsString {
    ssh_in(std::env::var_os("PATH"), std::env::var_os("SystemRoot"))
}

fn ssh_in(path: Option<OsString>, system: Option<OsString>) -> OsString {
    let is_found = path.is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join("ssh.exe").is_file()));
    let own = system.map(|system| PathBuf::from(system).join(r"System32\OpenSSH\ssh.exe"));
    own.filter(|own| !is_found && own.is_file()).map_or_else(|| "ssh".into(), PathBuf::into_os_string)
}

/// Where this user's programs keep what they are configured with, if that is not said.
pub(crate) fn config_dir() -> Option<PathBuf> {
    std::env::var_os("APPDATA").map(PathBuf::from).filter(|dir| dir.is_absolute()).map(|dir| dir.join("haul"))
}

/// Makes a directory, and those above it.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)
}

/// The same: there are no modes.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Waits for a lock on a file, which is made. Held until it is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let mut from = OVERLAPPED::default();
    // SAFETY: a handle that is open, and where the locked bytes begin; the call waits, so nothing of it is used later.
    if unsafe { LockFileEx(file.as_raw_handle(), LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &raw mut from) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Memory of this machine.
pub(crate) fn memory_bytes() -> u64 {
    let mut found = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..MEMORYSTATUSEX::default() };
    // SAFETY: the structure says its size, and outlives the call. One that fails leaves zeros.
    unsafe { GlobalMemoryStatusEx(&raw mut found) };
    found.ullTotalPhys
}

/// Minutes since midnight here, at so many seconds since 1970.
pub(crate) fn local_minute(unix_seconds: u64) -> Option<i64> {
    /// From 1601, where the system's clock begins, in seconds; it counts 100 ns.
    const SECONDS_TO_1970: u64 = 11_644_473_600;
    let ticks = unix_seconds.checked_add(SECONDS_TO_1970)?.checked_mul(10_000_000)?;
    let time = FILETIME { dwLowDateTime: ticks as u32, dwHighDateTime: (ticks >> 32) as u32 };
    let (mut universal, mut local) = (SYSTEMTIME::default(), SYSTEMTIME::default());
    // SAFETY: all three outlive the calls; no zone stands for the machine's own.
    let is_found = unsafe {
        FileTimeToSystemTime(&raw const time, &raw mut universal) != 0
            && SystemTimeToTzSpecificLocalTime(std::ptr::null(), &raw const universal, &raw mut local) != 0
    };
    is_found.then(|| i64::from(local.wHour) * 60 + i64::from(local.wMinute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_is_that_of_the_path_and_else_the_systems() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, system) = (place.path().join("bin"), place.path().join("system"));
        let own = system.join(r"System32\OpenSSH");
        for dir in [&path, &own] {
            std::fs::create_dir_all(dir).expect("a directory");
        }
        let found = || ssh_in(Some(path.clone().into()), Some(system.clone().into()));
        assert_eq!(found(), "ssh", "whoever starts it is told that there is none");
        std::fs::write(own.join("ssh.exe"), "").expect("a file");
        assert_eq!(found(), own.join("ssh.exe").into_os_string());
        std::fs::write(path.join("ssh.exe"), "").expect("a file");
        assert_eq!(found(), "ssh");
        assert_eq!(ssh_in(None, None), "ssh");
    }

    #[test]
    fn drives_are_no_hosts() {
        for path in [r"C:\x", "c:", "z:/x", r"\\?\C:\x", r"\\server\share\x"] {
            assert!(is_path_here(path.as_bytes()), "{path}");
        }
        for other in ["host:x", "x", "", r"\x", "1:x", "me@c:x"] {
            assert!(!is_path_here(other.as_bytes()), "{other}");
        }
        assert!(local_minute(1_790_000_000).is_some_and(|minute| minute < 24 * 60));
        assert!(memory_bytes() > 1 << 20);
    }
}
