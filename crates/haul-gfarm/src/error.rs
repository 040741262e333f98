//! Errors of libgfarm, and what the engine is told of them.

use haul_files::StoreError;
use rustix::io::Errno;

/// Why Gfarm cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// This system: the library is not there, or does not load.
    #[error(
        "gfarm: needs {library}, which cannot be loaded; install Gfarm's client (Debian: the packages libgfarm1 and gfarm-client)"
    )]
    Missing {
        /// Its name.
        library: String,
        /// What the loader says.
        source: haul_clib::Error,
    },
    /// This system: the library is one of a release that is not known.
    #[error("gfarm: {library} is of a release that haul does not know; it needs one from 2.7 on, below 3")]
    TooOld {
        /// Its name.
        library: String,
        /// The function that it lacks.
        source: Option<haul_clib::Error>,
    },
    /// This system: the library would crash, for it takes every device to have an address of its own.
    #[error(
        "gfarm: libgfarm {major}.{minor} crashes on a host with a tunnel, and {device} is one: use it from another host, or in a network namespace without"
    )]
    Tunnel {
        /// The device.
        device: String,
        /// The library's release.
        major: i32,
        /// Of that, the second part.
        minor: i32,
    },
    /// Gfarm's configuration for clients, in libgfarm's words.
    #[error("gfarm: configuration: {0} (gfarm2.conf in /etc, or what GFARM_CONFIG_FILE names)")]
    Configuration(String),
    /// The metadata server does not let us in or does not answer, in libgfarm's words.
    #[error("gfarm: the metadata server: {0}")]
    MetadataServer(String),
    /// This system: no thread could be started for it.
    #[error("gfarm: starting a thread")]
    Thread(#[source] std::io::Error),
    /// Who asked wants it no more.
    #[error("interrupted")]
    Cancelled,
}

/// What a call of the library has failed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GfarmError {
    code: i32,
    errno: i32,
}

/// `GFARM_ERR_` numbers that the system has no number for, or another one than haul needs (gfarm/error.h; new ones are only ever added at its end).
mod code {
    pub(super) const AUTHENTICATION: i32 = 69;
    pub(super) const EXPIRED: i32 = 70;
    pub(super) const IS_A_REGULAR_FILE: i32 = 93;
    pub(super) const CHECKSUM_MISMATCH: i32 = 102;
    pub(super) const NO_FILESYSTEM_NODE: i32 = 105;
    /// Below it stand the errors that every system has.
    pub(super) const FIRST_OF_GFARM: i32 = 72;
}

impl GfarmError {
    /// Something is used that was closed.
    pub(crate) const CLOSED: Self = Self { code: 9, errno: 9 };
    /// The library says that it read or wrote more than it was asked for, or nothing of something.
    pub(crate) const DAMAGED: Self = Self { code: code::CHECKSUM_MISMATCH, errno: 5 };
    /// An offset that Gfarm has no number for.
    pub(crate) const TOO_LARGE: Self = Self { code: 27, errno: 27 };
    /// A name with a NUL in it.
    pub(crate) const BAD_NAME: Self = Self { code: 22, errno: 22 };

    pub(crate) const fn new(code: i32, errno: i32) -> Self {
        Self { code, errno }
    }

    /// As the library numbers it.
    pub(crate) const fn code(self) -> i32 {
        self.code
    }

    pub(crate) const fn is_missing(self) -> bool {
        self.code == 2
    }

    pub(crate) const fn is_taken(self) -> bool {
        self.code == 17
    }

    /// Whether another copy of the same content may do better.
    pub(crate) fn is_of_one_server(self) -> bool {
        let errno = Errno::from_raw_os_error(self.errno);
        let network = [
            Errno::CONNRESET,
            Errno::CONNREFUSED,
            Errno::CONNABORTED,
            Errno::TIMEDOUT,
            Errno::NOTCONN,
            Errno::PIPE,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::NETDOWN,
            Errno::IO,
            Errno::PROTO,
        ];
        network.contains(&errno) || self.code >= code::FIRST_OF_GFARM
    }
}

impl From<GfarmError> for StoreError {
    fn from(error: GfarmError) -> Self {
        match error.code {
            code::IS_A_REGULAR_FILE => Errno::NOTDIR.into(),
            code::CHECKSUM_MISMATCH => Self::Damaged,
            // Every server is down, or has less room than Gfarm leaves free.
            code::NO_FILESYSTEM_NODE => Self::FULL,
            code::AUTHENTICATION | code::EXPIRED => Errno::ACCESS.into(),
            // The library's nearest number for these is "invalid argument", which would accuse the user.
            code if code >= code::FIRST_OF_GFARM && error.errno == Errno::INVAL.raw_os_error() => Self::FAILED,
            _ => match Errno::from_raw_os_error(error.errno) {
                Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST => Self::InTheWay,
                errno => errno.into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_fault() {
        for (code, errno, sorted) in [
            (2, 2, StoreError::Missing),
            (21, 21, StoreError::InTheWay),
            (28, 28, StoreError::FULL),
            (64, 122, StoreError::Full(122)),
            (13, 13, StoreError::Forbidden(13)),
            (93, 22, Errno::NOTDIR.into()),
            (83, 22, StoreError::FAILED),
            (22, 22, StoreError::Failed(22)),
            (102, 22, StoreError::Damaged),
            (105, 22, StoreError::FULL),
        ] {
            assert_eq!(StoreError::from(GfarmError::new(code, errno)), sorted, "{code}");
        }
    }

    #[test]
    fn a_silent_server_is_not_the_file() {
        assert!(GfarmError::new(60, 110).is_of_one_server() && GfarmError::new(83, 22).is_of_one_server());
        assert!(!GfarmError::new(2, 2).is_of_one_server() && !GfarmError::new(28, 28).is_of_one_server());
    }
}
