//! What a handshake does with a datagram.

use haul_units::Time;

use crate::crypto::{DataKeys, Role};
use crate::handshake::error::{HandshakeError, Misbehaviour};
use crate::handshake::params::TransportParams;
use crate::handshake::session::TlsSession;
use crate::handshake::wire::{Answer, Body, CryptoHeader, DATAGRAM_BYTES, Invariant, Kind};
use crate::handshake::{Established, Level};

use super::{Handshake, InitialKeys, MAX_TOKEN_BYTES, versioned};

/// Packets that may wait for their keys.
const MAX_EARLY: usize = 8;

/// RETRY packets that a client follows: cookies expire, but not that often.
const MAX_RETRIES: u8 = 4;

/// TLS alerts (RFC 8446 6) of failures that TLS itself does not see.
const ILLEGAL_PARAMETER: u8 = 47;
const INTERNAL_ERROR: u8 = 80;
const NO_APPLICATION_PROTOCOL: u8 = 120;

impl Handshake {
    /// Takes a datagram that came for this handshake. What is not authentic changes nothing and is no error. `datagram` is decrypted in place.
    ///
    /// An error is final, also after completion: a server that refuses the client's key says so when the client is already complete.
    pub fn handle_datagram(&mut self, now: Time, datagram: &mut [u8]) -> Result<(), HandshakeError> {
        if let Some(failure) = &self.failure {
            let failure = failure.clone();
            self.close_again(datagram);
            return Err(failure);
        }
        if !self.is_carried {
            self.budget.on_received(datagram.len());
        }
        let Some(invariant) = Invariant::decode(datagram).filter(|it| it.attempt == self.attempt) else { return Ok(()) };
        match (invariant.kind, self.role) {
            (Kind::Crypto, _) => self.on_packet(now, datagram)?,
            (_, Role::Server) => {}
            (Kind::Retry, Role::Client) => self.on_retry(now, datagram),
            (Kind::Version, Role::Client) => self.on_versions(now, datagram)?,
        }
        Ok(())
    }

    /// The peer does not seem to know that this side has given up.
    fn close_again(&mut self, datagram: &[u8]) {
        let is_ours = Invariant::decode(datagram).is_some_and(|it| it.kind == Kind::Crypto && it.attempt == self.attempt);
        if is_ours && self.closes_left > 0 && self.close_due.is_none() {
            self.closes_left -= 1;
            self.close_due = self.closed_with;
        }
    }

    fn on_retry(&mut self, now: Time, datagram: &[u8]) {
        let Some(answer) = Answer::decode(datagram).filter(|it| self.is_answer_to_us(it)) else { return };
        let is_usable = answer.invariant.version == self.version && answer.content.len() <= MAX_TOKEN_BYTES;
        // Each datagram of a flight gets its own answer; a later one says nothing new unless it refuses the present token.
        let is_news = answer.echo >= self.token_since;
        if is_usable && is_news && self.retries < MAX_RETRIES {
            self.retries += 1;
            self.token = answer.content.to_vec();
            self.token_since = self.next_packet_number;
            self.timing.on_echo(answer.echo, now);
            self.timing.on_progress(now);
            self.outgoing[0].rewind();
        }
    }

    fn on_versions(&mut self, now: Time, datagram: &[u8]) -> Result<(), HandshakeError> {
        let Some(answer) = Answer::decode(datagram).filter(|it| self.is_answer_to_us(it)) else { return Ok(()) };
        let theirs = answer.content;
        if theirs.contains(&self.version) {
            return Ok(());
        }
        let Some(version) = self.versions.iter().copied().find(|version| theirs.contains(version)) else {
            let (ours, theirs) = (self.versions.clone(), theirs.to_vec());
            return Err(self.fail(HandshakeError::VersionMismatch { ours, theirs }));
        };
        let Some((tls, transport)) = self.restart.take() else { return Ok(()) };
        self.version = version;
        self.session = TlsSession::client(&tls, versioned(&transport, version, &self.versions))?;
        self.initial = InitialKeys::new(version, self.attempt, self.role);
        self.outgoing = Default::default();
        self.timing.on_progress(now);
        self.write_session();
        Ok(())
    }

