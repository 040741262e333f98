//! Why an upload ended early.

use haul_files::{CopyError, Fault};
use thiserror::Error;

/// Why a whole upload ended early. What has arrived stays, and the same job goes on from there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PutError {
    /// The caller asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// Nothing was given to send.
    #[error("no sources")]
    NoSources,
    /// Nobody was given to send to.
    #[error("no members")]
    NoMembers,
    /// More members than a placement can number.
    #[error("more members than {most}")]
    TooManyMembers {
        /// So many can be.
        most: usize,
    },
    /// Files are to be on more members than there are, or on more than [`MAX_REPLICAS`](crate::MAX_REPLICAS), or on none.
    #[error("{replicas} replicas on {members} members")]
    Replicas {
        /// Asked for.
        replicas: usize,
        /// Given.
        members: usize,
    },
    /// More files than a placement can number.
    #[error("more files than can be remembered")]
    TooManyFiles,
    /// The store that the sources are in cannot be used.
    #[error("the sources")]
    Sources(#[source] CopyError),
    /// No member is left.
    #[error("all members are gone")]
    AllDown {
        /// Their names, and why.
        members: Vec<(String, CopyError)>,
    },
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

impl PutError {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::AllDown { members } => members.first().map_or(Fault::Connection, |(_, error)| error.fault()),
            Self::Sources(error) => error.fault(),
            _ => Fault::Local,
        }
    }
}
