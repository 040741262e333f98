//! Metadata of files: from the system's form into the protocol's and back.

use rustix::fs::{Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid};

use crate::journal::{Made, Source};
use crate::protocol::Stamp;

/// Modification time.
pub(crate) fn mtime(stat: &Stat) -> Stamp {
    Stamp { secs: stat.st_mtime, nanos: stat.st_mtime_nsec as u32 }
}

/// Length in bytes.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Bytes that are data rather than holes, an estimate from the blocks in use.
pub(crate) fn data(stat: &Stat) -> u64 {
    size(stat).min(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512))
}

/// The state of a source file: differs when its content may.
pub(crate) fn source(stat: &Stat) -> Source {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&stat.st_ino.to_le_bytes());
    hasher.update(&stat.st_ctime.to_le_bytes());
    hasher.update(&stat.st_ctime_nsec.to_le_bytes());
    let version = hasher.finalize().as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    Source { size: size(stat), mtime: mtime(stat), version }
}

/// What tells a file that this copy made.
pub(crate) fn made(stat: &Stat) -> Made {
    Made { inode: stat.st_ino, size: size(stat), mtime: mtime(stat) }
}

/// Permission bits, with set-user-id, set-group-id and sticky.
pub(crate) fn mode_bits(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

/// For `utimensat`: this modification time, access time untouched.
pub(crate) fn timestamps(mtime: Stamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: mtime.secs, tv_nsec: mtime.nanos.min(999_999_999).into() },
    }
}

/// Mode of the protocol as one of the system.
pub(crate) fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits & 0o7777)
}

/// Owner and group for the system's calls; an id of all ones means "leave it" there and is left out.
pub(crate) fn owner(uid: u32, gid: u32) -> (Option<Uid>, Option<Gid>) {
    ((uid != u32::MAX).then(|| Uid::from_raw(uid)), (gid != u32::MAX).then(|| Gid::from_raw(gid)))
}

/// The mask of this process, read without changing it where /proc is there.
pub(crate) fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|value| u32::from_str_radix(value.trim(), 8).ok()).unwrap_or_else(|| {
        let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
        rustix::process::umask(mask);
        mask.as_raw_mode()
    })
}
