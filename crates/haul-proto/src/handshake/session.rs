//! TLS 1.3 by rustls, as bytes per encryption level.
//!
//! [`TlsSession::read`] takes the peer's bytes of the current [`TlsSession::read_level`], in order and without gaps; [`TlsSession::write`] gives this
//! side's, sorted by level. Datagrams, loss and order are for [`super::flight`]. TLS has its own random source; X.509 verification, and only that, reads the
//! system's date.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::quic::{self, ClientConnection, KeyChange, Keys, ServerConnection, Version};
use rustls::{AlertDescription, CertificateError, Error};

use crate::crypto::CipherSuite;
use crate::identity::PublicKey;

use super::error::{HandshakeError, Misbehaviour};
use super::tls::{ClientTls, ServerTls};
use super::verify::NotTrusted;

/// Encryption level of handshake bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The two hellos.
    Initial = 0,
    /// All that follows them, under TLS' handshake keys.
    Handshake = 1,
}

impl Level {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::Initial, Self::Handshake];
}

/// One side of a TLS handshake.
#[derive(Debug)]
pub struct TlsSession {
    connection: quic::Connection,
    handshake_keys: HandshakeKeys,
    peer_shows_raw_key: bool,
}

struct HandshakeKeys(Option<Keys>);

impl std::fmt::Debug for HandshakeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "present" } else { "absent" })
    }
}

impl TlsSession {
    /// A client's; `params` is its encoded transport parameters.
    pub fn client(tls: &ClientTls, params: Vec<u8>) -> Result<Self, HandshakeError> {
        let connection = ClientConnection::new(Arc::clone(&tls.config), Version::V1, tls.server_name.clone(), params)
            .map_err(HandshakeError::Local)?;
        Ok(Self::new(connection.into(), tls.peer_shows_raw_key))
    }

    /// A server's; `params` is its encoded transport parameters.
    pub fn server(tls: &ServerTls, params: Vec<u8>) -> Result<Self, HandshakeError> {
        let connection = ServerConnection::new(Arc::clone(&tls.config), Version::V1, params).map_err(HandshakeError::Local)?;
        Ok(Self::new(connection.into(), tls.peer_shows_raw_key))
    }

    fn new(connection: quic::Connection, peer_shows_raw_key: bool) -> Self {
        Self { connection, handshake_keys: HandshakeKeys(None), peer_shows_raw_key }
    }

    /// The level whose bytes [`TlsSession::read`] takes next.
    pub fn read_level(&self) -> Level {
        if self.handshake_keys.0.is_some() { Level::Handshake } else { Level::Initial }
    }

    /// Takes the peer's next bytes. Call [`TlsSession::write`] after it: there may be an answer, and keys.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let is_server = matches!(self.connection, quic::Connection::Server(_));
        self.connection.read_hs(bytes).map_err(|error| classify(error, is_server))
    }

    /// Appends this side's new bytes to the buffer of their level.
    pub fn write(&mut self, initial: &mut Vec<u8>, handshake: &mut Vec<u8>) {
        loop {
            let level = self.read_level();
            let buffer = match level {
                Level::Initial => &mut *initial,
                Level::Handshake => &mut *handshake,
            };
            let before = buffer.len();
            match self.connection.write_hs(buffer) {
                Some(KeyChange::Handshake { keys }) => self.handshake_keys = HandshakeKeys(Some(keys)),
                // Data packets have keys of our own, from the exporter.
                Some(KeyChange::OneRtt { .. }) => return,
                None if buffer.len() == before => return,
                None => {}
            }
        }
    }

    /// TLS' handshake keys, once both hellos are known.
    pub fn handshake_keys(&self) -> Option<&Keys> {
        self.handshake_keys.0.as_ref()
    }

    /// Is the peer proved, and this side's Finished written?
    pub fn is_complete(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// The alert that tells the peer of the failure which [`TlsSession::read`] returned.
    pub fn alert(&self) -> u8 {
        let alert = match &self.connection {
            quic::Connection::Client(connection) => connection.alert(),
            quic::Connection::Server(connection) => connection.alert(),
        };
        alert.map_or(u8::from(AlertDescription::InternalError), u8::from)
    }

    /// The peer's encoded transport parameters; authentic when complete.
    pub fn peer_params(&self) -> Option<&[u8]> {
        self.connection.quic_transport_parameters()
    }

    /// The application protocol agreed on.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// The key that the peer has proved to own; `None` for an anonymous client.
    pub fn peer_key(&self) -> Option<PublicKey> {
        let shown: &CertificateDer<'_> = self.connection.peer_certificates()?.first()?;
        if self.peer_shows_raw_key { PublicKey::from_spki(shown.to_vec()).ok() } else { PublicKey::of_certificate(shown) }
    }

    /// The AEAD agreed on.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        self.connection.negotiated_cipher_suite().and_then(|suite| CipherSuite::from_tls(suite.suite()))
    }

    /// The secret that both sides share when complete, bound to `context`.
    pub fn exporter_secret(&self, context: &[u8]) -> Result<[u8; 32], HandshakeError> {
        self.connection.export_keying_material([0; 32], b"EXPORTER haul data", Some(context)).map_err(HandshakeError::Local)
    }
}

fn classify(error: Error, is_server: bool) -> HandshakeError {
    match error {
        Error::InvalidCertificate(CertificateError::Other(ref other)) => match other.0.downcast_ref::<NotTrusted>() {
            Some(NotTrusted(fingerprint)) => HandshakeError::PeerNotTrusted { fingerprint: *fingerprint },
            None => HandshakeError::BadCertificate(error),
        },
        Error::InvalidCertificate(_) => HandshakeError::BadCertificate(error),
        Error::NoCertificatesPresented if is_server => HandshakeError::ClientAnonymous,
        Error::NoApplicationProtocol => HandshakeError::NoCommonProtocol,
        Error::PeerIncompatible(_) => HandshakeError::PeerIncompatible(error),
        Error::General(_) | Error::FailedToGetCurrentTime | Error::FailedToGetRandomBytes | Error::EncryptError => {
            HandshakeError::Local(error)
        }
        _ => HandshakeError::PeerMisbehaved(Misbehaviour::Tls(error)),
    }
}
