//! Access control lists decide, and are not judged: what is in a user's own directories others cannot write to, unless somebody has allowed it.

use std::fs::{File, Metadata};
use std::io;
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use haul_descriptors::promptly;

use crate::keys::KeysError;

pub(in crate::keys) fn open_for_reading(path: &Path) -> io::Result<File> {
    /// `FILE_FLAG_BACKUP_SEMANTICS`: directories too.
    const DIRECTORIES_TOO: u32 = 0x0200_0000;
    promptly(|| std::fs::OpenOptions::new().read(true).custom_flags(DIRECTORIES_TOO).open(path))
}

/// Nothing is known that would be an error.
#[expect(clippy::unnecessary_wraps, reason = "as where owners and modes are")]
pub(in crate::keys) fn check(_path: &Path, _metadata: &Metadata, _forbidden: u32) -> Result<(), KeysError> {
    Ok(())
}

/// What tells a file from others that have had its name, as far as the system says without opening it.
pub(in crate::keys) fn identity(file: &Metadata) -> ([u64; 3], [(i64, i64); 2]) {
    // From 1601 in 100 ns to 1970 in seconds.
    let time = |ticks: u64| ((ticks / 10_000_000) as i64 - 11_644_473_600, (ticks % 10_000_000) as i64);
    ([0, file.creation_time(), file.file_size()], [time(file.last_write_time()); 2])
}
