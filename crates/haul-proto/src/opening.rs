//! A client's connection that begins before there is a socket for it.
//!
//! Where the two ends have another channel already, as over ssh, the handshake's first two flights can travel there: [`Opening::bytes`] go to the server, which
//! answers them ([`crate::Endpoint::answer`]); with its answer [`crate::Endpoint::connect_opened`] has a connection that is complete. The first packet that leaves tells the
//! server that, and data follows it at once.

use haul_units::Time;

use crate::ConnectionId;
use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::handshake::{ClientParams, ClientTls, Handshake, HandshakeError, TlsConfigError};
use crate::rng::Rng;

/// The client's side of a carried handshake.
#[derive(Debug)]
pub struct Opening {
    pub(crate) local: ConnectionId,
    pub(crate) config: ClientConfig,
    pub(crate) handshake: Handshake,
}

impl Opening {
    /// Begins. Connection id and attempt come from `seed`, random bytes that nobody else knows.
    pub fn new(now: Time, config: ClientConfig, seed: &[u8; 32]) -> Result<Self, BeginError> {
        let mut rng = Rng::new(seed);
        let tls = ClientTls::new(config.identity.as_ref(), &config.trust, config.protocols.clone())?;
        let local = ConnectionId((rng.next_u64() as u32).max(1));
        // Resets come from endpoints, and there is none yet: the server is told of no token.
        let params = crate::handshake::TransportParams { reset_token: None, ..Connection::params(&config.transport, [0; 16]) };
        let handshake = Handshake::client(now, ClientParams::new(tls, params, local.0, rng.next_u64()))?;
        Ok(Self { local, config, handshake })
    }

    /// What the server is to get.
    pub fn bytes(&self) -> Vec<u8> {
        self.handshake.opening()
    }

    /// What the server has answered.
    pub fn on_answer(&mut self, now: Time, answer: &[u8]) -> Result<(), HandshakeError> {
        self.handshake.on_answer(now, answer)
    }

    /// How the connection is to behave, where that was not known at the beginning; what the server has been told already stays.
    pub const fn config_mut(&mut self) -> &mut ClientConfig {
        &mut self.config
    }
}

/// Why a connection could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Keys or certificates do not make a TLS configuration.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The handshake could not start.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The endpoint has a connection of the opening's number.
    #[error("connection number of the opening is taken")]
    NumberTaken,
    /// Nobody knows where the server is.
    #[error("no address to connect to")]
    NoAddress,
    /// The opening has no answer, or its answer was refused.
    #[error("opening has not been answered")]
    NotAnswered,
}
