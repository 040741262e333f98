//! One connection's handshake at the level of datagrams.
//!
//! Call order: whatever happens (`handle_datagram`, `handle_timeout`), then [`Handshake::poll_transmit`] until it gives none, then
//! [`Handshake::take_complete`], then wait until [`Handshake::poll_timeout`]. After an error, drain `poll_transmit` once more: it tells the peer.
//!
//! Every packet acknowledges what has arrived without a gap, per level; what is not acknowledged is sent again after 250 ms, or twice the
//! round-trip time once it is known or where a client expects one, doubling. A completed handshake stays until it is settled: the client's Finished may be lost and come again, and a
//! server must answer it. Sources: RFC 9001 4 (levels), RFC 9000 8.1 (amplification), RFC 9002 6.2 (probe timer).

mod carried;
mod input;
mod output;
mod timing;

use std::time::Duration;

use haul_strangers::Proof;
use haul_units::Time;

use crate::crypto::{CipherSuite, DataKeys, PacketKey, Role, Secret};
use crate::identity::PublicKey;

use super::accept::ParsedInitial;
use super::error::HandshakeError;
use super::params::TransportParams;
use super::reliable::{Incoming, Outgoing};
use super::session::TlsSession;
use super::tls::{ClientTls, ServerTls};
use super::wire::VERSIONS;
use timing::Timing;

/// What a client's handshake needs.
#[derive(Debug, Clone)]
pub struct ClientParams {
    /// Identity, trust, application protocols.
    pub tls: ClientTls,
    /// What this side tells the peer; `version` and `versions` are filled in.
    pub transport: TransportParams,
    /// This side's number for the connection, not 0.
    pub local_cid: u32,
    /// A random number nobody can foresee.
    pub attempt: u64,
    /// An admission token that the server has given out by another way.
    pub admission: Option<Vec<u8>>,
    /// Time for the whole handshake.
    pub timeout: Duration,
    /// What an earlier connection has measured of the way to this server: a lost hello is sent again after twice that, at least 20 ms, and not after 250. // RFC 9002 6.2.2
    pub expected_rtt: Option<Duration>,
    /// Versions to offer, preferred first.
    pub versions: Vec<u8>,
}

impl ClientParams {
    /// With no admission token, 5 s, nothing expected, all versions of this crate.
    pub fn new(tls: ClientTls, transport: TransportParams, local_cid: u32, attempt: u64) -> Self {
        let (timeout, versions) = (Duration::from_secs(5), VERSIONS.to_vec());
        Self { tls, transport, local_cid, attempt, admission: None, timeout, expected_rtt: None, versions }
    }
}

/// What a server's handshake needs.
#[derive(Debug, Clone)]
pub struct ServerParams {
    /// Identity, trust, application protocols.
    pub tls: ServerTls,
    /// What this side tells the peer; `version` and `versions` are filled in.
    pub transport: TransportParams,
    /// This side's number for the connection, not 0.
    pub local_cid: u32,
    /// Time for the whole handshake.
    pub timeout: Duration,
    /// Versions supported, preferred first: those of the [`super::Acceptor`].
    pub versions: Vec<u8>,
}

impl ServerParams {
    /// With 10 s, all versions of this crate.
    pub fn new(tls: ServerTls, transport: TransportParams, local_cid: u32) -> Self {
        Self { tls, transport, local_cid, timeout: Duration::from_secs(10), versions: VERSIONS.to_vec() }
    }
}

/// What a completed handshake hands on.
#[derive(Debug)]
pub struct Established {
    /// Keys for the data packets.
    pub keys: DataKeys,
    /// Their AEAD.
    pub suite: CipherSuite,
    /// Protocol version.
    pub version: u8,
    /// What the peer allows, authentic.
    pub peer_params: TransportParams,
    /// The peer's number for the connection: the destination of data packets.
    pub peer_cid: u32,
    /// Application protocol agreed on.
    pub protocol: Option<Vec<u8>>,
    /// The key that the peer has proved to own; `None` for an anonymous client.
    pub peer_key: Option<PublicKey>,
    /// Smallest round-trip time seen, if any could be measured.
    pub rtt: Option<Duration>,
}