    /// Only before the server's first authentic packet: from then on there is nothing to answer without state.
    fn is_answer_to_us(&self, answer: &Answer<'_>) -> bool {
        self.peer_cid.is_none() && answer.invariant.destination_cid == self.local_cid
    }

    fn on_packet(&mut self, now: Time, datagram: &mut [u8]) -> Result<(), HandshakeError> {
        let Some((header, header_len)) = CryptoHeader::decode(datagram) else { return Ok(()) };
        let CryptoHeader { invariant, packet_number, level, .. } = header;
        let is_late = self.is_carried && level == Level::Initial;
        if !self.is_for_us(&invariant) || is_late || datagram.len() > DATAGRAM_BYTES {
            return Ok(());
        }
        if level == Level::Handshake && self.session.handshake_keys().is_none() {
            if self.early.len() < MAX_EARLY {
                self.early.push(datagram.to_vec());
            }
            return Ok(());
        }
        let datagram_len = datagram.len();
        let (header, sealed) = datagram.split_at_mut(header_len);
        let Some(length) = self.open(level, packet_number, header, sealed) else { return Ok(()) };
        let Some(body) = sealed.get(..length).and_then(Body::decode) else { return Ok(()) };
        self.peer_cid = Some(invariant.source_cid);
        self.peer_packet_number = self.peer_packet_number.max(packet_number);
        if self.is_carried {
            // Its keys went another way, so whoever has seen the packet can send it, from anywhere.
            self.budget.on_received(datagram_len);
        } else {
            self.budget.is_address_proved |= level == Level::Handshake;
        }
        match body {
            Body::Close { alert } => self.on_close(level, alert),
            Body::Tls { acknowledged, echo, offset, bytes } => {
                self.timing.on_echo(echo, now);
                self.on_acknowledged(now, level, acknowledged);
                self.on_tls(now, level, offset, bytes)
            }
        }
    }

    fn is_for_us(&self, invariant: &Invariant) -> bool {
        let is_destination = invariant.destination_cid == self.local_cid
            // The client's packets before it knew the server's number.
            || (self.role == Role::Server && invariant.destination_cid == 0);
        let is_source = self.peer_cid.is_none_or(|cid| cid == invariant.source_cid);
        is_destination && is_source && invariant.version == self.version
    }

    fn open(&self, level: Level, packet_number: u32, header: &[u8], sealed: &mut [u8]) -> Option<usize> {
        match level {
            Level::Initial => self.initial.open.open_in_place(0, packet_number.into(), header, sealed).ok(),
            Level::Handshake => {
                let key = &self.session.handshake_keys()?.remote.packet;
                key.decrypt_in_place(packet_number.into(), header, sealed).ok().map(<[u8]>::len)
            }
        }
    }

    fn on_close(&mut self, level: Level, alert: u8) -> Result<(), HandshakeError> {
        // Once there are TLS keys, only their owner may close.
        if level < self.session.read_level() {
            return Ok(());
        }
        Err(self.fail(match alert {
            NO_APPLICATION_PROTOCOL => HandshakeError::NoCommonProtocol,
            alert => HandshakeError::Refused { alert },
        }))
    }

    /// A level is acknowledged under its own keys or better ones.
    fn on_acknowledged(&mut self, now: Time, level: Level, acknowledged: [u32; 2]) {
        let mut news = false;
        for acknowledged_level in Level::ALL.into_iter().filter(|it| *it <= level) {
            let index = acknowledged_level as usize;
            news |= self.outgoing[index].on_acknowledged(acknowledged[index]);
        }
        if news {
            self.timing.on_progress(now);
        }
    }

