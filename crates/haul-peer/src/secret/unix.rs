//! Modes keep others out.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Rights of everybody but the owner.
const OTHERS: u32 = 0o077;

/// A file to append to, whole lines at a time: several programs may have the same one. A link is refused; one that is made can be read by this user alone.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// The same, if it is a plain file that only this user can read.
pub fn append_secret(path: &Path) -> io::Result<File> {
    let file = append(path)?;
    let meta = file.metadata()?;
    let ours = meta.uid() == rustix::process::geteuid().as_raw();
    if meta.is_file() && ours && meta.mode() & OTHERS == 0 {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it, or it is no file of this user"))
    }
}

/// Whether the kernel has given this program rights that its user does not have, by set-id bits or file capabilities: then its user may not say where it writes.
pub fn has_rights_of_others() -> bool {
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
    fn secrets_go_to_a_file_of_this_user_alone_and_are_appended() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("keys");
        for text in ["a\n", "b\n"] {
            append_secret(&path).expect("private").write_all(text.as_bytes()).expect("room");
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), "a\nb\n");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        assert!(append_secret(&path).is_err() && append(&path).is_ok());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(append(&link).is_err());
        assert!(append_secret(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_test_has_the_rights_of_its_user() {
        assert!(!has_rights_of_others());
    }
}
