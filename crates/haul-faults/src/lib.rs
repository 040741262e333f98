//! What can go wrong: with one thing in a store ([`StoreError`]), with one file of a copy ([`FileProblem`]: the others go on) or with all of it ([`CopyError`]); and what is only
//! worth knowing ([`Note`]).
//!
//! The former three are sorted by who is at fault. Problems and the reasons for stopping cross the network, so they are plain data.

mod note;

pub mod errno;
mod path;
mod store;

use std::fmt;
use std::io;

use haul_units::PeerText;
use serde::{Deserialize, Serialize};

pub use errno::Errno;
pub use note::{ChangedFile, MAX_NOTES, Note};
pub use path::WirePath;
pub use store::StoreError;

/// Who or what is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// The file or disk that is read.
    Source,
    /// The file or disk that is written.
    Destination,
    /// The program at the other end: it broke the protocol, refused, or speaks another version.
    Peer,
    /// The network between.
    Connection,
    /// This program or its user: bad arguments, an interrupt.
    Local,
}

/// Why a whole copy ended early. What arrived stays and the same command resumes, except after [`Refused`](Self::Refused).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The user, or the program around, asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// Transport or control stream failed.
    #[error("the connection failed")]
    Connection(#[source] io::Error),
    /// The peer broke the protocol or tried what it must not.
    #[error("the peer misbehaved: {0}")]
    PeerMisbehaved(&'static str),
    /// The peer speaks no version that this program knows.
    #[error("the peer speaks version {theirs} of the copy protocol, this program version {ours}")]
    PeerUnsupported {
        /// Version of this program.
        ours: u16,
        /// Version of the peer.
        theirs: u16,
    },
    /// The peer's program is older, or another, and cannot do what is asked.
    #[error("the peer's version cannot do this: {0}")]
    PeerLacks(&'static str),
    /// The peer refused the request or stopped, and said why.
    #[error("the other side: {0}")]
    Refused(Stop),
    /// This side refused the request or stopped.
    #[error("{0}")]
    Stopped(Stop),
    /// A part of this side's system failed: a thread could not start, for instance.
    #[error("{doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl CopyError {
    /// What the peer is told; nothing where it stopped first or cannot be reached.
    pub fn told(&self) -> Option<Stop> {
        match self {
            // One that lacks something would not understand more.
            Self::Cancelled | Self::PeerLacks(_) => Some(Stop::Interrupted),
            Self::PeerMisbehaved(what) => Some(Stop::Misbehaved((*what).into())),
            Self::PeerUnsupported { ours, .. } => Some(Stop::Version { speaks: *ours }),
            Self::Stopped(stop) => Some(stop.clone()),
            Self::System { doing, source } => Some(Stop::Failed(format!("{doing}: {source}").into())),
            Self::Connection(_) | Self::Refused(_) => None,
        }
    }

    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Cancelled | Self::System { .. } => Fault::Local,
            Self::Connection(_) => Fault::Connection,
            Self::PeerMisbehaved(_) | Self::PeerUnsupported { .. } | Self::PeerLacks(_) => Fault::Peer,
            Self::Refused(stop) | Self::Stopped(stop) => stop.fault(),
        }
    }
}

