//! Metadata of files: from the system's form into the store's.

use std::mem::size_of;
use std::os::windows::io::OwnedHandle;
use std::time::{Duration, SystemTime};

use haul_files::StoreError;
use haul_files::protocol::Stamp;
use haul_files::store::{FileKind, Identity, Metadata};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT,
    FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO, FILE_INFO_BY_HANDLE_CLASS, FILE_STANDARD_INFO, FileAttributeTagInfo, FileBasicInfo,
    FileStandardInfo, GetFileInformationByHandle, GetFileInformationByHandleEx,
};

use crate::handle::raw;

/// From 1601, where the system's clock begins, to 1970, in seconds.
const SECONDS_TO_1970: i64 = 11_644_473_600;
/// The system counts times so, a second.
const TICKS: i64 = 10_000_000;
/// Modes that others see: whoever reads there reads here.
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// All that is known of what is open.
pub(crate) fn metadata(handle: &OwnedHandle) -> Result<Metadata, StoreError> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the structure outlives the call.
    if unsafe { GetFileInformationByHandle(raw(handle), &raw mut found) } == 0 {
        return Err(StoreError::from_io(&std::io::Error::last_os_error()));
    }
    let basic: FILE_BASIC_INFO = query(handle, FileBasicInfo)?;
    let standard: FILE_STANDARD_INFO = query(handle, FileStandardInfo)?;
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let is_directory = found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY != 0;
    let size = if is_directory { 0 } else { wide(found.nFileSizeHigh, found.nFileSizeLow) };
    let kind = match tag_in(found.dwFileAttributes, handle)? {
        Some(tag) if leads_elsewhere(tag) => FileKind::Symlink,
        _ if is_directory => FileKind::Directory,
        _ => FileKind::File,
    };
    let is_read_only = found.dwFileAttributes & FILE_ATTRIBUTE_READONLY != 0 && !is_directory;
    let changed = stamp(basic.ChangeTime);
    Ok(Metadata {
        kind,
        size,
        data: size.min(u64::try_from(standard.AllocationSize).unwrap_or(0)),
        mode: if is_directory { DIRECTORY_MODE } else { FILE_MODE & if is_read_only { 0o444 } else { 0o777 } },
        uid: u32::MAX,
        gid: u32::MAX,
        mtime: stamp(basic.LastWriteTime),
        changed: (changed.secs, changed.nanos.into()),
        names: u64::from(found.nNumberOfLinks),
        identity: Identity {
            device: u64::from(found.dwVolumeSerialNumber),
            inode: wide(found.nFileIndexHigh, found.nFileIndexLow),
        },
    })
}

/// What tells it from others.
pub(crate) fn identity(handle: &OwnedHandle) -> Result<Identity, StoreError> {
    metadata(handle).map(|metadata| metadata.identity)
}

/// The tag of a reparse point: what it is instead of a file or directory.
pub(crate) fn tag(handle: &OwnedHandle) -> Result<Option<u32>, StoreError> {
    let basic: FILE_BASIC_INFO = query(handle, FileBasicInfo)?;
    tag_in(basic.FileAttributes, handle)
}

fn tag_in(attributes: u32, handle: &OwnedHandle) -> Result<Option<u32>, StoreError> {
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT == 0 {
        return Ok(None);
    }
    let found: FILE_ATTRIBUTE_TAG_INFO = query(handle, FileAttributeTagInfo)?;
    Ok(Some(found.ReparseTag))
}

/// Whether what has this tag stands for another name: symbolic links, junctions, mount points (`IsReparseTagNameSurrogate`).
pub(crate) const fn leads_elsewhere(tag: u32) -> bool {
    tag & 0x2000_0000 != 0
}

/// Structures of the system that are numbers alone.
trait Plain: Default {}
impl Plain for FILE_BASIC_INFO {}
impl Plain for FILE_STANDARD_INFO {}
impl Plain for FILE_ATTRIBUTE_TAG_INFO {}

fn query<T: Plain>(handle: &OwnedHandle, class: FILE_INFO_BY_HANDLE_CLASS) -> Result<T, StoreError> {
    let mut found = T::default();
    // SAFETY: the structure is that of the class, is numbers alone, and outlives the call.
    let done = unsafe { GetFileInformationByHandleEx(raw(handle), class, (&raw mut found).cast(), size_of::<T>() as u32) };
    if done == 0 { Err(StoreError::from_io(&std::io::Error::last_os_error())) } else { Ok(found) }
}

/// A time of the system, in 100 ns since 1601.
fn stamp(ticks: i64) -> Stamp {
    Stamp { secs: ticks.div_euclid(TICKS) - SECONDS_TO_1970, nanos: (ticks.rem_euclid(TICKS) * 100) as u32 }
}

/// A time for the standard library; none for one that the system has not.
pub(crate) fn time_of(stamp: Stamp) -> Option<SystemTime> {
    let whole = Duration::from_secs(stamp.secs.unsigned_abs());
    let at = if stamp.secs < 0 { SystemTime::UNIX_EPOCH.checked_sub(whole) } else { SystemTime::UNIX_EPOCH.checked_add(whole) };
    at?.checked_add(Duration::from_nanos(stamp.nanos.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_since_1970() {
        assert_eq!(stamp(SECONDS_TO_1970 * TICKS), Stamp { secs: 0, nanos: 0 });
        assert_eq!(stamp(SECONDS_TO_1970 * TICKS - 1), Stamp { secs: -1, nanos: 999_999_900 });
        assert_eq!(
            time_of(Stamp { secs: -1, nanos: 500_000_000 }),
            SystemTime::UNIX_EPOCH.checked_sub(Duration::from_millis(500))
        );
        assert_eq!(time_of(Stamp { secs: i64::MIN, nanos: 0 }), None, "before the system's clock");
    }
}
