//! Why streams were not carried to their ends.

use std::io;

use haul::BindError;
use haul_peer::{ReachError, Refusal};
use thiserror::Error;

/// Why the streams of two programs were not carried to their ends.
#[derive(Debug, Error)]
pub enum TunnelError {
    /// The other side was not reached, or does not want this side's key.
    #[error(transparent)]
    Unreached(#[from] ReachError),
    /// The other side does not grant what was asked.
    #[error("{host}: {refusal}")]
    Refused {
        /// The other side.
        host: String,
        /// Its words.
        refusal: Refusal,
    },
    /// Somebody on this side wanted no more.
    #[error("interrupted")]
    Cancelled,
    /// ssh and what it had started over there have ended before their time.
    #[error("{host}: ssh ended in the middle")]
    SshEnded {
        /// The other side.
        host: String,
    },
    /// The connection broke, or a stream on this side could not be read or written.
    #[error("{peer}: {source}")]
    Broken {
        /// The other side.
        peer: String,
        /// What broke.
        source: io::Error,
    },
}

/// Why nothing can be waited for.
#[derive(Debug, Error)]
#[error("UDP port {port}: {source}")]
pub struct ListenError {
    /// The port, 0 for any.
    pub port: u16,
    /// What is wrong with it.
    pub source: BindError,
}
