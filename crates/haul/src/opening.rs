//! A connection opened over another channel.

use std::time::Duration;

use haul_proto::{ClientConfig, CloseReason};

use crate::clock;
use crate::error::{ConnectError, ConnectionError};

/// A client's connection whose handshake goes over a channel that the two ends have already, such as ssh's: that saves its round trip. [`Opening::bytes`] go to the
/// server, what [`crate::Endpoint::answer`] makes of them comes back, and [`crate::Endpoint::connect_opened`] goes on over UDP.
///
/// ```
/// use haul::{ClientConfig, Endpoint, Identity, Opening, PeerTrust, ServerConfig};
/// use std::io::{Read, Write};
///
/// let identity = Identity::generate();
/// let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
/// let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
///
/// let mut opening = Opening::new(ClientConfig::new(trust))?;
/// let answer = server.answer(&opening.bytes(), None)?;
/// opening.on_answer(&answer, None)?;
///
/// let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
/// let connection = endpoint.connect_opened(&[server.local_addr()], opening)?;
/// let mut send = connection.open_uni()?;
/// send.write_all(b"without a round trip")?;
/// send.finish()?;
/// let mut arrived = String::new();
/// server.accept()?.accept_uni()?.read_to_string(&mut arrived)?;
/// assert_eq!(arrived, "without a round trip");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Opening(haul_proto::Opening);

impl Opening {
    /// Begins, without a socket.
    pub fn new(config: ClientConfig) -> Result<Self, ConnectError> {
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| ConnectError::NoRandomness)?;
        Ok(Self(haul_proto::Opening::new(clock::now(), config, &seed)?))
    }

    /// What the server is to get: about 1.5 KB, nothing secret in it.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }

    /// What the server has answered. `rtt`, if something is known of the way to it: what must be guessed until the first acknowledgement is guessed by that.
    pub fn on_answer(&mut self, answer: &[u8], rtt: Option<Duration>) -> Result<(), ConnectionError> {
        self.0.config_mut().transport.expected_rtt = rtt;
        self.0.on_answer(clock::now(), answer).map_err(|error| CloseReason::Handshake(error).into())
    }

    /// How long the server may take to be heard from when the connection begins: see [`ClientConfig::connect_timeout`].
    pub fn set_connect_timeout(&mut self, timeout: Duration) {
        self.0.config_mut().connect_timeout = timeout;
    }

    pub(crate) fn into_inner(self) -> haul_proto::Opening {
        self.0
    }
}
