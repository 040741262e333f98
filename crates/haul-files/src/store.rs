//! Stores: where files are. The engine walks, reads, writes and names files through [`Store`] and knows no file system.
//!
//! ```text
//!   sender     source -> stat, directory, list, open -> Content: read_at, data_after
//!   receiver   destination -> stage -> Stage: create -> Part: write_at (any order), finish
//!                                             sync -> read_back -> commit | discard;  remove at the end
//! ```
//!
//! [`Local`] is directories of this machine, what `haul cp` uses. haul-ramstore has a tree in memory that fails on request, for tests. haul-objects has one flat name space, for servers that
//! keep pieces of other things. docs/reference/store.md says how to add one.
//!
//! # Who owns what
//! The *engine* decides: which names a peer may give, which mode, time and owner a file gets, what is needed of it, what is resumed, what the journal says, when to sync and
//! to commit. The *store* owns names and bytes: it finds, makes and renames, and never decides what is copied. What it holds open it hands out as values ([`Store::Dir`], [`Store::File`],
//! [`Stage::Part`]) that are closed when they are dropped; the engine keeps few of them and asks again for the others.
//! A name is one component, any bytes but `/` and NUL; no store follows a link that has it. What is made or opened below a [`Store::Dir`] is in that very directory, whatever becomes of the names
//! that led to it, and one that is opened again by name must be the same ([`StoreError::Replaced`]).
//!
//! # Speed
//! Everything is resolved at compile time: the engine is generic over its store. A call is made for a file, a directory or a range of up to 1 MiB, never for less. Content is read to its place in a
//! block and written from where it arrived: a store that needs no copy makes none. Calls come from several threads at once.
//!
//! # Errors
//! An operation on one thing gives a [`StoreError`], sorted by fault, and the engine goes on with the other files; [`StoreError::Full`] ends the copy. What concerns all of a copy (no such root, a stage that
//! another copy holds) gives a [`Stop`].
//!
//! # Cancellation
//! A call that waits for a disk is not interrupted. One that waits for something else takes a [`Cancel`] ([`Store::stage`] waits for the run before) or belongs to a store that was made
//! with one, such as a store behind a network; either ends with [`StoreError::Cancelled`] soon after. The engine looks at its own between two calls.
//!
//! # What is promised after a kill
//! At any moment, process or machine:
//! 1. A name has what it had before, or all of the new file: [`Stage::commit`] is atomic, and follows a [`Stage::sync`].
//! 2. What is unfinished is in the stage only, under no name of a user's. The next run with the same job gets it with the journal ([`Store::stage`]); the engine hashes each range
//!    again before it counts, so content that did not reach the disk, and records that did not, cost time and nothing else. A range without a hash counts while the machine runs ([`Stage::boot`]).
//! 3. Nothing outside the stage stays, but what its own notes let the next run remove.
//!
//! # What goes around it
//! Streams (standard input and output, devices) are no files of a store. Which interrupted copies a directory has, for their user to see and to discard
//! ([`Local::interrupted_in`], [`Local::discard_in`]), is asked of local directories. The umask and the user whose owners and modes may be kept are those of this process.

#[cfg(unix)]
mod local;
pub(crate) mod unwritten;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haul_units::{Bytes, Cancel};
use serde::{Deserialize, Serialize};

use crate::block::Hash;
use crate::job::Ownership;
use crate::journal::{Made, Record, Source};
use crate::stamp::Stamp;
use haul_faults::{Stop, Why, WirePath};
use haul_xattrs::{Attribute, Failed, Keep, Outcome, Wanted};

pub use haul_faults::StoreError;
pub use haul_names::{Scheme, base_name, is_plain_name, is_reserved, stage_name};
#[cfg(unix)]
pub use local::Local;

pub use crate::process::umask;

/// Up to this many parts or directories are worth a sync each, which leaves other writers alone; with more of them all of the store is synced.
pub const FEW: usize = 8;

/// Names at the top that a journal tells.
pub const MAX_TOPS: usize = 4;