/// One connection's handshake. Sans-IO: see the module.
#[derive(Debug)]
pub struct Handshake {
    role: Role,
    version: u8,
    versions: Vec<u8>,
    attempt: u64,
    local_cid: u32,
    /// Known with the peer's first authentic packet; never changes.
    peer_cid: Option<u32>,
    session: TlsSession,
    initial: InitialKeys,
    outgoing: [Outgoing; 2],
    incoming: [Incoming; 2],
    /// Packets of the Handshake level that came before the keys to open them.
    early: Vec<Vec<u8>>,
    /// Client: what it shows the server to be let in.
    token: Vec<u8>,
    /// First packet number that carries this token.
    token_since: u32,
    retries: u8,
    /// Client: to start again with another version.
    restart: Option<(ClientTls, TransportParams)>,
    /// The hellos went another way: only packets of level Handshake count.
    is_carried: bool,
    next_packet_number: u32,
    /// Highest packet number received; 0 for none.
    peer_packet_number: u32,
    timing: Timing,
    budget: Budget,
    ack_due: [bool; 2],
    probe_due: bool,
    close_due: Option<(super::Level, u8)>,
    /// What this side told the peer when it gave up; `None` if the peer did.
    closed_with: Option<(super::Level, u8)>,
    closes_left: u8,
    complete: bool,
    established: Option<Box<Established>>,
    failure: Option<HandshakeError>,
}

/// What a server may send to an address that is not proved. RFC 9000 8.1: three times what came from it.
#[derive(Debug, Default)]
struct Budget {
    is_address_proved: bool,
    received_bytes: usize,
    sent_bytes: usize,
}

impl Budget {
    fn on_received(&mut self, length: usize) {
        self.received_bytes = self.received_bytes.saturating_add(length);
    }

    fn allows(&self, length: usize) -> bool {
        self.is_address_proved || self.sent_bytes.saturating_add(length) <= self.received_bytes.saturating_mul(3)
    }
}

impl Handshake {
    /// A client's handshake, begun at `now`: `poll_transmit` has its first packets.
    pub fn client(now: Time, params: ClientParams) -> Result<Self, HandshakeError> {
        let ClientParams { tls, transport, local_cid, attempt, admission, timeout, expected_rtt, versions } = params;
        let version = versions.first().copied().unwrap_or(super::wire::VERSION_1);
        let session = TlsSession::client(&tls, versioned(&transport, version, &versions))?;
        let mut handshake = Self::new(now, Role::Client, session, version, versions, attempt, local_cid, timeout);
        handshake.timing.expect(now, expected_rtt);
        handshake.token = admission.filter(|token| token.len() <= MAX_TOKEN_BYTES).unwrap_or_default();
        handshake.restart = Some((tls, transport));
        handshake.budget.is_address_proved = true;
        handshake.write_session();
        Ok(handshake)
    }

    /// A server's handshake with the client that `initial` is from. Hand it the datagram next.
    pub fn server(now: Time, params: ServerParams, initial: &ParsedInitial) -> Result<Self, HandshakeError> {
        let ServerParams { tls, transport, local_cid, timeout, versions } = params;
        let session = TlsSession::server(&tls, versioned(&transport, initial.version, &versions))?;
        let mut handshake = Self::new(now, Role::Server, session, initial.version, versions, initial.attempt, local_cid, timeout);
        match initial.proof {
            Proof::Address { age } => {
                handshake.budget.is_address_proved = true;
                handshake.timing.on_rtt(age);
            }
            Proof::Return { rtt, .. } => handshake.timing.expect(now, Some(rtt)),
            Proof::Invitation { .. } => {}
        }
        Ok(handshake)
    }

    #[allow(clippy::too_many_arguments, reason = "private: the two constructors name them")]
    fn new(
        now: Time,
        role: Role,
        session: TlsSession,
        version: u8,
        versions: Vec<u8>,
        attempt: u64,
        local_cid: u32,
        timeout: Duration,
    ) -> Self {
        Self {
            role,
            version,
            versions,
            attempt,
            local_cid,
            peer_cid: None,
            session,
            initial: InitialKeys::new(version, attempt, role),
            outgoing: Default::default(),
            incoming: Default::default(),
            early: Vec::new(),
            token: Vec::new(),
            token_since: 1,
            retries: 0,
            restart: None,
            is_carried: false,
            next_packet_number: 1,
            peer_packet_number: 0,
            timing: Timing::new(now, timeout),
            budget: Budget::default(),
            ack_due: [false; 2],
            probe_due: false,
            close_due: None,
            closed_with: None,
            closes_left: MAX_CLOSES,
            complete: false,
            established: None,
            failure: None,
        }
    }

