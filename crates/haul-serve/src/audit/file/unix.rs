//! A file whose owner and mode are judged.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use haul_peer::keys::strict;

use super::failed;
use crate::audit::AuditError;

/// Mode bits of others: to write.
const WRITE: u32 = 0o022;
/// In a directory with it, only a file's owner can take its name away.
const STICKY: u32 = 0o1000;

/// Whether an open file still has its name.
pub(super) fn is_still(path: &Path, file: &File) -> bool {
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let named = path.symlink_metadata().map(place);
    named.is_ok_and(|named| file.metadata().map(place).is_ok_and(|opened| opened == named))
}

/// Opens it, or makes it for this user alone.
pub(super) fn open(path: &Path, directory: &Path, later: Option<u32>) -> Result<File, AuditError> {
    // A named pipe is to fail, not to wait for its reader.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    let file = opened.map_err(|error| failed(path, error))?;
    let metadata = file.metadata().map_err(|error| failed(path, error))?;
    if !metadata.is_file() {
        return Err(AuditError::NotAFile { path: path.to_owned() });
    }
    if metadata.nlink() > 1 {
        return Err(AuditError::SeveralNames { path: path.to_owned() });
    }
    if strict::is_relaxed() {
        return Ok(file);
    }
    check(path, &metadata, later, 0)?;
    check(directory, &directory.metadata().map_err(|error| failed(directory, error))?, later, STICKY)?;
    Ok(file)
}

/// That nobody else could have written it; or, with `pardon`, that this does no harm.
fn check(path: &Path, metadata: &Metadata, later: Option<u32>, pardon: u32) -> Result<(), AuditError> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    let ours = [Some(0), Some(rustix::process::geteuid().as_raw()), later];
    if !ours.contains(&Some(owner)) {
        return Err(AuditError::Foreign { path: path.to_owned(), owner });
    }
    if mode & WRITE != 0 && mode & pardon == 0 {
        return Err(AuditError::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}
