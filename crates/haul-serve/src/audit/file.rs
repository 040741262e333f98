//! A file of lines, only ever appended to, one `write` a line: lines of several processes do not mix, and one that rotates it finds whole ones.

#[cfg(unix)]
#[path = "file/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "file/windows.rs"]
mod system;

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::{AuditError, Entry};
use system::{is_still, open};

/// The file that is open, and its name.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    directory: PathBuf,
    /// A user besides root and this one that it may belong to.
    later: Option<u32>,
    file: File,
    /// The last line is not whole: the disk was full in the middle of it.
    torn: bool,
}

impl LogFile {
    /// Opens it, or makes it for this user alone.
    pub fn open(path: &Path, later: Option<u32>) -> Result<Self, AuditError> {
        let name = path.file_name().ok_or_else(|| AuditError::NotAName { path: path.to_owned() })?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = parent.canonicalize().map_err(|error| failed(parent, error))?;
        let path = directory.join(name);
        let file = open(&path, &directory, later)?;
        Ok(Self { path, directory, later, file, torn: false })
    }

    /// One that is open already.
    #[cfg(test)]
    pub fn of(path: PathBuf, file: File) -> Self {
        let directory = path.parent().expect("it is in a directory").to_owned();
        Self { path, directory, later: None, file, torn: false }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, without links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens what has its name, unless that is still the same file.
    pub fn open_again(&mut self) -> Result<(), AuditError> {
        if is_still(&self.path, &self.file) {
            return Ok(());
        }
        self.file = open(&self.path, &self.directory, self.later)?;
        self.torn = false;
        Ok(())
    }

    /// Appends a line.
    pub fn put(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = Vec::with_capacity(512);
        if self.torn {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, entry)?;
        line.push(b'\n');
        let written = loop {
            match self.file.write(&line) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.torn = written < line.len();
        if self.torn { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

fn failed(path: &Path, source: io::Error) -> AuditError {
    AuditError::Io { path: path.to_owned(), source }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::super::Event;
    use super::*;

    fn refusal(path: &Path) -> String {
        LogFile::open(path, None).expect_err("refused").to_string()
    }

    #[test]
    fn what_others_could_have_made_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        LogFile::open(&at("made"), None).unwrap();
        assert_eq!(at("made").metadata().unwrap().mode() & 0o777, 0o600);
        symlink("made", at("link")).unwrap();
        assert!(LogFile::open(&at("link"), None).is_err(), "links are not followed");
        fs::hard_link(at("made"), at("second")).unwrap();
        assert!(refusal(&at("made")).contains("hard links"));
        fs::write(at("open"), "").unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o666)).unwrap();
        assert!(refusal(&at("open")).contains("mode 0666"));
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(LogFile::open(&at("pipe"), None).is_err(), "nobody reads it");
        assert!(LogFile::open(dir.path(), None).is_err());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(refusal(&at("new")).contains("mode 0777"));
        fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
        LogFile::open(&at("other"), None).unwrap();
    }

    #[test]
    fn a_torn_line_spoils_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit");
        let mut log = LogFile::open(&path, None).unwrap();
        log.put(&Entry::of(Event::Started)).unwrap();
        log.file.write_all(b"{\"time\":\"20").unwrap();
        log.torn = true;
        log.put(&Entry::of(Event::Stopped)).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[0].ends_with('}') && lines[2].contains("stopped"), "{text}");
    }
}