/// A place where files are.
pub trait Store: Send + Sync {
    /// A source as somebody named it; not yet looked for.
    type Top: Send + Sync;
    /// A directory that is held: for access below it.
    type Dir: Send + Sync + 'static;
    /// A file that is open for reading.
    type File: Content;
    /// Where files are made before they have names.
    type Stage: Stage<Dir = Self::Dir>;

    /// Whether its things have extended attributes and ACLs: else a copy that is to keep them is refused.
    const KEEPS: bool = false;
    /// What it is called when it is refused for that.
    const CALLED: &'static str = "this store";

    /// What a user or peer means by a source; an error where it may not even ask.
    fn source(&self, spelled: &WirePath) -> Result<Self::Top, Stop>;

    /// What a source is, and where: the same however it was spelled, another for another source of this spelling. A copy that was interrupted is found by it.
    fn identify(&self, spelled: &WirePath) -> Vec<u8> {
        spelled.0.clone()
    }

    /// What a user or peer means by a destination of one source, or of `many`.
    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<Self::Dir>, Stop>;

    /// What has this name.
    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError>;

    /// Holds the directory of this name, which must be the one of `identity`, if that is known.
    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<Self::Dir, StoreError>;

    /// Calls `each` with what is in a directory, in no order and without `.` and `..`, until it breaks.
    fn list(&self, dir: &Self::Dir, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError>;

    /// Opens a regular file. Never waits for a writer of a pipe that has taken its name.
    fn open(&self, at: At<'_, Self>) -> Result<Self::File, StoreError>;

    /// What a symbolic link says.
    fn read_link(&self, dir: &Self::Dir, name: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// Makes a directory with these permission bits, or takes the one that is there.
    fn make_directory(&self, dir: &Self::Dir, name: &[u8], mode: u32) -> Result<MadeDirectory<Self::Dir>, StoreError>;

    /// Changes the permission bits of a directory, for as long as it is written to.
    fn set_mode(&self, dir: &Self::Dir, mode: u32) -> Result<(), StoreError>;

    /// Removes what has this name: an empty directory, or anything but a directory. A store that does not remove what it has not made keeps this.
    fn remove(&self, _dir: &Self::Dir, _name: &[u8], _is_directory: bool) -> Result<(), StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    /// Gives a directory owner, mode and time, once all is in it.
    fn finish_directory(&self, dir: &Self::Dir, attributes: &Attributes) -> Result<(), StoreError>;

    /// Gives the file of this name and identity owner, mode and time, and says what it then is. A store that cannot keeps this.
    fn finish_file(&self, dir: &Self::Dir, name: &[u8], _identity: Identity, _as: &Attributes) -> Result<Metadata, StoreError> {
        self.stat(At::In(dir, name))
    }

    /// Makes the stage of a job in its place, or takes over the one that an earlier run left, with its journal: the records up to the first damaged one, and none without `resume`.
    /// Waits a while for a run that ends at this moment, unless `cancel` says otherwise. No two copies have the same stage at once.
    fn stage(
        &self,
        place: &Place<Self::Dir>,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(Self::Stage, Vec<Record>), Stop>;

    /// Whether an earlier run has left the stage of a job in a directory. None where that cannot be told.
    fn has_stage(&self, _dir: &Self::Dir, _job: &[u8; 32]) -> bool {
        false
    }

    /// Stages in a directory that no copy works on, but the own one; for a word to their user. None where that cannot be told.
    fn interrupted(&self, _dir: &Self::Dir, _own: &str) -> Vec<Interrupted> {
        Vec::new()
    }

    /// The room where this directory is.
    fn space(&self, dir: &Self::Dir) -> Result<Space, StoreError>;

    /// Whether a copy is refused as soon as what it has announced is more than there is room for, before the room is used up.
    fn must_fit(&self) -> bool {
        false
    }

    /// What a thing has of attributes and ACLs. A store without these keeps this: see [`KEEPS`](Self::KEEPS).
    fn extended(&self, _at: At<'_, Self>, _keep: Keep) -> Result<Vec<Attribute>, Failed> {
        Ok(Vec::new())
    }

    /// Gives them to a thing that has a name.
    fn set_extended(&self, _dir: &Self::Dir, _name: &[u8], _wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
        Ok(Outcome::default())
    }

    /// Which servers hold the content of a file; none where this store knows no servers.
    fn locate(&self, _at: At<'_, Self>) -> Result<Option<Vec<Replica>>, StoreError> {
        Ok(None)
    }

    /// Whether the content of a file lies on other machines only, so that somebody who has it at hand is asked first. A store that does not know keeps this.
    fn is_elsewhere(&self, _at: At<'_, Self>) -> bool {
        false
    }

    /// A checksum of a file's content that the store has already; none where it would have to be computed.
    fn checksum(&self, _at: At<'_, Self>) -> Result<Option<Checksum>, StoreError> {
        Ok(None)
    }
}

/// Where files are made; one for each copy into a place. Removed by [`remove`](Self::remove) only: dropped, it stays for the next run.
pub trait Stage: Send + Sync {
    /// As [`Store::Dir`].
    type Dir;
    /// A file that has no name yet.
    type Part: Part + 'static;

    /// Its own name in its place, for messages.
    fn name(&self) -> &str;

    /// What tells its directory from others, where it has one: nothing is to be made in it by name.
    fn identity(&self) -> Option<Identity>;

    /// What tells the run of the machine that keeps unsynced content from every other one, past and to come: while it lasts, what was written is there. None where
    /// that cannot be told; then what was written without hashes is written again.
    fn boot(&self) -> Option<Hash> {
        None
    }

    /// Whether this run has made nothing in it yet.
    fn is_unused(&self) -> bool;

    /// Appends to the journal, whole records in this order. Needs no sync: see what is promised after a kill.
    fn append(&self, records: &[Record]) -> Result<(), StoreError>;

    /// Makes an empty part with these permission bits, under a number that none has had.
    fn create(&self, mode: u32) -> Result<(u64, Self::Part), StoreError>;

    /// Opens a part again: for writing, or for reading if it may only be read.
    fn reopen(&self, part: u64) -> Result<Self::Part, StoreError>;

    /// Removes a part, if it is there.
    fn discard(&self, part: u64);

    /// Makes the content of finished parts durable. Those of a sync that failed are discarded: what else may have been lost by that, the store discards itself.
    fn sync(&self, parts: &[u64]) -> Result<(), StoreError>;

    /// Compares what was written with the hashes it came with, past every cache that can be passed. Of what [`Written::Placed`] has, nothing stays that differs.
    fn read_back(
        &self,
        what: &Written<'_, Self::Dir>,
        pieces: &[(u64, u32, Hash)],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError>;

    /// Gives a finished part its name, in the place of anything but a directory, at once and for all who look. Where it has to write over what is there, and that has
    /// failed half way ([`StoreError::Emptied`]), the part stays.
    fn commit(&self, part: u64, to: &Spot<'_, Self::Dir>, attributes: &Attributes) -> Result<Placed, StoreError>;

    /// Makes a symbolic link, in the place of anything but a directory.
    fn symlink(&self, to: &Spot<'_, Self::Dir>, target: &[u8], attributes: &Attributes) -> Result<(), StoreError>;

    /// Makes a hard link to the file `name` in `dir`, in the place of anything but a directory; a copy where there can be none.
    fn link(&self, dir: &Self::Dir, name: &[u8], to: &Spot<'_, Self::Dir>) -> Result<(), StoreError>;

    /// Makes names durable: those in `changed`, or where they are more than [`FEW`] directories (none) all.
    fn sync_names(&self, changed: Option<&[Arc<Self::Dir>]>) -> Result<(), StoreError>;

    /// Removes the stage with all that copies have put into it. True where something else is in it: then it stays.
    fn remove(&self) -> Result<bool, StoreError>;
}

/// Bytes that can be read.
pub trait Content: Send + Sync {
    /// What it is at this moment.
    fn metadata(&self) -> Result<Metadata, StoreError>;

    /// Appends up to `length` bytes at `offset` to `buffer`, and says how many: fewer only where it ends. Reserved room is not reallocated.
    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError>;

    /// The first run of data at or after `offset`, from its start to where a hole begins; none if only holes follow. A store that knows of no holes keeps this.
    fn data_after(&self, offset: u64) -> Option<(u64, u64)> {
        Some((offset, u64::MAX))
    }
}

/// A file that is being written. What was never written of it is zeros, or a hole.
pub trait Part: Content {
    /// Gives it its length; content may follow in any order.
    fn set_size(&self, size: u64) -> Result<(), StoreError>;

    /// Writes a range. Ranges do not overlap.
    fn write_at(&self, content: &[u8], offset: u64) -> Result<(), StoreError>;

    /// No content follows: gives it owner, `mode` and time, and says what it then is.
    fn finish(&self, attributes: &Attributes, mode: Option<u32>) -> Result<Metadata, StoreError>;

    /// Gives it extended attributes and ACLs, after that. See [`Store::KEEPS`].
    fn set_extended(&self, _wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
        Ok(Outcome::default())
    }
}

/// How a thing is named.
pub enum At<'a, S: Store + ?Sized> {
    /// As a source was spelled; a link there may be followed.
    Top(&'a S::Top),
    /// A name in a directory; a link is not followed.
    In(&'a S::Dir, &'a [u8]),
}

impl<S: Store + ?Sized> Clone for At<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store + ?Sized> Copy for At<'_, S> {}

/// A source, and what it is called.
pub(crate) struct Named<S: Store> {
    /// As spelled.
    pub(crate) spelled: WirePath,
    /// Its name at the destination; empty where its content goes straight there (`.`, `..`, `/`).
    pub(crate) name: Vec<u8>,
    pub(crate) top: Arc<S::Top>,
}

impl<S: Store> Named<S> {
    pub(crate) fn new(store: &S, spelled: &WirePath) -> Result<Self, Stop> {
        let top = Arc::new(store.source(spelled)?);
        Ok(Self { spelled: spelled.clone(), name: base_name(&spelled.0), top })
    }

    pub(crate) fn at(&self) -> At<'_, S> {
        At::Top(&*self.top)
    }
}

/// Something in a directory.
pub struct Listed<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// What it is; asked for by those who need it, for it may cost a call.
    pub metadata: &'a dyn Fn() -> Result<Metadata, StoreError>,
}

/// Where a tree goes.
pub struct Place<D> {
    /// Everything is made below it.
    pub root: Arc<D>,
    /// The destination as the user spelled it.
    pub spelled: WirePath,
    /// The new name of the one source; none: sources keep their names inside `root`.
    pub rename: Option<Vec<u8>>,
    /// The spelling ends in `/`: the one source must be a directory.
    pub directory_only: bool,
    /// One client of many chose it: it is told nothing of others, and remembers less.
    pub confined: bool,
    /// Whether who sends chooses owners and set-id bits.
    pub ownership: Ownership,
}

impl<D> Place<D> {
    /// The directory that all goes into, as a user would name it; empty for the current one.
    pub fn display(&self) -> WirePath {
        let mut display = self.spelled.0.clone();
        if self.rename.is_some() {
            while display.ends_with(b"/") {
                display.pop();
            }
            display.truncate(display.iter().rposition(|&b| b == b'/').map_or(0, |at| at.max(1)));
        }
        WirePath(display)
    }
}

/// A name that something is to get.
pub struct Spot<'a, D> {
    /// The directory.
    pub dir: &'a Arc<D>,
    /// The name in it.
    pub name: &'a [u8],
    /// The path, from the root of the place, that a name in this directory has.
    pub path: &'a dyn Fn(&[u8]) -> Vec<u8>,
}

/// What is to be read back.
#[derive(Debug)]
pub enum Written<'a, D> {
    /// A part that is not finished: it is synced first.
    Unfinished(u64),
    /// A finished part, and its mode.
    Part(u64, u32),
    /// What a commit has made in a directory, see [`Placed`].
    Placed(&'a D, &'a [u8]),
}

/// How something was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadHow {
    /// From where it is kept, past all caches.
    Direct,
    /// Through a cache that was told to drop it first.
    Uncached,
}

/// How a part got its name, and what was made, if that is another file than the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// The part has the name.
    Renamed,
    /// A copy of it has; the part is still there.
    Copied(Made),
    /// The file that was there has its content; the part is still there.
    WrittenOver(Made),
}

/// A directory that was made or taken.
pub struct MadeDirectory<D> {
    /// It.
    pub dir: D,
    /// What it is.
    pub metadata: Metadata,
    /// It was not there before.
    pub created: bool,
}

/// The stage of a copy that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The hidden directory.
    pub path: PathBuf,
    /// The first names that the copy was to make.
    pub names: Vec<WirePath>,
    /// What it takes on the disk.
    pub bytes: Bytes,
    /// Since something was last written to it.
    pub idle: Duration,
    /// It is no interrupted copy: one works on it.
    pub running: bool,
}

/// What became of an interrupted copy that was to be discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discarded {
    /// What it had kept is gone.
    Removed,
    /// It stays: a copy works on it.
    Running,
    /// It stays: it holds something that haul did not put there.
    Foreign,
    /// It could not be removed.
    Failed(Why),
}

