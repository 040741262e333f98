//! What changes when a file does, as a stat tells it, which takes no descriptor.

use std::fs::Metadata;
use std::time::Duration;

use super::owner::identity;
use crate::moment::Moment;

/// Two changes within this time may leave the same times: the coarsest clock of a file system is FAT's.
const GRAIN: Duration = Duration::from_secs(2);

/// A file at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    /// Seconds and nanoseconds since 1970.
    written: (i64, i64),
    /// The same of anything about it, its mode and owner too; nobody can set this one.
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file that this is about.
    pub fn of(file: &Metadata) -> Self {
        let ([device, inode, size_bytes], [written, changed]) = identity(file);
        Self { device, inode, size_bytes, written, changed }
    }

    /// Whether every change from `now` on gives the file another stamp: the last one was long enough ago.
    pub fn is_settled(&self, now: Moment) -> bool {
        let changed = Moment::of_unix_seconds(u64::try_from(self.changed.0).unwrap_or(0));
        // Both are whole seconds, so that more is more by the clock too.
        now.since(changed) > GRAIN
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_change_of_the_mode_alone_shows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "x").unwrap();
        let before = Stamp::of(&path.metadata().unwrap());
        // As often as the file system's clock needs to move on.
        let shows = (0..1_000_000).any(|turn| {
            fs::set_permissions(&path, Permissions::from_mode(0o600 + turn % 2)).unwrap();
            Stamp::of(&path.metadata().unwrap()) != before
        });
        assert!(shows);
    }

    #[test]
    fn a_file_is_settled_when_its_clock_has_moved_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut stamp = Stamp::of(&dir.path().metadata().unwrap());
        stamp.changed = (1000, 999_999_999);
        for (now, settled) in [(0, false), (1000, false), (1002, false), (1003, true)] {
            assert_eq!(stamp.is_settled(Moment::of_unix_seconds(now)), settled, "{now}");
        }
    }
}