    /// The result, once, as soon as this side is complete. A client's data may then follow at once; the server can open it when the client's last
    /// packet has arrived there.
    pub fn take_complete(&mut self) -> Option<Established> {
        self.established.take().map(|established| *established)
    }

    /// This side has all it needs for data packets.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Complete, and the peer has acknowledged all: nothing is sent any more except answers. A server keeps a settled handshake while the
    /// client may still be asking: until a data packet of the client has opened.
    pub fn is_settled(&self) -> bool {
        self.complete && self.outgoing.iter().all(Outgoing::is_settled)
    }

    /// A data packet of the peer has opened, so the peer is complete and has received all.
    pub fn confirm(&mut self) {
        self.outgoing.iter_mut().for_each(Outgoing::settle);
        self.ack_due = [false; 2];
        self.probe_due = false;
    }

    /// The client has shown that it receives where it sends from; on its own side it has nothing to show.
    pub(crate) fn is_address_proved(&self) -> bool {
        self.budget.is_address_proved
    }

    /// The client's address is known another way.
    pub(crate) fn prove_address(&mut self) {
        self.budget.is_address_proved = true;
    }

    /// What came from the client's address, and what went there: bytes.
    pub(crate) fn address_bytes(&self) -> (u64, u64) {
        (self.budget.received_bytes as u64, self.budget.sent_bytes as u64)
    }

    /// The client's random number: with the address, what an accepting endpoint knows the handshake by.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&HandshakeError> {
        self.failure.as_ref()
    }

    /// When [`Handshake::handle_timeout`] is to be called, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.failure.is_some() || self.is_settled() {
            return None;
        }
        Some(self.timing.next())
    }

    /// Time has passed: what is not acknowledged is sent again (then true), or the handshake is given up.
    pub fn handle_timeout(&mut self, now: Time) -> Result<bool, HandshakeError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.is_settled() {
            return Ok(false);
        }
        if self.timing.is_over(now) {
            return Err(self.fail(HandshakeError::TimedOut { heard: self.has_heard() || self.retries > 0 }));
        }
        let expired = self.timing.has_probe_timer_expired(now);
        if expired {
            self.repeat();
            // A client that has nothing to send probes all the same: the server may be out of budget.
            self.probe_due = self.role == Role::Client && !self.outgoing.iter().any(Outgoing::has_unsent);
        }
        Ok(expired)
    }

    fn fail(&mut self, failure: HandshakeError) -> HandshakeError {
        self.established = None;
        self.failure.insert(failure).clone()
    }

    fn write_session(&mut self) {
        let [initial, handshake] = &mut self.outgoing;
        self.session.write(&mut initial.bytes, &mut handshake.bytes);
    }
}

fn versioned(transport: &TransportParams, version: u8, versions: &[u8]) -> Vec<u8> {
    TransportParams { version, versions: versions.to_vec(), ..transport.clone() }.encode()
}

/// Keys of level 0, both directions.
struct InitialKeys {
    seal: PacketKey,
    open: PacketKey,
}

impl InitialKeys {
    fn new(version: u8, attempt: u64, role: Role) -> Self {
        let mut seed = [0; 32];
        seed[..12].copy_from_slice(b"haul initial");
        seed[12] = version;
        seed[13..21].copy_from_slice(&attempt.to_be_bytes());
        let secret = Secret::new(seed);
        let key = |label: &[u8]| PacketKey::derive(CipherSuite::Aes128Gcm, &secret.child(label));
        let (client, server) = (key(b"haul client"), key(b"haul server"));
        match role {
            Role::Client => Self { seal: client, open: server },
            Role::Server => Self { seal: server, open: client },
        }
    }
}

impl std::fmt::Debug for InitialKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InitialKeys")
    }
}

/// So that a packet with its token still has room for a useful piece of TLS.
const MAX_TOKEN_BYTES: usize = 255;

/// Times that a failed handshake tells the peer so, once for each packet that still comes.
const MAX_CLOSES: u8 = 8;

#[cfg(test)]
mod tests;
