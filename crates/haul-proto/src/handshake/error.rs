//! Why a handshake fails, and whose fault it is.

use crate::identity::Fingerprint;

use super::params::ParamsError;

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    /// No end within the time allowed.
    #[error("{}", if *heard { "handshake was not completed in time" } else { "peer does not answer" })]
    TimedOut {
        /// The peer has sent something authentic. If not, the address is wrong or UDP is blocked.
        heard: bool,
    },
    /// The two sides share no version of the protocol.
    #[error("peer supports protocol versions {theirs:?}, this side {ours:?}")]
    VersionMismatch {
        /// Versions this side supports.
        ours: Vec<u8>,
        /// Versions the peer supports.
        theirs: Vec<u8>,
    },
    /// The peer's key or certificate is authentic, but it is not one that this side trusts.
    #[error("peer is not trusted: its key is {fingerprint}")]
    PeerNotTrusted {
        /// Of the key that the peer has shown.
        fingerprint: Fingerprint,
    },
    /// The certificate does not stand up to X.509 verification.
    #[error("peer's certificate was refused")]
    BadCertificate(#[source] rustls::Error),
    /// This side demands that clients prove who they are, and the client did not.
    #[error("client showed no key")]
    ClientAnonymous,
    /// The two sides share no application protocol.
    #[error("peer speaks none of the offered application protocols")]
    NoCommonProtocol,
    /// The peer refused the connection with this TLS alert (RFC 8446 6).
    #[error("peer refused the connection: {}", alert_meaning(*alert))]
    Refused {
        /// The alert's code.
        alert: u8,
    },
    /// The peer and this side cannot agree on how to talk.
    #[error("peer is not compatible")]
    PeerIncompatible(#[source] rustls::Error),
    /// The peer broke the protocol.
    #[error("peer broke the protocol: {0}")]
    PeerMisbehaved(Misbehaviour),
    /// This side could not take part.
    #[error("TLS failed on this side")]
    Local(#[source] rustls::Error),
}

/// How a peer broke the protocol.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Misbehaviour {
    /// In its TLS messages.
    #[error("TLS: {0}")]
    Tls(rustls::Error),
    /// In its transport parameters.
    #[error("transport parameters: {0}")]
    Params(#[from] ParamsError),
    /// The opening or the answer that was carried is not whole.
    #[error("carried message cannot be understood")]
    Malformed,
    /// It sends more handshake bytes than anybody needs.
    #[error("handshake is too long")]
    TooLong,
    /// The version in its authenticated parameters is not that of its packets: somebody has changed one on the way.
    #[error("version was tampered with")]
    Downgrade,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Of this side.
    Local,
    /// Of nobody: packets do not arrive.
    Network,
    /// The peer breaks the protocol.
    PeerMisbehaved,
    /// The peer is correct but lacks something that this side needs, or the other way round.
    PeerUnsupported,
    /// One side does not trust the other.
    NotTrusted,
}

impl HandshakeError {
    /// Whose fault it is.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::TimedOut { .. } => Fault::Network,
            Self::PeerNotTrusted { .. } | Self::BadCertificate(_) | Self::ClientAnonymous => Fault::NotTrusted,
            Self::Refused { alert } if is_about_trust(*alert) => Fault::NotTrusted,
            Self::VersionMismatch { .. } | Self::NoCommonProtocol | Self::PeerIncompatible(_) | Self::Refused { .. } => {
                Fault::PeerUnsupported
            }
            Self::PeerMisbehaved(_) => Fault::PeerMisbehaved,
            Self::Local(_) => Fault::Local,
        }
    }
}

/// bad_certificate to access_denied, and certificate_required (RFC 8446 6.2).
const fn is_about_trust(alert: u8) -> bool {
    matches!(alert, 42..=46 | 48 | 49 | 116)
}

// RFC 8446 6.2
fn alert_meaning(alert: u8) -> String {
    let meaning = match alert {
        40 => "no common parameters",
        42..=44 => "it does not accept this side's certificate",
        45 => "this side's certificate has expired",
        46 | 49 => "it does not trust this side's key",
        48 => "it does not know the authority of this side's certificate",
        80 => "it failed",
        116 => "it wants to know who this side is",
        120 => "no common application protocol",
        _ => return format!("TLS alert {alert}"),
    };
    meaning.to_owned()
}
