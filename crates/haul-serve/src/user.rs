//! Becoming another user, for good.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;

use thiserror::Error;

#[cfg(unix)]
pub use unix::User;
#[cfg(windows)]
pub use windows::User;

/// Why the process cannot be this user's. The user's name comes first in each.
#[derive(Debug, Error)]
pub enum UserError {
    /// There is none.
    #[error("{name}: there is no such user here")]
    NoSuchUser {
        /// What it would be called.
        name: String,
    },
    /// Users cannot be looked up.
    #[error("{name}: {source}")]
    NotLookedUp {
        /// What it would be called.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// More groups than can be taken over.
    #[error("{name}: it is in too many groups")]
    TooManyGroups {
        /// What it is called.
        name: String,
    },
    /// The system refuses to change this process.
    #[error("{name}: {step}: {source}")]
    NotBecome {
        /// What it is called.
        name: String,
        /// The call that failed.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}
