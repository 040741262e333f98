//! What a user should know of a copy although nothing is wrong with it: no problem, no effect on the exit status.

use std::cmp::Ordering;
use std::fmt;

use haul_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Why, WirePath};

/// How many notes one side of a copy passes on: each is told once, or once a file, and a peer must not fill a terminal with them.
pub const MAX_NOTES: usize = 100;

/// A word on a copy; crosses the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Note {
    /// The receiving side does not let its clients choose owners or set-id bits, and this copy has some. Told once.
    OwnersNotKept,
    /// A file was written to while it was copied, see `Changed::Take` of haul-files. Each is counted, whether it is told or not.
    Changed(ChangedFile),
    /// Other copies into the directory were interrupted, and what had arrived is kept.
    InterruptedHere {
        /// The directory.
        path: WirePath,
        /// What the oldest of them makes: its first name, if that is known.
        name: WirePath,
        /// How many.
        count: u64,
        /// What they take on the disk.
        bytes: u64,
        /// Days since anything was written for the oldest.
        days: u64,
    },
    /// A file that may be written, in a directory that may not: the new content was written over the old, and its owner and mode are the old ones.
    WrittenInPlace {
        /// The file.
        path: WirePath,
    },
    /// All is in place, and the hidden directory for what is unfinished stays, because something is in it that no copy put there.
    StageNotEmpty {
        /// The directory.
        path: WirePath,
    },
    /// What the source has not was to be removed, and was not, because the source could not be read whole; only told where that was asked for.
    NothingDeleted {
        /// The destination as it was spelled.
        path: WirePath,
    },
    /// A device, socket or named pipe in a tree: skipped, for it has no content that could be copied. Only to a peer that knows it, see `SPECIALS` of haul-files.
    Special {
        /// Its name.
        path: WirePath,
    },
    /// The receiving side has no right to set attributes outside of the namespace `user`, and this copy has some. Told once, where they are kept.
    AttributesNotKept,
    /// Where the receiving side has put what was to go to a place of its choice. Only to a peer that knows it, see `PLACES` of haul-files.
    Placed {
        /// As the user named it.
        path: WirePath,
        /// What it chose.
        at: WirePath,
        /// Whether it was there already, all of it or a part; else it is where most room is.
        was_there: bool,
    },
}

/// A file that was written to while it was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// As the user would name it.
    pub path: WirePath,
    /// Bytes that were taken: its length at the start.
    pub taken: u64,
    /// Its length when that had been done.
    pub now: u64,
    /// Where it differs from what was taken, by blocks: start and end in bytes, rising, apart. None where that is not known: without hashes, or
    /// where a part came with an earlier run.
    pub rewritten: Option<Vec<(u64, u64)>>,
}

/// Ranges that are named of a file.
const MAX_NAMED: usize = 8;
/// Longest path that is taken from a peer, in bytes.
const MAX_PATH: usize = 1 << 16;

impl Note {
    /// Cuts what a peer says to what is worth keeping.
    pub fn bounded(mut self) -> Self {
        match &mut self {
            Self::OwnersNotKept | Self::AttributesNotKept => {}
            Self::WrittenInPlace { path }
            | Self::StageNotEmpty { path }
            | Self::NothingDeleted { path }
            | Self::Special { path } => {
                path.0.truncate(MAX_PATH);
            }
            Self::Placed { path, at: name, .. } | Self::InterruptedHere { path, name, .. } => {
                path.0.truncate(MAX_PATH);
                name.0.truncate(MAX_PATH);
            }
            Self::Changed(ChangedFile { path, rewritten, .. }) => {
                path.0.truncate(MAX_PATH);
                if let Some(ranges) = rewritten {
                    // One more than is named tells that there are more.
                    ranges.truncate(MAX_NAMED + 1);
                    ranges.shrink_to_fit();
                }
            }
        }
        self
    }
}