    pub(super) fn on_tls(&mut self, now: Time, level: Level, offset: u32, bytes: &[u8]) -> Result<(), HandshakeError> {
        let index = level as usize;
        if bytes.is_empty() {
            // An acknowledgement or a probe. Neither is acknowledged, or two sides would do so for ever.
            return Ok(());
        }
        match self.incoming[index].insert(offset, bytes) {
            Err(_) => return Err(self.close(level, INTERNAL_ERROR, HandshakeError::PeerMisbehaved(Misbehaviour::TooLong))),
            // The peer sends again what is here: it has not heard of that.
            Ok(false) => self.ack_due[index] = true,
            Ok(true) => {
                self.timing.on_progress(now);
                // Nothing of this side's would carry the acknowledgement.
                self.ack_due[index] |= self.complete;
            }
        }
        self.read_session(level)?;
        if self.session.handshake_keys().is_some() {
            for mut datagram in std::mem::take(&mut self.early) {
                self.on_packet(now, &mut datagram)?;
            }
        }
        Ok(())
    }

    /// Feeds TLS what is there for its present level.
    fn read_session(&mut self, level: Level) -> Result<(), HandshakeError> {
        while let Some(bytes) = self.incoming[self.session.read_level() as usize].take_readable() {
            if let Err(error) = self.session.read(bytes) {
                let alert = self.session.alert();
                return Err(self.close(level, alert, error));
            }
            self.write_session();
            if !self.complete && self.session.is_complete() {
                let established = match self.establish() {
                    Ok(established) => established,
                    Err(error) => return Err(self.close(level, ILLEGAL_PARAMETER, error)),
                };
                self.established = Some(Box::new(established));
                self.complete = true;
                self.ack_due[level as usize] |= self.role == Role::Server;
            }
        }
        Ok(())
    }

    fn close(&mut self, level: Level, alert: u8, error: HandshakeError) -> HandshakeError {
        // The level that the peer is known to have keys of: that of the packet which is to blame.
        self.close_due = Some((level, alert));
        self.closed_with = self.close_due;
        self.fail(error)
    }

    fn establish(&self) -> Result<Established, HandshakeError> {
        let peer_params = TransportParams::decode(self.session.peer_params().unwrap_or_default())
            .map_err(|error| HandshakeError::PeerMisbehaved(error.into()))?;
        self.check_version(&peer_params)?;
        let peer_cid = self.peer_cid.unwrap_or(0);
        let suite = self.session.cipher_suite().ok_or(HandshakeError::Local(rustls::Error::HandshakeNotComplete))?;
        let secret = self.session.exporter_secret(&self.exporter_context(peer_cid))?;
        Ok(Established {
            keys: DataKeys::new(secret, self.role, suite),
            suite,
            version: self.version,
            peer_params,
            peer_cid,
            protocol: self.session.protocol().map(<[u8]>::to_vec),
            peer_key: self.session.peer_key(),
            rtt: self.timing.rtt(),
        })
    }

    /// Both sides name, under TLS, the version they use and those they know; the one used is the first of the client's that both know.
    fn check_version(&self, peer: &TransportParams) -> Result<(), HandshakeError> {
        let (client, server) = match self.role {
            Role::Client => (&self.versions, &peer.versions),
            Role::Server => (&peer.versions, &self.versions),
        };
        let best = client.iter().find(|version| server.contains(version));
        if peer.version == self.version && best == Some(&self.version) {
            return Ok(());
        }
        Err(HandshakeError::PeerMisbehaved(Misbehaviour::Downgrade))
    }

    /// What both sides saw in clear: were it changed on the way, their keys would differ.
    pub(super) fn exporter_context(&self, peer_cid: u32) -> [u8; 17] {
        let (client, server) = match self.role {
            Role::Client => (self.local_cid, peer_cid),
            Role::Server => (peer_cid, self.local_cid),
        };
        let mut context = [self.version; 17];
        context[1..9].copy_from_slice(&self.attempt.to_be_bytes());
        context[9..13].copy_from_slice(&client.to_be_bytes());
        context[13..].copy_from_slice(&server.to_be_bytes());
        context
    }
}
