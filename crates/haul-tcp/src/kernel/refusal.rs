//! What the verifier said of a program that it refused, kept in a file: what is needed to mend it is far more than an error can show.
//!
//! One file, that of the last refusal, in a directory that only root writes to. It is written under another name, made anew, and renamed: a link that lies at either name is
//! replaced and not followed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdir, open, openat, renameat, unlinkat};

/// Where it is kept.
pub(crate) const PLACE: &str = "/var/log/haul";
const NAME: &str = "verifier.log";
const FRESH: &str = "verifier.log.new";
/// What is kept of it at most: its end has the reason.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Writes it down; the file.
pub(crate) fn keep(log: &str, place: &Path) -> io::Result<PathBuf> {
    let dir = directory(place)?;
    match unlinkat(&dir, FRESH, AtFlags::empty()) {
        Err(error) if error != rustix::io::Errno::NOENT => return Err(error.into()),
        _ => {}
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&dir, FRESH, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(end_of(log, MOST_BYTES).as_bytes())?;
    renameat(&dir, FRESH, &dir, NAME)?;
    Ok(place.join(NAME))
}

/// The directory, made where it is missing, and refused where somebody else writes to it too.
fn directory(place: &Path) -> io::Result<OwnedFd> {
    match mkdir(place, Mode::from_raw_mode(0o755)) {
        Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
        _ => {}
    }
    let dir = open(place, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let about = fstat(&dir)?;
    let own = rustix::process::geteuid().as_raw();
    if about.st_uid != own || about.st_mode & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others write to this directory too"));
    }
    Ok(dir)
}

/// At most so many bytes of its end.
pub(crate) fn end_of(text: &str, most_bytes: usize) -> &str {
    let surplus = text.len().saturating_sub(most_bytes);
    let from = (surplus..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_last_refusal_is_kept_and_nothing_is_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("log");
        let file = keep("first\n", &place).expect("kept");
        assert_eq!(file, place.join(NAME));
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        // Somebody has put links to a file of value at both names.
        let victim = dir.path().join("victim");
        fs::write(&victim, "of value").expect("written");
        fs::remove_file(&file).expect("removed");
        for name in [NAME, FRESH] {
            symlink(&victim, place.join(name)).expect("a link");
        }
        keep("second\n", &place).expect("kept");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "of value");
        assert_eq!(fs::read_to_string(&file).expect("there"), "second\n");
        assert!(fs::symlink_metadata(&file).expect("there").is_file());
        assert_eq!(fs::read_dir(&place).expect("a directory").count(), 1);
    }

    #[test]
    fn a_directory_of_others_or_a_link_to_one_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (open, link) = (dir.path().join("open"), dir.path().join("link"));
        fs::create_dir(&open).expect("made");
        symlink(&open, &link).expect("a link");
        assert!(keep("x", &link).is_err());
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("set");
        assert!(keep("x", &open).is_err());
        assert_eq!(fs::read_dir(&open).expect("a directory").count(), 0);
    }

    #[test]
    fn no_more_than_the_end_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = format!("{}the reason\n", "ä".repeat(MOST_BYTES));
        let file = keep(&log, &dir.path().join("log")).expect("kept");
        let kept = fs::read_to_string(file).expect("there");
        assert!(kept.len() <= MOST_BYTES && kept.ends_with("the reason\n"), "{}", kept.len());
    }
}
