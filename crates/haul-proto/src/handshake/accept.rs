//! The stateless front of an accepting endpoint.
//!
//! Everything that a stranger sends meets the [`Acceptor`] first. It keeps nothing, does no TLS, and never answers with more bytes than it was sent: state begins with a
//! packet that brings a valid token.

use std::net::SocketAddr;

use haul_strangers::{Bound, CookieJar, Proof};
use haul_units::Time;

use super::session::Level;
use super::wire::{Answer, CryptoHeader, DATAGRAM_BYTES, Invariant, Kind, VERSIONS};

/// What to do with a stranger's datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accept {
    /// Send this back; shorter than what came.
    Respond(Vec<u8>),
    /// The client may begin. An endpoint has at most one [`super::Handshake`] for a (`from`, `attempt`): it makes one if there is none, and hands it the datagram.
    Begin(ParsedInitial),
    /// Nothing.
    Ignore,
}

/// The opening packet of a client that has a valid token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedInitial {
    /// Where it came from.
    pub from: SocketAddr,
    /// The client's random number for this handshake.
    pub attempt: u64,
    /// A version that this side supports.
    pub version: u8,
    /// What the token proves.
    pub proof: Proof,
}

/// Judges first datagrams.
#[derive(Debug)]
pub struct Acceptor {
    cookies: CookieJar,
    versions: Vec<u8>,
}

impl Acceptor {
    /// With the endpoint's own jar.
    pub fn new(cookies: CookieJar) -> Self {
        Self::with_versions(cookies, VERSIONS.to_vec())
    }

    /// Like [`Acceptor::new`], but of an endpoint that supports `versions`, preferred first.
    pub(crate) fn with_versions(cookies: CookieJar, versions: Vec<u8>) -> Self {
        Self { cookies, versions }
    }

    /// The jar, to mint other tokens.
    pub(crate) fn cookies(&self) -> &CookieJar {
        &self.cookies
    }

    /// Judges a datagram that belongs to no connection (its destination id is 0 or unknown). A token that is valid, but not good any more (`is_good`), is as none.
    pub fn handle(&self, now: Time, from: SocketAddr, datagram: &[u8], is_good: impl FnOnce(&ParsedInitial) -> bool) -> Accept {
        // RFC 9000 14.1: a server takes no first packet from a shorter datagram; so no answer is longer than its cause
        if datagram.len() < DATAGRAM_BYTES {
            return Accept::Ignore;
        }
        let Some(invariant) = Invariant::decode(datagram).filter(|it| it.kind == Kind::Crypto && it.destination_cid == 0) else {
            return Accept::Ignore;
        };
        if !self.versions.contains(&invariant.version) {
            return Accept::Respond(answer(&invariant, 0, Kind::Version, &self.versions));
        }
        let Some((header, _)) = CryptoHeader::decode(datagram).filter(|(header, _)| header.level == Level::Initial) else {
            return Accept::Ignore;
        };
        let Invariant { attempt, version, source_cid: client_cid, .. } = invariant;
        let bound = Bound { attempt, client_cid, version };
        let proof = self.cookies.check(now, from, bound, header.token);
        if let Some(initial) = proof.map(|proof| ParsedInitial { from, attempt, version, proof }).filter(is_good) {
            return Accept::Begin(initial);
        }
        let cookie = self.cookies.mint(now, from, bound);
        Accept::Respond(answer(&invariant, header.packet_number, Kind::Retry, &cookie))
    }
}

fn answer(cause: &Invariant, echo: u32, kind: Kind, content: &[u8]) -> Vec<u8> {
    let version = if kind == Kind::Version { 0 } else { cause.version };
    let invariant = Invariant { kind, version, destination_cid: cause.source_cid, source_cid: 0, attempt: cause.attempt };
    Answer { invariant, echo, content }.encode()
}
