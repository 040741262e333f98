//! `HAUL_TRACE` and `HAUL_KEYLOG`: what connections do, and the keys of their packets, for who looks for a fault.
//!
//! docs/use/debugging.md says what is in them. Keys are as dangerous as they are useful: the file is made for this user alone, one that others can read is refused, a program
//! that runs with rights that its user does not have ignores both variables, and whoever has set one is told so each time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use haul::diagnose;

use crate::exit::Failure;
use crate::output;

const KEYLOG: &str = "HAUL_KEYLOG";
const TRACE: &str = "HAUL_TRACE";
/// Rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Starts what the environment asks for; before any connection is made.
pub fn start() -> Result<(), Failure> {
    if runs_with_other_rights() {
        return Ok(());
    }
    if let Some(path) = asked(KEYLOG) {
        let file = open(&path).and_then(private).map_err(|error| refused(KEYLOG, &path, &error))?;
        diagnose::log_keys(Box::new(file));
        let path = path.display();
        output::print_line(&format!("{KEYLOG} is set: the keys of all connections go to {path}, and who reads it reads them"));
    }
    if let Some(path) = asked(TRACE) {
        let file = open(&path).map_err(|error| refused(TRACE, &path, &error))?;
        diagnose::trace(Box::new(file));
    }
    Ok(())
}

fn asked(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn refused(variable: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{variable}: cannot use {}: {error}", path.display()))
        .hint(format!("name a file of your own that nobody else can read, or unset {variable}"))
}

/// To append to, whole lines at a time: several programs may have the same file.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// A file that only this user can read.
fn private(file: File) -> io::Result<File> {
    let meta = file.metadata()?;
    let ours = meta.uid() == rustix::process::geteuid().as_raw();
    if meta.is_file() && ours && meta.mode() & OTHERS == 0 {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it, or it is no file of this user"))
    }
}

/// Whether the kernel has given this program rights that its user does not have: by set-id bits or file capabilities.
fn runs_with_other_rights() -> bool {
    // SAFETY: reads a number that the kernel gave this process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_go_to_a_file_of_this_user_alone_and_are_appended() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys");
        for text in ["a\n", "b\n"] {
            let mut file = open(&path).and_then(private).expect("private");
            file.write_all(text.as_bytes()).expect("room");
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), "a\nb\n");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        assert!(open(&path).and_then(private).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(open(&link).is_err());
        assert!(open(Path::new("/dev/null")).and_then(private).is_err());
    }
}