/// Room in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What this user may still write.
    pub free: Bytes,
    /// All there is.
    pub total: Bytes,
}

/// A copy of a file's content on one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The server, as the store names it.
    pub host: String,
    /// Which of the contents that the file has had: replicas of one generation are the same.
    pub generation: u64,
    /// What it is good for.
    pub state: ReplicaState,
}

/// What a replica is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    /// It can be read.
    Ready,
    /// Its server is down.
    Down,
    /// It is being made.
    Incomplete,
    /// It has an older content than the file.
    Obsolete,
}

/// A checksum as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// As the store calls it: `md5`.
    pub algorithm: String,
    /// In hexadecimal digits.
    pub hex: String,
}

/// What is known of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Bytes that are data rather than holes, an estimate: at most `size`.
    pub data: u64,
    /// Permission bits, 0..=0o7777.
    pub mode: u32,
    /// Owner; `u32::MAX` where there is none.
    pub uid: u32,
    /// Group; `u32::MAX` where there is none.
    pub gid: u32,
    /// Modification time.
    pub mtime: Stamp,
    /// When anything of it was last changed, in seconds and nanoseconds; or whatever a store has that differs after a change, such as a generation.
    pub changed: (i64, u64),
    /// How many names it has.
    pub names: u64,
    /// What tells it from others.
    pub identity: Identity,
}

/// Tells a thing in a store from all others that are there at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The file system, or zero.
    pub device: u64,
    /// The number in it.
    pub inode: u64,
}

/// What a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or named pipe.
    Special,
}

/// What a new file, link or directory gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// For the call that makes it; a umask applies.
    pub open_mode: u32,
    /// To set afterwards, where a umask would take something away.
    pub mode: Option<u32>,
    /// The mode as it shall be.
    pub final_mode: u32,
    /// Modification time; none: as it comes.
    pub mtime: Option<Stamp>,
    /// Owner and group; none: as they come.
    pub owner: Option<(u32, u32)>,
    /// What else a copy of a finished part is to have of it.
    pub keep: Keep,
}

impl Metadata {
    /// The state of a source: differs when its content may.
    pub(crate) fn source(&self) -> Source {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.identity.inode.to_le_bytes());
        hasher.update(&self.changed.0.to_le_bytes());
        hasher.update(&self.changed.1.to_le_bytes());
        let version = hasher.finalize().as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Source { size: self.size, mtime: self.mtime, version }
    }

    /// What tells a file that a copy made.
    pub(crate) fn made(&self) -> Made {
        Made { inode: self.identity.inode, size: self.size, mtime: self.mtime }
    }
}
