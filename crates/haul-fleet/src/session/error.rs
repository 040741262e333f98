//! Why a session cannot be had, or a job of one not be done.

use std::io;
use std::path::PathBuf;

use haul::BindError;
use thiserror::Error;

use super::messages::Gone;
use crate::get::GetError;
use crate::log::LogError;
use crate::put::PutError;

/// Why a fleet that is kept cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No fleet of this name is up.
    #[error("no fleet named {name} is up")]
    NotUp {
        /// Which.
        name: String,
    },
    /// This is no name of a fleet.
    #[error("{name:?} is no name of a fleet")]
    BadName {
        /// What was given.
        name: String,
    },
    /// The directory of sockets cannot be used.
    #[error("{path}: {why}", path = path.display())]
    Place {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refuses something of the socket.
    #[error("{path}", path = path.display())]
    Socket {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The socket belongs to somebody else.
    #[error("the fleet named {name} belongs to user {uid}")]
    NotOurs {
        /// Which.
        name: String,
        /// Whose it is.
        uid: u32,
    },
    /// One of this name is up already.
    #[error("a fleet named {name} is up already")]
    UpAlready {
        /// Which.
        name: String,
    },
    /// The process that keeps the fleet is gone, or says what makes no sense.
    #[error("the process that keeps the fleet does not answer")]
    Keeper(#[source] io::Error),
    /// It refuses.
    #[error("{0}")]
    Refused(String),
    /// No UDP port is free for the members to call at.
    #[error("no UDP port to listen on for the members: {source}")]
    NoPort {
        /// Why.
        source: BindError,
        /// Whether ports were named when the fleet was started.
        ports_named: bool,
    },
    /// Nobody is left in it.
    #[error("no server of the fleet is there")]
    Empty {
        /// Why.
        gone: Vec<Gone>,
    },
    /// The caller wants an end.
    #[error("interrupted")]
    Interrupted,
}

/// Why a job of a session ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The fleet cannot be used.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A download.
    #[error(transparent)]
    Get(#[from] GetError),
    /// An upload.
    #[error(transparent)]
    Put(#[from] PutError),
    /// No log can be written.
    #[error("no log can be written")]
    Log(#[from] LogError),
    /// A part of this side's system failed.
    #[error("a thread of the job has failed")]
    Failed,
}
