//! Whether a file is this user's own: else somebody else could have written it, and let himself in.
//!
//! The file and its directory must belong to this user or to root, and nobody else may write to them; a private key nobody else may read. The checks are on what was opened, so that
//! nothing can be put in its place between. (OpenSSH calls the same StrictModes.)

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::KeysError;
use super::owner::{self, ANY, WRITE, open_for_reading};
use super::stamp::Stamp;

/// A directory has `authorized_keys` of some people; more than this is no such file.
const MOST_BYTES: u64 = 16 << 20;

static RELAXED: AtomicBool = AtomicBool::new(false);

/// Lets files be anybody's from now on, for file systems that have no owners and modes.
pub fn relax() {
    RELAXED.store(true, Ordering::Relaxed);
}

/// Whether they may be anybody's.
pub fn is_relaxed() -> bool {
    RELAXED.load(Ordering::Relaxed)
}

/// The lines of a file of keys that nobody else could have written; none if there is no file.
pub fn read(path: &Path) -> Result<Vec<String>, KeysError> {
    read_stamped(path).map(|(lines, _)| lines)
}

/// The same, and the stamp of the file that has them.
pub(super) fn read_stamped(path: &Path) -> Result<(Vec<String>, Option<Stamp>), KeysError> {
    let Some(file) = open(path)? else { return Ok((Vec::new(), None)) };
    // Before the lines: what changes meanwhile makes this an old stamp.
    let stamp = Stamp::of(&file.metadata().map_err(|error| failed(path, error))?);
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > MOST_BYTES => Err(KeysError::TooLarge { path: path.to_owned() }),
        Ok(_) => Ok((text.lines().map(str::to_owned).collect(), Some(stamp))),
        Err(error) => Err(failed(path, error)),
    }
}

/// The stamp of a file of keys that nobody else could have written, without opening it; none if there is no file. Good for lines that were read before, not for
/// opening the file by its name next.
pub(super) fn stat(path: &Path) -> Result<Option<Stamp>, KeysError> {
    let file = match fs::metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    check(path, &file, WRITE)?;
    let directory = directory_of(path);
    check(directory, &fs::metadata(directory).map_err(|error| failed(directory, error))?, WRITE)?;
    Ok(Some(Stamp::of(&file)))
}

/// Opens a file of keys that nobody else could have written; none if there is no file.
pub fn open(path: &Path) -> Result<Option<File>, KeysError> {
    open_checked(path, WRITE)
}

/// Opens a private key that nobody else could have read or written; none if there is no file.
pub fn open_private(path: &Path) -> Result<Option<File>, KeysError> {
    open_checked(path, ANY)
}

fn open_checked(path: &Path, forbidden: u32) -> Result<Option<File>, KeysError> {
    let file = match open_for_reading(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    check_opened(path, &file, forbidden)?;
    let directory = directory_of(path);
    let opened = open_for_reading(directory).map_err(|error| failed(directory, error))?;
    check_opened(directory, &opened, WRITE)?;
    Ok(Some(file))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_opened(path: &Path, file: &File, forbidden: u32) -> Result<(), KeysError> {
    check(path, &file.metadata().map_err(|error| failed(path, error))?, forbidden)
}

fn check(path: &Path, metadata: &fs::Metadata, forbidden: u32) -> Result<(), KeysError> {
    if is_relaxed() { Ok(()) } else { owner::check(path, metadata, forbidden) }
}

fn failed(path: &Path, source: io::Error) -> KeysError {
    KeysError::Io { path: path.to_owned(), source }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_write_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("authorized_keys");
        assert!(read(&path).unwrap().is_empty(), "no file, no keys");
        fs::write(&path, "a\n").unwrap();
        for (mode, good) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false), (0o666, false)] {
            set(&path, mode);
            assert_eq!(read(&path).is_ok(), good, "{mode:o}");
        }
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains("others may write to it (mode 0666)"), "{error}");
        assert_eq!(error.remedy(), Some(format!("chmod go-w {}", path.display())));
        set(&path, 0o600);
        set(dir.path(), 0o770);
        let error = read(&path).unwrap_err();
        assert_eq!(error.remedy(), Some(format!("chmod go-w {}", dir.path().display())), "the directory counts too");
    }
}
