//! Files of keys as they were last read, for when no descriptor is left to read them.
//!
//! Copies may have all descriptors, and a handshake cannot wait for one. Then what was read last counts, where a stat says that the file is the same and that it and its directory are
//! still nobody else's to write to. Whoever can open the file reads it. Invariant: no list outlives a change of its file; a file that changed a moment ago, and whose next change might not
//! show, is not kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::stamp::Stamp;
use super::{KeysError, strict};
use crate::moment::Moment;

/// Those of this process, whose descriptors they are for.
static KEPT: Kept = Kept(Mutex::new(BTreeMap::new()));

/// The lines of a file of keys that nobody else could have written; none if there is no file.
pub fn read(path: &Path) -> Result<Vec<String>, KeysError> {
    KEPT.read(path, Moment::now(), strict::read_stamped)
}

/// The lines of files that were settled when they were read.
struct Kept(Mutex<BTreeMap<PathBuf, (Stamp, Vec<String>)>>);

impl Kept {
    /// Lines by `read`, which begins at `now`, or where that has no descriptor, those of the last time.
    fn read(
        &self,
        path: &Path,
        now: Moment,
        read: impl FnOnce(&Path) -> Result<(Vec<String>, Option<Stamp>), KeysError>,
    ) -> Result<Vec<String>, KeysError> {
        match read(path) {
            Ok((lines, stamp)) => {
                self.keep(path, &lines, stamp.filter(|stamp| stamp.is_settled(now)));
                Ok(lines)
            }
            Err(error) if error.is_want_of_descriptors() => match strict::stat(path)? {
                Some(stamp) => self.unchanged(path, stamp).ok_or(error),
                None => Ok(Vec::new()),
            },
            Err(error) => Err(error),
        }
    }

    fn keep(&self, path: &Path, lines: &[String], stamp: Option<Stamp>) {
        let mut kept = self.lock();
        match stamp {
            None => drop(kept.remove(path)),
            Some(stamp) if kept.get(path).is_some_and(|(of, _)| *of == stamp) => {}
            Some(stamp) => drop(kept.insert(path.to_owned(), (stamp, lines.to_vec()))),
        }
    }

    fn unchanged(&self, path: &Path, stamp: Stamp) -> Option<Vec<String>> {
        self.lock().get(path).filter(|(of, _)| *of == stamp).map(|(_, lines)| lines.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, (Stamp, Vec<String>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::io::Errno;

    use super::*;

    type Change = fn(&Path);

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Whatever this process's umask is.
    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        set(path, 0o600);
    }

    fn failing(path: &Path, errno: Errno) -> Result<(Vec<String>, Option<Stamp>), KeysError> {
        Err(KeysError::Io { path: path.to_owned(), source: errno.into() })
    }

    #[test]
    fn without_a_descriptor_what_was_read_last_counts_until_something_changes() {
        let settled = "2998-01-01".parse().unwrap();
        // Each shows even where it comes in the same tick of the file system's clock.
        let changes: [(&str, Change); 3] = [
            ("written to", |path| write(path, "another key\n")),
            ("replaced by one of its size", |path| {
                write(&path.with_extension("new"), "b\n");
                fs::rename(path.with_extension("new"), path).unwrap();
            }),
            ("replaced by a link", |path| {
                write(&path.with_extension("new"), "a\n");
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink(path.with_extension("new"), path).unwrap();
            }),
        ];
        for (how, change) in changes {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("authorized_keys");
            write(&path, "a\n");
            let kept = Kept(Mutex::default());
            let read = |now| kept.read(&path, now, strict::read_stamped).unwrap();
            let last = || kept.read(&path, settled, |path| failing(path, Errno::MFILE));

            assert!(last().is_err(), "it was never read");
            assert_eq!(read(Moment::now()), ["a"]);
            assert!(last().is_err(), "its next change might not show");
            assert_eq!(read(settled), ["a"]);
            assert_eq!(last().unwrap(), ["a"]);

            set(&path, 0o666);
            assert!(matches!(last(), Err(KeysError::Open { .. })), "others may write to it");
            set(&path, 0o600);
            assert_eq!(read(settled), ["a"]);
            set(dir.path(), 0o777);
            assert!(matches!(last(), Err(KeysError::Open { .. })), "others may put another in its place");
            set(dir.path(), 0o700);
            assert_eq!(last().unwrap(), ["a"]);

            change(&path);
            assert!(matches!(last(), Err(KeysError::Io { .. })), "{how}");
            fs::remove_file(&path).unwrap();
            assert!(last().unwrap().is_empty(), "no file, no keys");
        }
    }

    #[test]
    fn a_file_that_may_not_be_read_is_not_read_from_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        write(&path, "a\n");
        let kept = Kept(Mutex::default());
        let settled = "2998-01-01".parse().unwrap();
        assert_eq!(kept.read(&path, settled, strict::read_stamped).unwrap(), ["a"]);
        assert!(kept.read(&path, settled, |path| failing(path, Errno::ACCESS)).is_err());
    }
}
