//! Directories.

use haul_files::{CopyError, Link, Observer, PullJob, Report, Store as _, StoreError, Transport};
use haul_units::Cancel;

use super::unavailable;
use crate::storage::StorageReport;

pub(crate) use haul_windows::Local;

type Dir = <Local as haul_files::Store>::Dir;

/// Fetches files to here.
pub(crate) fn pull<T: Transport>(
    link: Link<T>,
    job: &PullJob,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Report, CopyError> {
    haul_files::pull_into(link, &Local::own(), job, observer, cancel)
}

/// There is none, whatever kind it would be.
pub(crate) fn gfarm(_cancel: &Cancel) -> Result<Local, CopyError> {
    Err(unavailable("gfarm: Gfarm is not reached from Windows"))
}

/// None.
pub(crate) const fn storage(_cancel: &Cancel) -> Vec<StorageReport> {
    Vec::new()
}

/// Makes a directory that is not there.
pub(crate) fn make(dir: &Dir, name: &[u8]) -> Result<(), StoreError> {
    let made = Local::own().make_directory(dir, name, 0o777)?;
    if made.created { Ok(()) } else { Err(StoreError::InTheWay) }
}

/// Removes a name.
pub(crate) fn remove(dir: &Dir, name: &[u8], is_directory: bool) -> Result<(), StoreError> {
    Local::own().remove(dir, name, is_directory)
}

/// Gives something another name.
pub(crate) fn rename(from: (&Dir, &[u8]), to: (&Dir, &[u8])) -> Result<(), StoreError> {
    Local::own().rename(from, to)
}
