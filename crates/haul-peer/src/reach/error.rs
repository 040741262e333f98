//! Why there is no connection with a host, by who is at fault.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use haul::{ConnectError, Fingerprint};
use thiserror::Error;

use super::NO_ANSWER;
use crate::carriage::Carriage;
use crate::chain::chain;
use crate::keys::KeysError;
use crate::operand::DaemonHost;
use crate::ssh::SshError;
use crate::state::StateError;

/// Why there is no connection with a host.
///
/// The first variants are this side's: its files, its network, its user. Then come the ways of a network between, then those of the other side, and last those where somebody
/// has to decide whom to trust.
#[derive(Debug, Error)]
pub enum ReachError {
    /// There is no directory of keys.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// This side cannot open a connection.
    #[error("{}", chain(&**source))]
    Opening {
        /// Why.
        source: Box<ConnectError>,
    },
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// ssh led to no far side.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// The name has no address, or none that may be used.
    #[error("{name}: no such host")]
    NoSuchHost {
        /// The name.
        name: String,
    },
    /// ssh reached the host, but neither its name nor its far side gives an address that may be used for UDP.
    #[error("{host}: no address to reach it at over UDP")]
    NoAddress {
        /// The host.
        host: String,
    },
    /// Nothing came back over UDP.
    #[error("{0}")]
    NoAnswer(Unanswered),
    /// The way that was asked for did not open.
    #[error("{host}: no connection over {carriage}: {source}")]
    NoWay {
        /// The host, with its port.
        host: String,
        /// What was to carry it.
        carriage: Carriage,
        /// Why.
        source: io::Error,
    },
    /// The far side does not know that way.
    #[error("{host}: haul there cannot be reached over {carriage}")]
    UnknownWay {
        /// The host.
        host: String,
        /// What was to carry it.
        carriage: Carriage,
    },
    /// Something came back, and it was no connection.
    #[error("{host}: {}", chain(&**source))]
    Connect {
        /// The host, with its port.
        host: String,
        /// Why.
        source: Box<ConnectError>,
    },
    /// At the far side's port somebody else answers than ssh has named.
    #[error("{host}: somebody else answers over UDP")]
    SomebodyElse {
        /// The host, with its port.
        host: String,
    },
    /// The other side does not let our key in.
    #[error("{host}: this user's key is not authorised there")]
    KeyRefused {
        /// The host, with its port.
        host: DaemonHost,
        /// Our key.
        key: Fingerprint,
    },
    /// Another key than the one that was named beforehand.
    #[error("{host}: another key answers: {key}")]
    OtherKey {
        /// The host, with its port.
        host: DaemonHost,
        /// The key that answers.
        key: Fingerprint,
        /// The key that was expected.
        expected: Fingerprint,
    },
    /// The same, of a server that lets anyone in.
    #[error("{host}: its key is not the one given, but {key}")]
    NotTheKeyGiven {
        /// The host, with its port.
        host: DaemonHost,
        /// The key that answers.
        key: Fingerprint,
    },
    /// The key of a known host is another one than before.
    #[error(
        "haul://{host}: THE KEY OF THIS HOST HAS CHANGED: somebody may be listening in\n       trusted: {trusted}\n       now:     {now}"
    )]
    KeyChanged {
        /// The host, with its port.
        host: DaemonHost,
        /// The key that is trusted.
        trusted: Fingerprint,
        /// The key that answers.
        now: Fingerprint,
        /// The directory of keys, where it is not the usual one.
        state: Option<PathBuf>,
    },
    /// The host is not known, and nobody can be asked.
    #[error("haul://{host}: its key is not known: {key}")]
    KeyUnknown {
        /// The host, with its port.
        host: DaemonHost,
        /// Its key.
        key: Fingerprint,
        /// The directory of keys, where it is not the usual one.
        state: Option<PathBuf>,
    },
    /// The host is not known, and whoever was asked does not trust it.
    #[error("haul://{host}: its key is not trusted")]
    KeyNotTrusted {
        /// The host, with its port.
        host: DaemonHost,
    },
    /// The key is trusted, but the file of known hosts cannot be written.
    #[error("the key could not be kept: {source}")]
    KeyNotKept {
        /// Why.
        source: io::Error,
    },
}

/// Nothing came back over UDP: nobody is there, or something on the way drops it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no answer over UDP from {host} within {} s (tried {})", NO_ANSWER.as_secs(), listed(tried))]
pub struct Unanswered {
    /// The host, with its port.
    pub host: String,
    /// Its addresses.
    pub tried: Vec<IpAddr>,
    /// What should have answered.
    pub listener: Listener,
}

/// What should listen at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// A daemon that knows this service.
    Daemon(&'static [u8]),
    /// A server that lets anyone in.
    Open,
    /// The far side that ssh has started.
    FarSide {
        /// Whether the user has named its ports, and so expects them to be open.
        ports_named: bool,
    },
}

fn listed(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}
