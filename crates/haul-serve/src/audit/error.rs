//! Why an audit log cannot be written where it was to be.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no audit log.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The file, or its directory, could not be opened.
    #[error("the audit log: {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was named is no name of a file.
    #[error("the audit log: {}: not the name of a file", path.display())]
    NotAName {
        /// What was named.
        path: PathBuf,
    },
    /// Something else has this name.
    #[error("the audit log: {}: not a file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// Somebody has given the file another name.
    #[error("the audit log: {}: it has other names too (hard links)", path.display())]
    SeveralNames {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to a user who is not to have a say in it.
    #[error("the audit log: {}: it belongs to another user ({owner})", path.display())]
    Foreign {
        /// The file, or its directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others could change what is said about them.
    #[error("the audit log: {}: others may write to it (mode {mode:04o})", path.display())]
    Writable {
        /// The file, or its directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Clients would see it.
    #[error("the audit log would be below {}, which is exported", root.display())]
    Exported {
        /// The root that they see.
        root: PathBuf,
    },
    /// Nobody hears at the journal's socket.
    #[error("the audit log: {}: {source}", socket.display())]
    NoJournal {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
}
