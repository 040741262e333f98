//! Why a download ended early.

use std::fmt;
use std::path::PathBuf;

use haul_files::{CopyError, Fault};
use haul_units::Bytes;
use thiserror::Error;

/// Why a whole download ended early. What has arrived stays, and the same job goes on from there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GetError {
    /// The caller asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// Nobody was given to fetch from.
    #[error("no members")]
    NoMembers,
    /// More members than a plan can number.
    #[error("more members than {}", u16::MAX)]
    TooManyMembers,
    /// Two members have different things under one name.
    #[error("{path}: {first} and {second} have different content under this name; {here}", path = path.display())]
    Conflict {
        /// The name, below the root of the job.
        path: PathBuf,
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// What had become of it here when that was found out.
        here: Here,
    },
    /// A member cannot do its part: its program is of another version.
    #[error("{member}")]
    Unsupported {
        /// Which.
        member: String,
        /// What it lacks.
        #[source]
        source: CopyError,
    },
    /// No member is left that could say what it has.
    #[error("all members are gone")]
    AllDown {
        /// Their names, and why.
        members: Vec<(String, String)>,
    },
    /// What is left is held only by members that are gone.
    #[error("{files} files ({bytes}) are held only by members that are gone")]
    OutOfReach {
        /// Files that have not come, or not whole.
        files: u64,
        /// Bytes that have not come.
        bytes: Bytes,
        /// The names of those members, and why.
        members: Vec<(String, String)>,
    },
    /// More files than memory is set aside for.
    #[error("more files than can be remembered")]
    TooManyFiles,
    /// The destination cannot be used, or is full.
    #[error("the destination")]
    Destination(#[source] CopyError),
    /// A part of this side's system failed: a thread could not start, for instance.
    #[error("{doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// What had become of a name when two members turned out not to agree on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Here {
    /// Nothing was written under it.
    Untouched,
    /// Some of its content had come, as one of the two has it, and was not put in place: it is kept beside the destination, and used only for that content.
    Begun {
        /// That member.
        from: String,
    },
    /// It is in place, whole, as one of the two has it.
    InPlace {
        /// That member.
        from: String,
    },
}

impl fmt::Display for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untouched => f.write_str("nothing of it was written"),
            Self::Begun { from } => write!(f, "what had come of it, from {from}, was not put in place"),
            Self::InPlace { from } => write!(f, "it is in place here, whole, as {from} has it"),
        }
    }
}

impl GetError {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Cancelled | Self::NoMembers | Self::TooManyMembers | Self::TooManyFiles | Self::System { .. } => Fault::Local,
            Self::Conflict { .. } => Fault::Source,
            Self::Unsupported { .. } => Fault::Peer,
            Self::AllDown { .. } | Self::OutOfReach { .. } => Fault::Connection,
            Self::Destination(error) => error.fault(),
        }
    }
}
