//! Why a connection is over.

use std::time::Duration;

use haul_units::PeerText;

use crate::handshake::HandshakeError;
use crate::streams::StreamViolation;
use crate::wire::DecodeError;

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The peer's application closed it.
    #[error("closed by the peer (code {code}){}{reason}", if reason.is_empty() { "" } else { ": " })]
    Peer {
        /// The application's code.
        code: u64,
        /// For people.
        reason: PeerText,
    },
    /// The handshake failed.
    #[error(transparent)]
    Handshake(HandshakeError),
    /// Nothing came from the peer for so long.
    #[error("nothing heard from the peer for {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The peer has lost the connection: it has restarted.
    #[error("the peer no longer knows this connection: it has restarted")]
    Reset,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(ProtocolViolation),
    /// The client was not admitted in time, or had to give its place up to another one.
    #[error("the client was not admitted in time")]
    NotAdmitted,
    /// The peer's transport says that we broke the protocol.
    #[error("the peer reports a broken protocol: {0}")]
    Accused(PeerText),
}

/// How a peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// A control packet that cannot be read.
    #[error(transparent)]
    Frame(#[from] DecodeError),
    /// Misuse of a stream.
    #[error(transparent)]
    Stream(#[from] StreamViolation),
    /// More data than the connection's credit.
    #[error("sent beyond the connection's credit")]
    BeyondCredit,
    /// An acknowledgement of a packet that was never sent.
    #[error("acknowledged a packet that was never sent")]
    AckOfUnsent,
    /// An acknowledgement of a packet number that was left out to see whether that is noticed.
    #[error("acknowledged packets that it cannot have received")]
    AckOfSkipped,
    /// More than one report of a path in one packet: an old one says nothing, and looking through all that is in flight for each is work.
    #[error("reports of a path more than once in a packet")]
    AckTwice,
    /// What it has us say is never acknowledged, and it has us say ever more.
    #[error("acknowledges nothing of what it asks for")]
    NeverAcknowledges,
    /// So many packets failed to authenticate that going on is not safe.
    #[error("too many forged packets")]
    TooManyForgeries,
}
