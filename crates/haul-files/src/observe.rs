//! What a copy tells while it runs ([`Observer`]) and when it is over ([`Report`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{FileProblem, WirePath};
use crate::note::Note;
use crate::store::Space;

/// Watches a copy. Called from several threads, in the middle of the work: it must return at once.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);
    /// Whether [`Event::FileStarted`], [`Event::FileFinished`] and [`Event::UnderWay`] are wanted; they cost a path each.
    fn wants_files(&self) -> bool {
        false
    }
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
    /// The room at the destination, told by the receiver's side only: at the start, and when files have become durable.
    Room(Space),
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

/// What a copy did, both sides together.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// Regular files copied.
    pub files: u64,
    /// Directories made or updated.
    pub directories: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Hard links made.
    pub hard_links: u64,
    /// Bytes of content that crossed the network and were written; those that were dropped again are not among them.
    pub bytes: Bytes,
    /// Bytes of partly copied files that an earlier run had left.
    pub resumed: Bytes,
    /// Files that needed nothing: finished by an earlier run, or left alone with [`Options::update`](crate::Options::update) or
    /// [`Options::skip_same`](crate::Options::skip_same).
    pub skipped_files: u64,
    /// Those of them that are newer at the destination.
    pub newer_files: u64,
    /// Bytes in them.
    pub skipped: Bytes,
    /// Files that were written to while they were copied, see [`Changed::Take`](crate::Changed::Take).
    pub changed_files: u64,
    /// Names that a [`Filter`](crate::Filter) left out; what is in a directory that was left out is not counted.
    pub left_out: u64,
    /// Bytes that were written and dropped again: of files that failed, or were read again.
    pub discarded: Bytes,
    /// How many files, links and directories were not copied.
    pub problem_count: u64,
    /// The first [`MAX_PROBLEMS`] of them.
    pub problems: Vec<FileProblem>,
    /// What there is to know besides.
    pub notes: Vec<Note>,
    /// How far the content that came was verified; none where none came: nothing was copied, or files without content.
    pub verified: Option<Verified>,
    /// What [`Verify::ReadBack`](crate::Verify::ReadBack) read, and how.
    pub read_back: ReadBack,
    /// Where the sender's threads spent their time.
    pub sender: Waits,
    /// Where the receiver's threads spent their time.
    pub receiver: Waits,
    /// From the request to the last acknowledgement.
    pub elapsed: Duration,
}

/// How far content was verified, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verified {
    /// Nothing was hashed.
    No,
    /// What arrived is what was read: compared in memory, before it was written.
    OnArrival,
    /// That, and the destination gave it back after the sync.
    ReadBack,
}

/// Files that were read back, by how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadBack {
    /// Past the page cache (`O_DIRECT`).
    pub direct_files: u64,
    /// Through the page cache, which was told to drop them first (`POSIX_FADV_DONTNEED`): their file system does no direct reading.
    pub uncached_files: u64,
}

/// How many problems a report keeps.
pub const MAX_PROBLEMS: usize = 1000;

/// Where one side's threads spent their time; the sum over its threads, so it may exceed the elapsed time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Threads that the sums below are over: divide by this for a share of the elapsed time.
    pub threads: u32,
    /// Sender: opening and reading files.
    pub read: Duration,
    /// Computing hashes.
    pub hash: Duration,
    /// Sender: the transport took no more. Receiver: no block had arrived.
    pub transport: Duration,
    /// Sender: nothing was there to read yet (the scan, or the receiver's wants, were slower).
    pub plan: Duration,
    /// Receiver: opening and writing files.
    pub write: Duration,
    /// Receiver, one thread: making data durable.
    pub sync: Duration,
    /// Receiver, the same thread: giving files their names.
    pub rename: Duration,
}
