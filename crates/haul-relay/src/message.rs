//! What an end and a relay say to each other, and what two ends punch holes with: datagrams of one length.
//!
//! ```text
//!   mark 8 | kind 1 | end 1 | 0 0 | pair 8 | body 28 | proof 16
//!
//!   kind       body                                    proved with
//!   ASK        count 8 | 0                             the end's key
//!   COOKIE     cookie 16 | 0                           the end's key
//!   PROVE      count 8 | cookie 16 | 0                 the end's key
//!   PLACE      address 16 (IPv4 mapped) | port 2 | 0   the end's key
//!   PUNCH      0                                       a key that the two ends share and the relay does not know
//! ```
//! The proof is BLAKE3, keyed, over all that stands before it. Kind and end are in it, so that nothing can be sent back as something else.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::{End, Ticket};

/// What every message begins with: no packet of the transport does.
pub const MARK: [u8; 8] = *b"rhaulrl1";
/// The length of every message.
pub const MESSAGE_BYTES: usize = 64;
/// Of a key.
pub const KEY_BYTES: usize = 32;

/// A secret.
pub type Key = [u8; KEY_BYTES];
/// The number of a pair. No secret: it stands in every message.
pub type PairId = u64;

pub type Message = [u8; MESSAGE_BYTES];
pub type Cookie = [u8; COOKIE_BYTES];

pub const COOKIE_BYTES: usize = 16;
const BODY_BYTES: usize = 28;
const PROOF_BYTES: usize = 16;
const PROVED_BYTES: usize = MESSAGE_BYTES - PROOF_BYTES;

const ASK: u8 = 1;
const COOKIE: u8 = 2;
const PROVE: u8 = 3;
const PLACE: u8 = 4;
const PUNCH: u8 = 5;

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An end wants to be known by the address that this comes from.
    Ask { count: u64 },
    /// It may say this there.
    Cookie { cookie: Cookie },
    /// It does. Of what an end says only what has a higher count than all before is heard.
    Prove { count: u64, cookie: Cookie },
    /// That is where it is.
    Place { at: SocketAddr },
    /// One end opens its NAT for the other: hole punching.
    Punch,
}

/// Writes a message.
pub fn encode(content: Content, pair: PairId, end: End, key: &Key) -> Message {
    let mut out = [0; MESSAGE_BYTES];
    let mut body = [0; BODY_BYTES];
    let kind = match content {
        Content::Ask { count } => {
            put(&mut body, 0, &count.to_be_bytes());
            ASK
        }
        Content::Cookie { cookie } => {
            put(&mut body, 0, &cookie);
            COOKIE
        }
        Content::Prove { count, cookie } => {
            put(&mut body, 0, &count.to_be_bytes());
            put(&mut body, 8, &cookie);
            PROVE
        }
        Content::Place { at } => {
            put(&mut body, 0, &in_ipv6(at.ip()).octets());
            put(&mut body, 16, &at.port().to_be_bytes());
            PLACE
        }
        Content::Punch => PUNCH,
    };
    put(&mut out, 0, &MARK);
    put(&mut out, 8, &[kind, end.index() as u8]);
    put(&mut out, 12, &pair.to_be_bytes());
    put(&mut out, 20, &body);
    let proof = proof(key, &out);
    put(&mut out, PROVED_BYTES, &proof);
    out
}

/// Whether a datagram is to be taken for a message, right or wrong.
pub fn is_message(datagram: &[u8]) -> bool {
    datagram.starts_with(&MARK)
}

/// Of which end of which pair a message says that it is. Nothing is proved.
pub fn claimed(datagram: &[u8]) -> Option<(PairId, End)> {
    let message: &Message = datagram.try_into().ok().filter(|_| is_message(datagram))?;
    let end = match message[9] {
        0 => End::Asking,
        1 => End::Other,
        _ => return None,
    };
    Some((u64::from_be_bytes(*message[12..].first_chunk()?), end))
}

