//! Why streams were not carried to their ends.

use std::fmt::Display;
use std::io;

use haul::{AcceptError, BindError};
use haul_peer::{ReachError, Refusal};
use thiserror::Error;

use super::own_end::OwnEnd;

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
    /// The socket that clients come to no longer works.
    #[error("the socket failed: {0}")]
    Socket(#[source] AcceptError),
    /// A stream of this side's program could not be read or written.
    #[error("{0}")]
    Local(#[source] io::Error),
    /// The connection broke.
    #[error("{peer}: {source}")]
    Broken {
        /// The other side.
        peer: String,
        /// What broke.
        source: io::Error,
    },
}

impl TunnelError {
    /// Of what ended an exchange with this peer.
    pub(super) fn of(peer: impl Display, source: io::Error) -> Self {
        if OwnEnd::is_in(&source) { Self::Local(source) } else { Self::Broken { peer: peer.to_string(), source } }
    }
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
