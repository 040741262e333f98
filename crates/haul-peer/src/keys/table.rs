//! A text file of one entry a line, which people may edit too: comments and unknown lines are kept.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::system::{self, private};

/// Files that this process has written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Reads all lines; a file that does not exist has none.
pub fn read(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Replaces the file in one step: whoever reads it sees the old lines or the new ones.
pub fn write(path: &Path, lines: &[String]) -> io::Result<()> {
    let temporary = temporary(path);
    let mut file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&temporary)?;
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Waits until nobody else changes a file: from reading it to writing it, so that none of two changes at once is lost. Others wait until what is returned is dropped. The lock is on
/// a file beside it, for each change puts another file in the place of this one; whoever only reads needs none.
pub fn hold(path: &Path) -> io::Result<File> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    system::lock(Path::new(&lock))
}

/// A name that no other thread and no other process writes to.
fn temporary(path: &Path) -> OsString {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.{}", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
    temporary
}

/// The words of a line; none in a comment.
pub fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = if line.trim_start().starts_with('#') { "" } else { line };
    line.split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_empty_and_a_written_one_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        assert!(read(&path).unwrap().is_empty());
        let lines = ["# comment".to_owned(), "a b".to_owned()];
        write(&path, &lines).unwrap();
        assert_eq!(read(&path).unwrap(), lines);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_two_threads_write_at_once_has_two_names() {
        let path = Path::new("table");
        assert_ne!(temporary(path), temporary(path));
    }

    #[cfg(unix)]
    #[test]
    fn the_lock_is_held_by_one_and_private_and_no_link_is_followed_to_it() {
        use std::os::unix::fs::{MetadataExt as _, symlink};

        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;

        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("table"), dir.path().join("other"));
        let held = hold(&path).unwrap();
        let lock = dir.path().join("table.lock");
        let others = File::open(&lock).unwrap();
        let take = || flock(&others, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(take(), Err(Errno::WOULDBLOCK));
        drop(held);
        assert_eq!(take(), Ok(()));
        assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
        fs::remove_file(&lock).unwrap();
        symlink(&other, &lock).unwrap();
        assert!(hold(&path).is_err() && !other.exists());
    }

    #[test]
    fn comments_have_no_words() {
        assert_eq!(words("  # a b").count(), 0);
        assert_eq!(words(" a  b#c ").collect::<Vec<_>>(), ["a", "b#c"]);
    }
}
