//! What a copy tells when it is over.

use std::ops::AddAssign;
use std::time::Duration;

use haul_units::Bytes;
use serde::{Deserialize, Serialize};

use haul_faults::{FileProblem, Note};

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
    /// Names that were removed at the destination, or in a dry run would be; see [`Options::delete`](crate::Options::delete).
    pub removed: u64,
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

impl Report {
    /// Adds what another copy did after this one. A peer may have said any number: the greatest stays the greatest.
    pub fn add(&mut self, other: &Self) {
        self.add_counts(other);
        self.problems.extend(other.problems.iter().cloned());
        self.notes.extend(other.notes.iter().cloned());
        // The least of all; none is no word on it.
        self.verified = self.verified.into_iter().chain(other.verified).min();
        self.sender += other.sender;
        self.receiver += other.receiver;
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
    }

    fn add_counts(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.files, other.files),
            (&mut self.directories, other.directories),
            (&mut self.symlinks, other.symlinks),
            (&mut self.hard_links, other.hard_links),
            (&mut self.bytes.0, other.bytes.0),
            (&mut self.resumed.0, other.resumed.0),
            (&mut self.skipped_files, other.skipped_files),
            (&mut self.newer_files, other.newer_files),
            (&mut self.skipped.0, other.skipped.0),
            (&mut self.changed_files, other.changed_files),
            (&mut self.left_out, other.left_out),
            (&mut self.removed, other.removed),
            (&mut self.discarded.0, other.discarded.0),
            (&mut self.problem_count, other.problem_count),
            (&mut self.read_back.direct_files, other.read_back.direct_files),
            (&mut self.read_back.uncached_files, other.read_back.uncached_files),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
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

impl Waits {
    /// The most that a peer can say.
    pub const MAX: Self = Self {
        threads: u32::MAX,
        read: Duration::MAX,
        hash: Duration::MAX,
        transport: Duration::MAX,
        plan: Duration::MAX,
        write: Duration::MAX,
        sync: Duration::MAX,
        rename: Duration::MAX,
    };
}

impl AddAssign for Waits {
    /// What another thread of the same side has waited; how many they are, who adds them up says.
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.read, other.read),
            (&mut self.hash, other.hash),
            (&mut self.transport, other.transport),
            (&mut self.plan, other.plan),
            (&mut self.write, other.write),
            (&mut self.sync, other.sync),
            (&mut self.rename, other.rename),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}