/// Why a side refuses or stops a whole copy; crosses the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stop {
    /// The destination has no space left; `path` is the file that met it.
    DestinationFull {
        /// What was written.
        path: WirePath,
    },
    /// The destination as a whole cannot be used.
    Destination {
        /// The destination as it was spelled.
        path: WirePath,
        /// Why.
        why: Why,
    },
    /// Another copy with the same sources and destination runs.
    Busy {
        /// The destination as it was spelled.
        path: WirePath,
    },
    /// No root of that name is exported.
    UnknownRoot {
        /// The name.
        path: WirePath,
    },
    /// The root is exported for reading only.
    ReadOnlyRoot {
        /// The name.
        path: WirePath,
    },
    /// Several sources, or standard input, need another kind of destination.
    NeedsDirectory {
        /// The destination as it was spelled.
        path: WirePath,
    },
    /// Standard input was to be written into a directory: it has no name of its own.
    NeedsFileName {
        /// The destination as it was spelled.
        path: WirePath,
    },
    /// The user of the other side interrupted.
    Interrupted,
    /// The peer broke the protocol, in the words of the side that noticed.
    Misbehaved(PeerText),
    /// The side's system failed, in its own words.
    Failed(PeerText),
    /// The side speaks another version only.
    Version {
        /// The version it speaks.
        speaks: u16,
    },
    /// A store that was named cannot be used there, in its own words: its library is not installed, its servers do not answer.
    Unavailable(PeerText),
}

impl Stop {
    /// What has happened at the destination, and nothing more can be written there.
    pub fn at_destination(path: WirePath, why: Why) -> Self {
        if why.is_full() { Self::DestinationFull { path } } else { Self::Destination { path, why } }
    }

    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::DestinationFull { .. } | Self::Destination { .. } | Self::Busy { .. } => Fault::Destination,
            Self::Misbehaved(_) | Self::Version { .. } => Fault::Peer,
            Self::UnknownRoot { .. }
            | Self::ReadOnlyRoot { .. }
            | Self::NeedsDirectory { .. }
            | Self::NeedsFileName { .. }
            | Self::Interrupted
            | Self::Failed(_)
            | Self::Unavailable(_) => Fault::Local,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DestinationFull { path } => write!(f, "{path}: no space left at the destination"),
            Self::Destination { path, why } => write!(f, "{path}: {why}"),
            Self::Busy { path } => write!(f, "{path}: another copy of the same files to the same place is running"),
            Self::UnknownRoot { path } => write!(f, "{path}: no such root is exported"),
            Self::ReadOnlyRoot { path } => write!(f, "{path}: this root is read-only"),
            Self::NeedsDirectory { path } => write!(f, "{path}: is not a directory, and several sources need one"),
            Self::NeedsFileName { path } => write!(f, "{path}: is a directory, and standard input needs a file name"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Misbehaved(what) => write!(f, "protocol broken: {what}"),
            Self::Failed(what) | Self::Unavailable(what) => write!(f, "{what}"),
            Self::Version { speaks } => write!(f, "speaks only version {speaks} of the copy protocol"),
        }
    }
}

/// One file, link or directory that was not copied; the others go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProblem {
    /// What it is about, as the user would name it.
    pub path: WirePath,
    /// Who is at fault.
    pub fault: Fault,
    /// What happened.
    pub why: Why,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// What happened to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Why {
    /// A call of the system failed with this error number.
    Os(i32),
    /// The source was written to while it was read, and again at the second try.
    Changed,
    /// A device, socket or named pipe.
    Special,
    /// A directory without `-r`.
    DirectoryWithoutRecursive,
    /// The destination has something else of that name: a file where a directory must be, or the reverse.
    InTheWay,
    /// A symbolic link in the destination where a directory must be; links are not followed.
    LinkNotFollowed,
    /// The directory that it belongs in could not be made.
    NoDirectory,
    /// The file that it is a hard link to was not copied.
    NoLinkTarget,
    /// The content that arrived is not what was read.
    HashMismatch,
    /// The disk gives back something else than was written; only looked for where what was written is read back.
    ReadBackMismatch,
    /// The path leads out of the exported root.
    OutsideRoot,
    /// Only files can be written to standard output.
    NotForStdout,
    /// The destination's name ends with `/`, so it must be a directory.
    NeedsDirectory,
    /// Nothing has a name that the pattern matches; only told to a peer that knows patterns.
    NoMatch,
    /// The name is one that copies have for what is unfinished.
    Reserved,
    /// What is there under the name of the directory for what is unfinished is somebody else's, or no such directory.
    ForeignStage,
    /// It does not say how long it is, so no part of it can be ordered; only told by the sender of parts that the receiver orders.
    NoLength,
    /// More is at the destination than the source has, and than may be removed: nothing was; only told where removal was asked for.
    TooMuchToDelete {
        /// The most that may.
        most: u64,
    },
    /// Not all that was announced can be seen in this directory, perhaps because its file system takes other spellings for the same name: nothing in it was removed.
    NotAllSeen,
    /// Another file system is mounted there: it is not removed.
    OtherFileSystem,
    /// An extended attribute or ACL could not be read or set, with this error number; only told where they are kept.
    Attribute {
        /// Which; empty where it is not known.
        name: WirePath,
        /// The system's error number.
        number: i32,
    },
    /// No file can have this name on a Windows machine; told only to a peer that knows this.
    CannotBeNamed,
    /// Something there has this name, written another way, such as in other case, and the file system keeps only one of them; told only to a peer that knows this.
    OtherSpelling,
}

