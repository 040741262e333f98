//! What can fail, one enum an operation.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_proto::handshake::{HandshakeError, TlsConfigError};
use haul_proto::identity::Fingerprint;
use haul_proto::{AnswerError, BeginError, CloseReason, PATHS_MAX};

/// An endpoint could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The system refuses the address.
    #[error("cannot bind UDP socket to {addr}")]
    Address {
        /// What was to be bound to.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Every port of the range is taken.
    #[error("no free UDP port from {first} to {last} on {ip}")]
    NoFreePort {
        /// The address asked for.
        ip: IpAddr,
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
    },
    /// Keys or certificates of the server do not make a TLS configuration.
    #[error("server's keys are not usable")]
    Config(#[source] TlsConfigError),
    /// The system gives no thread.
    #[error("cannot start receive thread")]
    Thread(#[source] io::Error),
    /// The system gives no random numbers: no secret can be made.
    #[error("system has no randomness")]
    NoRandomness,
}

/// No connection came about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address names no host or no port.
    #[error("cannot connect to {addr}: not the address of a peer")]
    InvalidAddress {
        /// The address given.
        addr: SocketAddr,
    },
    /// No connection has so many paths, or so few.
    #[error("{asked} paths: 1 to {PATHS_MAX} are possible")]
    Paths {
        /// What was asked for.
        asked: u8,
    },
    /// Nothing can leave by the ways that [`haul_proto::TransportConfig::via`] names.
    #[error(transparent)]
    Leave(#[from] haul_paths::leave::LeaveError),
    /// The interfaces of this machine are not to be had: paths by way of them want Linux.
    #[error("cannot use the interfaces of this machine")]
    Interfaces(#[source] io::Error),
    /// The address names no host.
    #[error("no address to connect to")]
    NoAddress,
    /// Nothing at all was heard from the peer: nobody is there, or UDP is blocked on the way.
    #[error("no answer from {addr} within {:.1} s: nobody listens there, or UDP is blocked on the way", waited.as_secs_f64())]
    TimedOut {
        /// Who did not answer.
        addr: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The configuration does not work with TLS.
    #[error("configuration is not usable")]
    Config(#[from] BeginError),
    /// The system gives no random numbers.
    #[error("no random numbers from the system")]
    NoRandomness,
    /// The system gives no thread.
    #[error("cannot start send thread")]
    Thread(#[source] io::Error),
    /// The peer proved a key that this side does not trust.
    #[error("{addr} is not trusted: its key is {fingerprint}")]
    PeerNotTrusted {
        /// The peer.
        addr: SocketAddr,
        /// Of the key that it has shown.
        fingerprint: Fingerprint,
    },
    /// The two sides share no version of the protocol.
    #[error("{addr} speaks versions {theirs:?} of the protocol, this side {ours:?}")]
    VersionMismatch {
        /// The peer.
        addr: SocketAddr,
        /// Versions this side supports.
        ours: Vec<u8>,
        /// Versions the peer supports.
        theirs: Vec<u8>,
    },
    /// The handshake failed for another reason, or the peer closed the connection at once.
    #[error("cannot connect to {addr}")]
    Failed {
        /// The peer.
        addr: SocketAddr,
        /// Why.
        source: ConnectionError,
    },
}

/// No connection was accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint was bound to connect only.
    #[error("endpoint does not accept connections")]
    NotListening,
    /// The endpoint was closed.
    #[error("endpoint is closed")]
    Closed,
    /// An opening begins no handshake.
    #[error("opening is not answered")]
    Opening(#[source] HandshakeError),
}

impl From<AnswerError> for AcceptError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::NotListening => Self::NotListening,
            AnswerError::Handshake(error) => Self::Opening(error),
        }
    }
}

/// A connection is over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// This side closed it.
    #[error("connection was closed by this side")]
    ClosedHere,
    /// It ended for a reason that the transport gives: closed by the peer, timed out, ..
    #[error(transparent)]
    Ended(#[from] CloseReason),
    /// The endpoint's socket no longer works.
    #[error("UDP socket failed: {kind}")]
    Socket {
        /// What the system says.
        kind: io::ErrorKind,
    },
    /// The stream's bytes go to a sink of the application's, not to blocks.
    #[error("placed stream has a sink of the application's")]
    ForeignSink,
}

/// A stream does not do what was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reads no more.
    #[error("peer stopped the stream with code {code}")]
    Stopped {
        /// Given by the peer's application.
        code: u64,
    },
    /// The peer has given up writing.
    #[error("peer reset the stream with code {code}")]
    Reset {
        /// Given by the peer's application.
        code: u64,
    },
    /// It was finished, reset or stopped by this side.
    #[error("stream is finished")]
    Finished,
    /// A block must have from 1 byte to [`crate::MAX_BLOCK`].
    #[error("block of {len} bytes: 1 to {} are possible", crate::MAX_BLOCK)]
    BlockSize {
        /// What it had.
        len: usize,
    },
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl ConnectionError {
    /// Nothing was ever heard from the peer: nobody is there, or UDP is blocked on the way.
    pub const fn is_unanswered(&self) -> bool {
        matches!(self, Self::Ended(CloseReason::Handshake(HandshakeError::TimedOut { heard: false })))
    }
}

impl ConnectionError {
    /// The peer refused the key that this side showed, or wanted one and was shown none: TLS says so and no more.
    pub const fn is_key_refused(&self) -> bool {
        matches!(self, Self::Ended(CloseReason::Handshake(HandshakeError::Refused { alert: 42..=49 | 116 })))
    }

    /// The two sides do not speak the same version of what this connection is for.
    pub const fn is_other_protocol(&self) -> bool {
        // 120: no_application_protocol (RFC 8446 6.2)
        matches!(
            self,
            Self::Ended(CloseReason::Handshake(HandshakeError::NoCommonProtocol | HandshakeError::Refused { alert: 120 }))
        )
    }
}

impl ConnectError {
    /// As [`ConnectionError::is_key_refused`].
    pub const fn is_key_refused(&self) -> bool {
        matches!(self, Self::Failed { source, .. } if source.is_key_refused())
    }

    /// The two sides speak different versions: of the transport, or of what this connection is for.
    pub const fn is_other_version(&self) -> bool {
        match self {
            Self::VersionMismatch { .. } => true,
            Self::Failed { source, .. } => source.is_other_protocol(),
            _ => false,
        }
    }

    /// What the end of a connection in its handshake means for whoever wanted to connect.
    pub(crate) fn from_end(end: ConnectionError, addr: SocketAddr, waited: Duration) -> Self {
        match end {
            end if end.is_unanswered() => Self::TimedOut { addr, waited },
            ConnectionError::Ended(CloseReason::Handshake(HandshakeError::PeerNotTrusted { fingerprint })) => {
                Self::PeerNotTrusted { addr, fingerprint }
            }
            ConnectionError::Ended(CloseReason::Handshake(HandshakeError::VersionMismatch { ours, theirs })) => {
                Self::VersionMismatch { addr, ours, theirs }
            }
            source => Self::Failed { addr, source },
        }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match &error {
            ConnectionError::ClosedHere => io::ErrorKind::NotConnected,
            ConnectionError::Ended(CloseReason::TimedOut(_)) => io::ErrorKind::TimedOut,
            ConnectionError::Ended(_) => io::ErrorKind::ConnectionReset,
            ConnectionError::Socket { kind } => *kind,
            ConnectionError::ForeignSink => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match error {
            StreamError::Connection(error) => return error.into(),
            StreamError::Stopped { .. } => io::ErrorKind::BrokenPipe,
            StreamError::Reset { .. } => io::ErrorKind::ConnectionReset,
            StreamError::Finished => io::ErrorKind::NotConnected,
            StreamError::BlockSize { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
