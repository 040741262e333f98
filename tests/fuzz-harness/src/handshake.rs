//! Decoders of the handshake: what anyone on the network can feed an endpoint.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::digest;
use haul_proto::handshake::wire::{Answer, Body, CryptoHeader, DATAGRAM_BYTES, Invariant, Kind, is_handshake};
use haul_proto::handshake::{Accept, Acceptor, CarriedAnswer, CarriedOpening, CookieJar, Level, TransportParams};
use haul_units::Time;

use crate::feed::Feed;

/// A handshake datagram: as it came, and with a right check sum; what travels another way than over UDP.
pub fn handshake_datagram(data: &[u8]) {
    check_datagram(data);
    let sum = digest::digest(&digest::SHA256, data);
    check_datagram(&[data, &sum.as_ref()[..8]].concat());
    if let Some(body) = Body::decode(data) {
        let mut out = vec![0; data.len()];
        let length = body.encode(&mut out).expect("no longer than what it was read from");
        assert_eq!(Body::decode(&out[..length]), Some(body));
    }
    if let Some(opening) = CarriedOpening::decode(data) {
        assert_eq!(opening.encode(), data);
    }
    if let Some(answer) = CarriedAnswer::decode(data) {
        assert_eq!(answer.encode().as_deref(), Some(data));
    }
}

fn check_datagram(datagram: &[u8]) {
    if let Some(invariant) = Invariant::decode(datagram) {
        assert!(is_handshake(datagram), "{invariant:?}");
    }
    if let Some((header, length)) = CryptoHeader::decode(datagram) {
        let mut out = vec![0; length];
        assert_eq!(header.encode(&mut out), Some(length));
        assert_eq!(out, &datagram[..length]);
    }
    if let Some(answer) = Answer::decode(datagram) {
        assert_eq!(answer.encode(), datagram);
    }
}

/// Transport parameters.
pub fn transport_params(data: &[u8]) {
    let Ok(params) = TransportParams::decode(data) else { return };
    assert_eq!(TransportParams::decode(&params.encode()), Ok(params));
}

/// The front of an endpoint: a datagram begins nothing unless it brings the cookie that its sender was given.
pub fn acceptor(data: &[u8]) {
    let acceptor = Acceptor::new(CookieJar::new(&[7; 32]));
    let mut feed = Feed(data);
    let now = Time::from_nanos(feed.u64() >> 1);
    let home = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(feed.u64() as u32)), 4000);
    let (at, flip, later) = (usize::from(feed.u8()), feed.u8(), Duration::from_secs(u64::from(feed.u8() % 64)));
    let invariant =
        Invariant { kind: Kind::Crypto, version: feed.u8() % 2, destination_cid: 0, source_cid: 5, attempt: feed.u64() };
    let header = |token| CryptoHeader { invariant, packet_number: 1, level: Level::Initial, token };

    let mut arbitrary = feed.0.to_vec();
    arbitrary.resize(arbitrary.len().max(DATAGRAM_BYTES), 0);
    judge(&acceptor, now, home, &arbitrary);
    let Some(answer) = judge(&acceptor, now, home, &datagram(&header(feed.run()))) else { return };
    let Some(retry) = Answer::decode(&answer).filter(|answer| answer.invariant.kind == Kind::Retry) else { return };
    let mut cookie = retry.content.to_vec();
    let at = at % cookie.len();
    cookie[at] ^= flip;
    let accepted = matches!(acceptor.handle(now + later, home, &datagram(&header(&cookie)), |_| true), Accept::Begin(_));
    assert_eq!(accepted, flip == 0 && later <= Duration::from_secs(30));
}

fn datagram(header: &CryptoHeader<'_>) -> Vec<u8> {
    let mut datagram = vec![0; DATAGRAM_BYTES];
    header.encode(&mut datagram).expect("a header fits into a datagram");
    datagram
}

/// What the acceptor says to a datagram with a token that it never gave out.
fn judge(acceptor: &Acceptor, now: Time, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
    match acceptor.handle(now, from, datagram, |_| true) {
        Accept::Begin(initial) => panic!("a token from nowhere holds: {initial:?}"),
        Accept::Ignore => None,
        Accept::Respond(answer) => {
            assert!(answer.len() < datagram.len());
            assert!(Answer::decode(&answer).is_some());
            Some(answer)
        }
    }
}
