//! Decoders of the handshake: what anyone on the network can feed an endpoint.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use aws_lc_rs::digest;
use haul_proto::handshake::wire::{Answer, Body, CryptoHeader, Invariant, is_handshake};
use haul_proto::handshake::{Bound, CookieJar, TransportParams};
use haul_units::Time;

use crate::feed::Feed;

/// A handshake datagram: as it came, and with a right check sum.
pub fn handshake_datagram(data: &[u8]) {
    check_datagram(data);
    let sum = digest::digest(&digest::SHA256, data);
    check_datagram(&[data, &sum.as_ref()[..8]].concat());
    if let Some(body) = Body::decode(data) {
        let mut out = vec![0; data.len()];
        let length = body.encode(&mut out).expect("no longer than what it was read from");
        assert_eq!(Body::decode(&out[..length]), Some(body));
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

/// Tokens: none holds but those that were minted.
pub fn token(data: &[u8]) {
    let jar = CookieJar::new(&[7; 32]);
    let mut feed = Feed(data);
    let now = Time::from_nanos(feed.u64());
    let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::from(feed.u64() as u32)), 4000);
    let bound = Bound { attempt: feed.u64(), client_cid: feed.u64() as u32, version: 1 };
    let minted = [jar.mint(now, from, bound).to_vec(), jar.admit(now, bound.attempt).to_vec()];
    for token in &minted {
        assert!(jar.check(now, from, bound, token).is_some());
        let mut forged = token.clone();
        let at = usize::from(feed.u8()) % forged.len();
        forged[at] ^= feed.u8();
        assert_eq!(jar.check(now, from, bound, &forged).is_some(), forged == *token);
    }
    if jar.check(now, from, bound, feed.0).is_some() {
        assert!(minted.iter().any(|token| token == feed.0), "a token from nowhere holds");
    }
}