/// Reads a message, if it is one of this end and proved.
pub fn decode(datagram: &[u8], pair: PairId, end: End, key: &Key) -> Option<Content> {
    let message: &Message = datagram.try_into().ok().filter(|_| claimed(datagram) == Some((pair, end)))?;
    verify_slices_are_equal(&proof(key, message), &message[PROVED_BYTES..]).ok()?;
    let body = &message[20..PROVED_BYTES];
    let content = match message[8] {
        ASK => Content::Ask { count: u64::from_be_bytes(*body.first_chunk()?) },
        COOKIE => Content::Cookie { cookie: *body.first_chunk()? },
        PROVE => Content::Prove { count: u64::from_be_bytes(*body.first_chunk()?), cookie: *body[8..].first_chunk()? },
        PLACE => {
            let ip = Ipv6Addr::from(*body.first_chunk::<16>()?).to_canonical();
            Content::Place { at: SocketAddr::new(ip, u16::from_be_bytes(*body[16..].first_chunk()?)) }
        }
        PUNCH => Content::Punch,
        _ => return None,
    };
    Some(content)
}

/// What one end sends to the other's address, so that its NAT lets the answer in. `key` is a secret of the two.
pub fn punch(pair: PairId, from: End, key: &Key) -> Message {
    encode(Content::Punch, pair, from, key)
}

/// Whether a datagram is this end's hole punching.
pub fn is_punch(datagram: &[u8], pair: PairId, from: End, key: &Key) -> bool {
    decode(datagram, pair, from, key) == Some(Content::Punch)
}

/// What an address is to say to show that it gets what is sent there.
pub fn cookie(secret: &Key, ticket: &Ticket, at: SocketAddr) -> Cookie {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(&ticket.pair.to_be_bytes()).update(&[ticket.end.index() as u8]);
    hasher.update(&in_ipv6(at.ip()).octets()).update(&at.port().to_be_bytes());
    let mut cookie = [0; COOKIE_BYTES];
    hasher.finalize_xof().fill(&mut cookie);
    cookie
}

fn proof(key: &Key, message: &Message) -> [u8; PROOF_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&message[..PROVED_BYTES]);
    let mut proof = [0; PROOF_BYTES];
    hasher.finalize_xof().fill(&mut proof);
    proof
}

const fn in_ipv6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in into.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = [7; KEY_BYTES];

    fn contents() -> Vec<Content> {
        let at = |text: &str| text.parse().expect("an address");
        vec![
            Content::Ask { count: 1 },
            Content::Cookie { cookie: [9; 16] },
            Content::Prove { count: u64::MAX, cookie: [3; 16] },
            Content::Place { at: at("192.0.2.7:65535") },
            Content::Place { at: at("[2001:db8::1]:1") },
            Content::Punch,
        ]
    }

    #[test]
    fn a_message_is_read_as_it_was_written_by_who_holds_the_key_and_by_nobody_else() {
        for content in contents() {
            let message = encode(content, 5, End::Other, &KEY);
            assert_eq!(claimed(&message), Some((5, End::Other)));
            assert_eq!(decode(&message, 5, End::Other, &KEY), Some(content));
            assert_eq!(decode(&message, 5, End::Other, &[8; KEY_BYTES]), None, "another key");
            assert_eq!(decode(&message, 6, End::Other, &KEY), None, "another pair");
            assert_eq!(decode(&message, 5, End::Asking, &KEY), None, "the other end");
            for at in 0..MESSAGE_BYTES {
                let mut changed = message;
                changed[at] ^= 1;
                assert_eq!(decode(&changed, 5, End::Other, &KEY), None, "byte {at} of {content:?}");
            }
            assert_eq!(decode(&message[..MESSAGE_BYTES - 1], 5, End::Other, &KEY), None);
        }
    }

    #[test]
    fn no_message_begins_like_a_packet_of_the_transport() {
        // Data and control begin with less than 0x3f, a reset with that, handshakes with 0x80 or more.
        assert!((0x40..0x80).contains(&MARK[0]));
    }

    proptest! {
        #[test]
        fn noise_is_no_message(mut noise in prop::collection::vec(any::<u8>(), 0..100), is_marked: bool) {
            if is_marked {
                put(&mut noise, 0, &MARK);
            }
            prop_assert_eq!(decode(&noise, 0, End::Asking, &KEY), None);
            let _ = claimed(&noise);
        }
    }
}
