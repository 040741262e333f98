//! What a job tells while it runs ([`JobObserver`]) and when it is over ([`JobReport`]).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_copy::PathView;
use haul_files::{FileProblem, Note, Report};
use haul_units::{BitRate, Bytes};

use haul_plan::Why;

/// Watches a job. Called from several threads, in the middle of the work: it must return at once.
pub trait JobObserver: Send + Sync {
    /// Something happened.
    fn event(&self, event: &JobEvent<'_>);
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl JobObserver for Unwatched {
    fn event(&self, _event: &JobEvent<'_>) {}
}

/// What happened. Members are told by their names. All counts are totals since the start of the job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum JobEvent<'a> {
    /// A member has answered and can be worked with.
    Up {
        /// Which.
        member: &'a str,
        /// Its round-trip time.
        rtt: Duration,
    },
    /// A member can be worked with no longer. What it had to do goes to others, where others can do it.
    Down {
        /// Which.
        member: &'a str,
        /// Why, in words.
        why: &'a str,
    },
    /// What a member has of what was asked for.
    Listed {
        /// Which.
        member: &'a str,
        /// Regular files.
        files: u64,
        /// Bytes in them.
        bytes: Bytes,
    },
    /// What the job is about; replicas count once.
    Found {
        /// Regular files.
        files: u64,
        /// Bytes in them.
        bytes: Bytes,
        /// No more will be found.
        complete: bool,
    },
    /// What was there already and is not transferred; part of `Found`.
    Kept {
        /// Regular files that need nothing.
        files: u64,
        /// Bytes, those of unfinished files included.
        bytes: Bytes,
    },
    /// A member was told to send this, or was given it to keep.
    Ordered {
        /// Which.
        member: &'a str,
        /// The file, below the root of the job.
        path: &'a Path,
        /// Which bytes of it.
        range: Range<u64>,
        /// Why it was told.
        why: Why,
    },
    /// All that was ordered by one `Ordered`, or what was left of it for this member, has come or has gone.
    Delivered {
        /// Which.
        member: &'a str,
        /// The file.
        path: &'a Path,
        /// Which bytes of it.
        range: Range<u64>,
    },
    /// A member cannot give a file that it said it has: it is gone there, or has changed, or what came of it was damaged. Others that have it are asked.
    Unfit {
        /// Which.
        member: &'a str,
        /// The file.
        path: &'a Path,
        /// What is wrong.
        why: &'a haul_files::Why,
    },
    /// A file is complete, checked, on disk and has its name; on this member, if the job is an upload.
    FileFinished {
        /// Where, if the job is an upload.
        member: Option<&'a str>,
        /// The file.
        path: &'a Path,
        /// Its size.
        size: Bytes,
    },
    /// How far everything is; about five times a second.
    Progress(&'a Snapshot),
    /// Something was not transferred; the rest goes on.
    Problem(&'a FileProblem),
    /// Something to know of a job that goes on.
    Note {
        /// Who says it; none: the client's own side.
        member: Option<&'a str>,
        /// What.
        note: &'a Note,
    },
}

/// How far a job is.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Since the job began.
    pub elapsed: Duration,
    /// Regular files there are, so far.
    pub files: u64,
    /// Bytes in them.
    pub bytes: Bytes,
    /// Files that are done, those that needed nothing included.
    pub files_done: u64,
    /// Bytes that are at their destination, those that were there already included.
    pub bytes_done: Bytes,
    /// Of these, bytes that were there already.
    pub bytes_kept: Bytes,
    /// Bytes that came or went for nothing.
    pub wasted: Bytes,
    /// The members, in the order in which they were given.
    pub members: Vec<MemberView>,
}

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberState {
    /// Not heard of yet.
    #[default]
    Starting,
    /// Says what it has.
    Listing,
    /// Sends or receives.
    Busy,
    /// Has nothing to do at this moment, and may get something.
    Idle,
    /// Has work and has been silent for too long.
    Stalled,
    /// There is nothing more for it to do.
    Done,
    /// Gone.
    Down,
}

/// One member in a [`Snapshot`].
#[derive(Debug, Clone, Default)]
pub struct MemberView {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: MemberState,
    /// The file that it works on, if there is one.
    pub file: Option<PathBuf>,
    /// Bytes that came from it, or went to it, and count.
    pub delivered: Bytes,
    /// Files in these that are complete.
    pub files: u64,
    /// Bytes that it has been given to do and that are not done.
    pub outstanding: Bytes,
    /// Of late.
    pub rate: BitRate,
    /// The path to it, and how busy it is.
    pub path: PathView,
}

/// What a job did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct JobReport {
    /// What became of the files, all members together.
    pub files: Report,
    /// Bytes that came or went for nothing: sent twice, or by members that died.
    pub wasted: Bytes,
    /// What each member did, in the order in which they were given.
    pub members: Vec<MemberReport>,
    /// From the call to the end.
    pub elapsed: Duration,
}

/// What one member did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MemberReport {
    /// Its name.
    pub name: String,
    /// Bytes that came from it, or went to it, and count.
    pub delivered: Bytes,
    /// Files that it had a part in.
    pub files: u64,
    /// Time in which it had something to do.
    pub busy: Duration,
    /// Why it was given up, if it was.
    pub down: Option<String>,
    /// It has said all that it has of what was asked for. Where one has not, there may be files that nobody knows of.
    pub is_listed: bool,
}
