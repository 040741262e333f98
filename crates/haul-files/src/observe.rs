//! What a copy tells while it runs.

use std::path::{Path, PathBuf};

use haul_units::{BitRate, Bytes};

use crate::protocol::Would;
use crate::store::Space;
use haul_faults::{FileProblem, Note, WirePath};

/// Watches a copy. Called from several threads, in the middle of the work: it must return at once.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);
    /// What is wanted of the copy at this moment; asked a few times a second, and before each block. None: nothing will ever be.
    fn wishes(&self) -> Option<Wishes> {
        None
    }
    /// Whether [`Event::Content`] is wanted.
    fn wants_content(&self) -> bool {
        false
    }
    /// Whether [`Event::FileStarted`], [`Event::FileFinished`] and [`Event::UnderWay`] are wanted; they cost a path each.
    fn wants_files(&self) -> bool {
        false
    }
}

/// What the user of a copy wants of it while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wishes {
    /// What is sent at most; none: as fast as it goes. A sender over there is told, if it has [`PACES`](crate::protocol::PACES), and keeps to the limit besides that it began with.
    pub limit: Option<BitRate>,
    /// Nothing is read, or taken from the network, until it is over.
    pub paused: bool,
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: Event<'_>) {}
}

/// What happened. All counts are totals since the start of this run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// What the client asks for; told by [`serve`](crate::serve) before it is looked at.
    Asked(Asked<'a>),
    /// What the scan has found so far: regular files and the bytes in them (holes left out).
    Found {
        /// Regular files.
        files: u64,
        /// Their data.
        bytes: Bytes,
        /// No more will be found.
        complete: bool,
    },
    /// What is written at the destination, told by the receiver about 5 times a second.
    Arrived {
        /// Files under their final name.
        files: u64,
        /// Bytes written in this run, those in unfinished files included. Falls where a file is given up.
        bytes: Bytes,
    },
    /// Bytes that were there already, from an earlier run or by `--update` or `--skip-same`; they are part of `Found`.
    Kept {
        /// Files that needed nothing.
        files: u64,
        /// Bytes, those of partly finished files included.
        bytes: Bytes,
    },
    /// First bytes of a file were read (sender) or written (receiver).
    FileStarted {
        /// As the user would name it.
        path: &'a Path,
        /// Its size; zero where it is not known.
        size: Bytes,
    },
    /// A file is on the destination's disk and is about to be read back; told by the receiver only, if
    /// [`wants_files`](Observer::wants_files).
    ReadingBack {
        /// As the user would name it.
        path: &'a Path,
    },
    /// A file has its final name.
    FileFinished {
        /// As the user would name it.
        path: &'a Path,
        /// Its size.
        size: Bytes,
    },
    /// Something was not copied; the rest goes on.
    Problem(&'a FileProblem),
    /// Something to know of a copy that goes on; [`MAX_NOTES`](crate::MAX_NOTES) at most.
    Note(&'a Note),
    /// The files of more than a block that have arrived in part, the earliest first, a few of them: takes the place of what this event said
    /// before. About 5 times a second while it changes, if [`wants_files`](Observer::wants_files); never from a peer that cannot tell.
    UnderWay(&'a [FileUnderWay]),
    /// This run goes on from what an earlier one left.
    Resumed,
    /// In a dry run: what would be done at the destination.
    Would(&'a Would),
    /// It was removed at the destination, as [`Options::delete`](crate::Options::delete) has it.
    Removed(&'a WirePath),
    /// Files that this copy brings, or that are there already and the same: told by this side before they are read, or when they have their names, if [`wants_content`](Observer::wants_content).
    Content {
        /// Its path below the target, where a source that gets another name there has the one that it has at the sender.
        name: &'a [u8],
        /// Its path on this side.
        here: &'a Path,
    },
    /// The room at the destination, told by the receiver's side only: at the start, and when files have become durable.
    Room(Space),
    /// The thread of the receiver's side that gives files their names begins with this.
    Commit(Commit),
}

/// What becomes of files that are complete, a group of them at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// They are made durable, and read back where that is wanted.
    Sync,
    /// They get their names.
    Rename,
    /// They have them.
    Done,
}

/// What a client asks for, in its own words: any bytes, as many as it likes to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// To write there.
    Write(&'a WirePath),
    /// To read these.
    Read(&'a [WirePath]),
}

/// A file that has arrived in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUnderWay {
    /// As the user would name it.
    pub path: PathBuf,
    /// Its size; zero where it is not known.
    pub size: Bytes,
    /// Bytes of it that are at the destination.
    pub arrived: Bytes,
}
