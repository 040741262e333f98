//! Metadata of files: from the system's form into the store's and back.

use rustix::fs::{FileType, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid};

use crate::stamp::Stamp;
use crate::store::{FileKind, Identity, Metadata};

/// All that is known of a file.
pub(super) fn metadata(stat: &Stat) -> Metadata {
    let size = size(stat);
    Metadata {
        kind: kind(stat),
        size,
        data: size.min(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)),
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        mtime: Stamp { secs: stat.st_mtime, nanos: stat.st_mtime_nsec as u32 },
        changed: (stat.st_ctime, stat.st_ctime_nsec),
        #[allow(clippy::useless_conversion, reason = "on ARM64 it is a u32")]
        names: u64::from(stat.st_nlink),
        identity: identity(stat),
    }
}

/// What it is.
pub(super) fn kind(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Special,
    }
}

/// Tells it from others.
pub(super) fn identity(stat: &Stat) -> Identity {
    Identity { device: stat.st_dev, inode: stat.st_ino }
}

/// Length in bytes.
pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// For `utimensat`: this modification time, access time untouched.
pub(super) fn timestamps(mtime: Stamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: mtime.secs, tv_nsec: mtime.nanos.min(999_999_999).into() },
    }
}

/// Mode of the protocol as one of the system.
pub(super) fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits & 0o7777)
}

/// Owner and group for the system's calls; an id of all ones means "leave it" there and is left out.
pub(super) fn owner(uid: u32, gid: u32) -> (Option<Uid>, Option<Gid>) {
    ((uid != u32::MAX).then(|| Uid::from_raw(uid)), (gid != u32::MAX).then(|| Gid::from_raw(gid)))
}
