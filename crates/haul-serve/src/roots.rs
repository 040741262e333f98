//! What a daemon exports: roots that are named to it, then those of a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haul_files::{Export, Ownership};
use haul_peer::keys::is_root_name;
use thiserror::Error;
use tracing::{info, warn};

/// Why a text names no root.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RootError {
    /// It has no `=`.
    #[error("write NAME=PATH, for instance data=/srv/data")]
    NoName,
    /// No URL could hold this name.
    #[error("`{name}` is no name for a root: use letters, digits, '-', '_' and '.'")]
    BadName {
        /// The name.
        name: String,
    },
    /// It says no directory.
    #[error("no path for the root `{name}`")]
    NoPath {
        /// The root's name.
        name: String,
    },
}

/// Why roots cannot be exported.
#[derive(Debug, Error)]
pub enum RootsError {
    /// Two have one name.
    #[error("the root `{name}` is named twice")]
    NamedTwice {
        /// The name.
        name: String,
    },
    /// A root's directory cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file that names roots cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A root is something else.
    #[error("{}: not a directory", path.display())]
    NotADirectory {
        /// What it is.
        path: PathBuf,
    },
    /// A line of the file names no root.
    #[error("{} line {line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: RootError,
    },
}

/// What `NAME=PATH[:rw[,owners]]` says. Read-only unless it ends in `:rw`; with `:rw,owners` clients choose owners and set-id bits too.
///
/// # Errors
///
/// When it says no name, a name that no URL could hold, or no path.
pub fn parse_root(text: &str) -> Result<Export, RootError> {
    let (name, path) = text.split_once('=').ok_or(RootError::NoName)?;
    let name = name.to_owned();
    if !is_root_name(&name) {
        return Err(RootError::BadName { name });
    }
    let modes = [(":rw,owners", true, Ownership::Allow), (":rw", true, Ownership::Mask), (":ro", false, Ownership::Mask)];
    let found =
        modes.into_iter().find_map(|(suffix, writable, ownership)| Some((path.strip_suffix(suffix)?, writable, ownership)));
    let (path, writable, ownership) = found.unwrap_or((path, false, Ownership::Mask));
    if path.is_empty() {
        return Err(RootError::NoPath { name });
    }
    Ok(Export { name, path: PathBuf::from(path), writable, ownership })
}

/// The roots, and those of the file after them, each a directory that exists, no name twice.
pub fn read(named: &[Export], file: Option<&Path>) -> Result<Vec<Export>, RootsError> {
    let mut exports: Vec<Export> = Vec::new();
    let in_file = file.map(in_file).transpose()?.unwrap_or_default();
    for root in named.iter().cloned().chain(in_file) {
        if exports.iter().any(|export| export.name == root.name) {
            return Err(RootsError::NamedTwice { name: root.name });
        }
        let path = fs::canonicalize(&root.path).map_err(|source| RootsError::Io { path: root.path.clone(), source })?;
        if !path.is_dir() {
            return Err(RootsError::NotADirectory { path: root.path });
        }
        exports.push(Export { path, ..root });
    }
    Ok(exports)
}

/// Says what is exported, and what of it clients will find shut.
pub fn tell(exports: &[Export]) {
    for export in exports {
        info!(root = export.name, path = %export.path.display(), writable = export.writable, "exporting");
        if let Some(error) = shut(&export.path) {
            warn!(root = export.name, path = %export.path.display(), %error, "this user cannot list the root, and so no client can");
        }
    }
}

/// Why a root cannot be listed.
fn shut(path: &Path) -> Option<io::Error> {
    fs::read_dir(path).err()
}

/// The roots of the file; a line that starts with `#` is a comment, and a line that is not right spoils all: what it was to say is not known.
fn in_file(path: &Path) -> Result<Vec<Export>, RootsError> {
    let text = fs::read_to_string(path).map_err(|source| RootsError::File { path: path.to_owned(), source })?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let wanted = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read =
        |(line, text): (usize, &str)| parse_root(text).map_err(|source| RootsError::Line { path: path.to_owned(), line, source });
    wanted.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_read_only_unless_it_says_otherwise() {
        let export = |name: &str, path: &str, writable| {
            Ok(Export { name: name.into(), path: path.into(), writable, ownership: Ownership::Mask })
        };
        assert_eq!(parse_root("pub=/srv/pub"), export("pub", "/srv/pub", false));
        assert_eq!(parse_root("in-box.2=/srv/a=b:rw"), export("in-box.2", "/srv/a=b", true));
        assert_eq!(parse_root("x=/srv/x:ro"), export("x", "/srv/x", false));
        let free = parse_root("x=/srv/x:rw,owners").unwrap();
        assert!(free.writable && free.ownership == Ownership::Allow && free.path == Path::new("/srv/x"));
    }

    #[test]
    fn refuses_names_that_no_url_could_hold() {
        for text in ["/srv", "=/srv", "a/b=/srv", "..=/srv", "a b=/srv", "x=", "x=:rw"] {
            assert!(parse_root(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_root_that_cannot_be_listed_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        assert!(shut(dir.path()).is_none());
        // Root lists everything that is there.
        assert_eq!(shut(&dir.path().join("gone")).map(|error| error.kind()), Some(io::ErrorKind::NotFound));
    }

    #[test]
    fn a_line_that_is_not_right_spoils_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("roots");
        let here = dir.path().display();
        fs::write(&file, format!("# these\n\n one={here} \n")).unwrap();
        assert_eq!(read(&[], Some(&file)).unwrap().len(), 1);
        let one = [parse_root(&format!("one={here}")).unwrap()];
        assert!(matches!(read(&one, Some(&file)), Err(RootsError::NamedTwice { name }) if name == "one"));
        fs::write(&file, format!("one={here}\nnonsense\n")).unwrap();
        assert!(matches!(read(&[], Some(&file)), Err(RootsError::Line { line: 2, source: RootError::NoName, .. })));
        fs::write(&file, format!("file={}\n", file.display())).unwrap();
        assert!(matches!(read(&[], Some(&file)), Err(RootsError::NotADirectory { .. })));
    }
}