impl Why {
    /// The reason in an error of the system.
    pub fn from_io(error: &io::Error) -> Self {
        Errno::from_io_error(error).unwrap_or(Errno::IO).into()
    }

    /// The same for a peer that knows none but those that there have always been.
    pub fn plain(self) -> Self {
        match self {
            Self::CannotBeNamed => Errno::INVAL.into(),
            Self::OtherSpelling => Errno::EXIST.into(),
            why => why,
        }
    }

    /// Whether nothing more can be written: a file system is full, or a user has all that he may have of it.
    pub fn is_full(&self) -> bool {
        [Errno::NOSPC, Errno::DQUOT].into_iter().any(|errno| *self == errno.into())
    }
}

impl From<Errno> for Why {
    fn from(errno: Errno) -> Self {
        Self::Os(errno.raw_os_error())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Os(number) if *number == Errno::STALE.raw_os_error() => {
                "another directory has taken its name (stale file handle)"
            }
            Self::Os(number) => return f.write_str(&errno::text(*number)),
            Self::Attribute { name, number } if name.0.is_empty() => {
                return write!(f, "extended attributes: {}", errno::text(*number));
            }
            Self::Attribute { name, number } => return write!(f, "attribute {name}: {}", errno::text(*number)),
            Self::TooMuchToDelete { most } => {
                return write!(f, "has more than {most} names that the source has not: none was deleted");
            }
            Self::NotAllSeen => "not all that was copied can be seen there: nothing in it was deleted",
            Self::OtherFileSystem => "another file system is mounted there: not deleted",
            Self::CannotBeNamed => "is a name that no file can have on Windows: not copied",
            Self::OtherSpelling => {
                "something there has this name in another spelling (upper and lower case are one there): not copied"
            }
            Self::Changed => "changed while it was copied",
            Self::Special => "is a device, socket or named pipe: skipped",
            Self::DirectoryWithoutRecursive => "is a directory: not copied without -r",
            Self::InTheWay => "something of another type has this name at the destination",
            Self::LinkNotFollowed => "is a symbolic link at the destination: not followed",
            Self::NoDirectory => "its directory could not be made",
            Self::NoLinkTarget => "the file it is a hard link to was not copied",
            Self::HashMismatch => "what arrived is not what was read (hashes differ)",
            Self::ReadBackMismatch => "what the disk gives back is not what was written (hashes differ)",
            Self::OutsideRoot => "leads outside the exported root, or through a symbolic link",
            Self::NotForStdout => "only files can go to standard output",
            Self::NeedsDirectory => "the destination is not a directory",
            Self::NoMatch => "no match",
            Self::Reserved => "is a name that haul has for unfinished copies: not copied",
            Self::NoLength => "does not say how long it is: no part of it can be ordered",
            Self::ForeignStage => "has the name of a directory that haul makes, and is not this user's or not made by haul",
        })
    }
}
