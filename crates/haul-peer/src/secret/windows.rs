//! What the directory passes on decides who reads a file in it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// A file to append to, whole lines at a time: several programs may have the same one.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Refused: this program cannot tell here whether others may read it.
pub fn append_secret(_path: &Path) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "who may read it cannot be told on Windows"))
}

/// There are no such programs.
pub const fn has_rights_of_others() -> bool {
    false
}
