//! The owner and the mode of a file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use haul_descriptors::promptly;
use rustix::fs::{Mode, OFlags};

use super::ANY;
use crate::keys::KeysError;

/// A handshake waits for it: copies that have all descriptors give some of theirs at once.
pub(in crate::keys) fn open_for_reading(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(promptly(|| rustix::fs::open(path, flags, Mode::empty())).map(File::from)?)
}

/// An error where it is somebody else's, or others may do to it what they must not.
pub(in crate::keys) fn check(path: &Path, metadata: &Metadata, forbidden: u32) -> Result<(), KeysError> {
    judge(path, metadata, forbidden, rustix::process::geteuid().as_raw())
}

/// What tells a file from others: where it is, and what it has there.
pub(in crate::keys) fn identity(file: &Metadata) -> ([u64; 3], [(i64, i64); 2]) {
    ([file.dev(), file.ino(), file.size()], [(file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec())])
}

fn judge(path: &Path, metadata: &Metadata, forbidden: u32, user: u32) -> Result<(), KeysError> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != user && owner != 0 {
        return Err(KeysError::Foreign { path: path.to_owned(), owner, user });
    }
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(KeysError::Open { path: path.to_owned(), mode, private: forbidden == ANY })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::keys::owner::WRITE;

    #[test]
    fn the_owner_is_this_user_or_root() {
        let dir = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(dir.path()).unwrap();
        let owner = metadata.uid();
        assert!(judge(dir.path(), &metadata, WRITE, owner).is_ok());
        let others = judge(dir.path(), &metadata, WRITE, owner + 1);
        assert_eq!(others.is_ok(), owner == 0, "root's files are good for everybody");
        // Only root can give files away.
        if owner == 0 {
            let path = dir.path().join("authorized_keys");
            fs::write(&path, "a\n").unwrap();
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            assert!(
                matches!(super::super::super::strict::read(&path), Err(KeysError::Foreign { owner: 12345, .. })),
                "not even for root"
            );
        }
    }
}
