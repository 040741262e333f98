//! A text file of one entry a line, which people may edit too: comments and unknown lines are kept.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use crate::system::private;

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
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let mut file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&temporary)?;
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| drop(fs::remove_file(&temporary)))
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
    fn comments_have_no_words() {
        assert_eq!(words("  # a b").count(), 0);
        assert_eq!(words(" a  b#c ").collect::<Vec<_>>(), ["a", "b#c"]);
    }
}