impl fmt::Display for ChangedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, taken, now, rewritten } = self;
        let all = "all there were at the start, were taken";
        match now.cmp(taken) {
            Ordering::Greater => write!(f, "{path}: grew while it was copied: its first {taken} bytes, {all}"),
            Ordering::Less => write!(f, "{path}: was cut short while it was copied: {taken} bytes, {all}"),
            Ordering::Equal => write!(f, "{path}: changed while it was copied"),
        }?;
        let Some(ranges) = rewritten else { return f.write_str("; whether other bytes changed is not known") };
        if ranges.is_empty() {
            return Ok(());
        }
        f.write_str("; rewritten after they had been read: bytes ")?;
        for (i, (start, end)) in ranges.iter().take(MAX_NAMED).enumerate() {
            let before = if i == 0 { "" } else { ", " };
            write!(f, "{before}{start}-{}", end.saturating_sub(1))?;
        }
        if ranges.len() > MAX_NAMED { f.write_str(" and more") } else { Ok(()) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnersNotKept => f.write_str("set-id bits and owners are not kept there"),
            Self::Changed(file) => file.fmt(f),
            Self::WrittenInPlace { path } => write!(
                f,
                "{path}: written in place, because its directory may not be written to: an interrupt would have left it half written"
            ),
            Self::InterruptedHere { path, name, count, bytes, days } => interrupted(f, (path, name), *count, *bytes, *days),
            Self::StageNotEmpty { path } => write!(f, "{path}: stays, because it holds something that haul did not put there"),
            Self::NothingDeleted { path } => write!(f, "{path}: nothing was deleted, because the source could not be read whole"),
            Self::Special { path } => write!(f, "{path}: {}", Why::Special),
            Self::AttributesNotKept => f.write_str("attributes outside of user.* are not kept there"),
            Self::Placed { path, at, was_there: true } => write!(f, "{path} is {at}: it is there already"),
            Self::Placed { path, at, was_there: false } => write!(f, "{path} is {at}: most room is there"),
        }
    }
}

/// Days after which an interrupted copy is probably not wanted any more: over a weekend and a holiday it may be.
const OLD_DAYS: u64 = 7;

fn interrupted(
    f: &mut fmt::Formatter<'_>,
    (path, name): (&WirePath, &WirePath),
    count: u64,
    bytes: u64,
    days: u64,
) -> fmt::Result {
    let here = WirePath(b".".to_vec());
    let directory = if path.0.is_empty() { &here } else { path };
    let what = if name.0.is_empty() { String::new() } else { format!(" of {name}") };
    let bytes = Bytes(bytes);
    match count {
        1 => write!(f, "another interrupted copy{what} is kept in {directory}, {bytes}")?,
        _ => write!(f, "{count} other interrupted copies are kept in {directory}, {bytes}, one{what}")?,
    }
    write!(f, ": at the target `haul cp --list-interrupted {directory}` shows them")?;
    if days < OLD_DAYS {
        return Ok(());
    }
    write!(f, ", and `haul cp --discard {directory}` removes them; nobody has gone on with the oldest for {days} days")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(taken: u64, now: u64, rewritten: Option<Vec<(u64, u64)>>) -> String {
        Note::Changed(ChangedFile { path: WirePath(b"log".to_vec()), taken, now, rewritten }).bounded().to_string()
    }

    #[test]
    fn a_change_is_named_by_what_is_known_of_it() {
        let grew = "log: grew while it was copied: its first 10 bytes, all there were at the start, were taken";
        assert_eq!(said(10, 12, Some(vec![])), grew);
        assert_eq!(said(10, 12, None), format!("{grew}; whether other bytes changed is not known"));
        assert_eq!(
            said(10, 10, Some(vec![(0, 4), (8, 10)])),
            "log: changed while it was copied; rewritten after they had been read: bytes 0-3, 8-9"
        );
        let many = said(1000, 1000, Some((0..500).map(|i| (2 * i, 2 * i + 1)).collect()));
        assert!(many.ends_with("14-14 and more"), "{many}");
    }
}
