//! A file in a directory that decides who may write to it.

use std::fs::{File, OpenOptions};
use std::path::Path;

use super::failed;
use crate::audit::AuditError;

/// Whether an open file still has its name: a file that is open for appending as here keeps it.
pub(super) fn is_still(path: &Path, _file: &File) -> bool {
    path.is_file()
}

/// Opens it, or makes it.
pub(super) fn open(path: &Path, _directory: &Path, _later: Option<u32>) -> Result<File, AuditError> {
    let file = OpenOptions::new().append(true).create(true).open(path).map_err(|error| failed(path, error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err(AuditError::NotAFile { path: path.to_owned() }),
        Err(error) => Err(failed(path, error)),
    }
}
