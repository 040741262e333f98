//! Both sides of a handshake whose hellos go another way than over UDP.

use std::time::Duration;

use haul_units::Time;

use crate::crypto::Role;
use crate::handshake::Level;
use crate::handshake::carried::{ANSWER_NUMBER, CarriedAnswer, CarriedOpening};
use crate::handshake::error::{HandshakeError, Misbehaviour};
use crate::handshake::session::TlsSession;

use super::timing::Timing;
use super::{Handshake, Outgoing, ServerParams, versioned};

const MALFORMED: HandshakeError = HandshakeError::PeerMisbehaved(Misbehaviour::Malformed);

impl Handshake {
    /// A client's opening, to be carried to the server. [`Handshake::on_answer`] takes what comes back; until then nothing is to be sent.
    pub fn opening(&self) -> Vec<u8> {
        let Self { version, attempt, local_cid, .. } = *self;
        CarriedOpening { version, attempt, client_cid: local_cid, hello: &self.outgoing[0].bytes }.encode()
    }

    /// The answer to a client's opening, carried back. This side is then complete.
    pub fn on_answer(&mut self, now: Time, answer: &[u8]) -> Result<(), HandshakeError> {
        let Some(answer) = CarriedAnswer::decode(answer).filter(|_| self.role == Role::Client && self.peer_cid.is_none()) else {
            return Err(self.fail(MALFORMED));
        };
        self.is_carried = true;
        self.peer_cid = Some(answer.server_cid);
        self.peer_packet_number = ANSWER_NUMBER;
        self.outgoing[0].settle();
        self.on_tls(now, Level::Initial, 0, answer.hello)?;
        if self.session.read_level() == Level::Handshake {
            self.on_tls(now, Level::Handshake, 0, answer.rest)?;
        }
        if self.complete { Ok(()) } else { Err(self.fail(MALFORMED)) }
    }

    /// Where the server is has become clear: it has `timeout` from now on to be heard.
    pub(crate) fn begin_asking(&mut self, now: Time, timeout: Duration) {
        self.timing = Timing::new(now, timeout);
    }

    /// A server's handshake with the client that this opening is of, and the answer to carry back. It waits for the client's first packet, from whatever address.
    pub fn carried(now: Time, params: ServerParams, opening: &[u8]) -> Result<(Self, Vec<u8>), HandshakeError> {
        let ServerParams { tls, transport, local_cid, timeout, versions } = params;
        let opening = CarriedOpening::decode(opening).ok_or(MALFORMED)?;
        let CarriedOpening { version, attempt, client_cid, hello } = opening;
        if !versions.contains(&version) {
            return Err(HandshakeError::VersionMismatch { ours: versions, theirs: vec![version] });
        }
        let session = TlsSession::server(&tls, versioned(&transport, version, &versions))?;
        let mut handshake = Self::new(now, Role::Server, session, version, versions, attempt, local_cid, timeout);
        handshake.is_carried = true;
        handshake.peer_cid = Some(client_cid);
        handshake.on_tls(now, Level::Initial, 0, hello)?;
        if handshake.session.read_level() == Level::Initial {
            // Part of a hello, or one that must be asked for again.
            return Err(MALFORMED);
        }
        let [hello, rest] = &handshake.outgoing;
        let answer = CarriedAnswer { server_cid: local_cid, hello: &hello.bytes, rest: &rest.bytes }.encode();
        handshake.outgoing.iter_mut().for_each(Outgoing::settle);
        handshake.timing.on_sent(ANSWER_NUMBER, now);
        handshake.next_packet_number = ANSWER_NUMBER + 1;
        Ok((handshake, answer.ok_or(MALFORMED)?))
    }

    /// Something authentic has come over UDP.
    pub(crate) fn has_heard(&self) -> bool {
        let carried = if self.is_carried && self.role == Role::Client { ANSWER_NUMBER } else { 0 };
        self.peer_packet_number > carried
    }

    /// Number of the newest authentic packet of the peer's.
    pub(crate) const fn newest_heard(&self) -> u32 {
        self.peer_packet_number
    }

    /// Smallest round-trip time seen.
    pub fn rtt(&self) -> Option<Duration> {
        self.timing.rtt()
    }

    /// What is not acknowledged is to be sent again at once.
    pub fn repeat(&mut self) {
        self.outgoing.iter_mut().for_each(Outgoing::rewind);
    }
}
