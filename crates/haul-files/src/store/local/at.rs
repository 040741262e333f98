//! Names in an open directory: made, opened and removed there, no link followed.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::meta;
use crate::store::{FileKind, MadeDirectory, StoreError};
use haul_descriptors::open_at;

/// Makes a directory or takes the one that is there.
pub(super) fn make_directory(dir: &OwnedFd, name: &[u8], mode: u32) -> Result<MadeDirectory<OwnedFd>, StoreError> {
    let created = match rustix::fs::mkdirat(dir, name, meta::mode(mode)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno.into()),
    };
    let made = match open_directory(dir, name) {
        // With O_DIRECTORY a link is just no directory.
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_a_directory(dir, name)),
        result => result?,
    };
    // What was opened counts from here on: others may put something else under the name.
    let metadata = meta::metadata(&rustix::fs::fstat(&made)?);
    Ok(MadeDirectory { dir: made, metadata, created })
}

/// Opens a directory in another one, for access below it.
pub(super) fn open_directory(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    open_at(dir, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// A directory that is held for access below it, opened so that it can be read or synced.
pub(super) fn open_to_read(dir: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_at(dir, c".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

fn not_a_directory(parent: &OwnedFd, name: &[u8]) -> StoreError {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let link = stat.is_ok_and(|stat| meta::kind(&stat) == FileKind::Symlink);
    if link { StoreError::Link } else { StoreError::InTheWay }
}

/// What stands where something else is to be renamed to.
pub(super) fn in_the_way(errno: Errno) -> StoreError {
    if matches!(errno, Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) { StoreError::InTheWay } else { errno.into() }
}
