//! What can be wrong with files of keys.

use std::io;
use std::path::PathBuf;

use haul_descriptors::is_none_left;
use thiserror::Error;

/// Why a file of keys cannot be used.
#[derive(Debug, Error)]
pub enum KeysError {
    /// It could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, or its directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody has so many keys.
    #[error("{}: too large for a file of keys", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else could have written it.
    #[error("{}: it belongs to another user ({owner}), who could let anybody in", path.display())]
    Foreign {
        /// The file, or its directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be: this user's.
        user: u32,
    },
    /// Anybody could have written it, or read a private key.
    #[error("{}: others may {} (mode {mode:04o})", path.display(), if *private { "read this private key" } else { "write to it" })]
    Open {
        /// The file, or its directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Whether it is a private key, which nobody else may read either.
        private: bool,
    },
    /// The own key could not be made.
    #[error("{}: {source}", path.display())]
    NotMade {
        /// Where it was to be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of the own key holds something else.
    #[error("{}: not a private key of haul", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
}

impl KeysError {
    /// Whether the process, or the system, has no descriptor left: nothing is wrong with the file.
    pub(super) fn is_want_of_descriptors(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        is_none_left(source)
    }

    /// The command that puts owner or mode right, where these are what is wrong.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Foreign { path, user, .. } => Some(format!("chown {user} {}", path.display())),
            Self::Open { path, private, .. } => {
                let change = if *private { "600" } else { "go-w" };
                Some(format!("chmod {change} {}", path.display()))
            }
            _ => None,
        }
    }
}
