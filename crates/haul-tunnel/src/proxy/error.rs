//! Why a proxy cannot do its work.

use std::io;

use haul::{AcceptError, BindError, ConnectionError};
use haul_peer::{ReachError, Refusal};
use thiserror::Error;

use super::forward::Listen;

/// Why the asking side cannot go on.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A port of this host.
    #[error(transparent)]
    Listen(#[from] TcpListenError),
    /// The other side was not reached, or does not want this side's key.
    #[error(transparent)]
    Unreached(#[from] ReachError),
    /// The other side does not serve this one.
    #[error("{host}: {refusal}")]
    Refused {
        /// The other side.
        host: String,
        /// Its words.
        refusal: Refusal,
    },
    /// The other side was there, and what it said first did not come or makes no sense.
    #[error("{host}: {source}")]
    Unheard {
        /// The other side.
        host: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The connection broke, and was not to be made again.
    #[error("{host}: the connection broke: {source}")]
    Broke {
        /// The other side.
        host: String,
        /// How.
        source: ConnectionError,
    },
    /// The system gives no threads.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// Why the side that is asked cannot serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its UDP port.
    #[error("UDP port {port}: {source}")]
    Bind {
        /// The port.
        port: u16,
        /// What is wrong with it.
        source: BindError,
    },
    /// Its socket failed later.
    #[error("the socket failed: {0}")]
    Socket(#[source] AcceptError),
    /// The system gives no threads.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

/// The system gives no threads.
#[derive(Debug, Error)]
#[error("no threads to serve connections with: {0}")]
pub struct ThreadsError(#[source] pub io::Error);

/// Why a TCP port cannot be listened on.
#[derive(Debug, Error)]
pub enum TcpListenError {
    /// The address to listen on is a name that leads nowhere.
    #[error("{name}: {source}")]
    Name {
        /// The name.
        name: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// The system refuses.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The port.
        listen: Listen,
        /// It was to take connections to other hosts.
        transparent: bool,
        /// Why.
        source: io::Error,
    },
}

impl TcpListenError {
    /// What to do about it. The other side may be told, where the port was for it.
    pub fn advice(&self) -> Option<&'static str> {
        let Self::Bind { transparent, source, .. } = self else { return None };
        match source.kind() {
            io::ErrorKind::AddrInUse => Some("another program has the port: end it, or name another port"),
            io::ErrorKind::PermissionDenied if *transparent => {
                Some("a transparent proxy needs root, or the capability CAP_NET_ADMIN or CAP_NET_RAW")
            }
            io::ErrorKind::PermissionDenied => Some("ports below 1024 are for root: name a higher one"),
            io::ErrorKind::AddrNotAvailable => Some("this host does not have the address"),
            _ => None,
        }
    }
}

impl From<&TcpListenError> for Refusal {
    fn from(error: &TcpListenError) -> Self {
        Self { error: error.to_string().into(), hint: error.advice().map(Into::into) }
    }
}
