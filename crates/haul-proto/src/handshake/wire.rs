//! The packets of a handshake on the wire.
//!
//! Numbers in network order. A handshake packet has the top bit of its first byte set (data packets have 0x00..=0x3f there) and is a
//! datagram of its own, of at most 1200 bytes. The first 18 bytes mean the same in every version:
//!
//! ```text
//!  0  u8   0x80 | kind: 0 CRYPTO, 1 RETRY, 2 VERSION
//!  1  u8   version; 0 in VERSION
//!  2  u32  destination connection id: the receiver's own number for the connection; 0 while the client does not know it
//!  6  u32  source connection id: the sender's
//! 10  u64  attempt: the client's random number for this handshake, in all packets of both sides
//! ```
//! CRYPTO, both ways; the header is the associated data of what follows it:
//! ```text
//! 18  u32  packet number: from 1, one sequence for both levels of a sender
//! 22  u8   level: 0 Initial, 1 Handshake
//! 23  u8   length of the token, then the token: cookie or admission token, client to server
//!     sealed: u8 body: 0 bytes of TLS, 1 close
//!       0: u32, u32  bytes received without a gap at level 0, at level 1
//!          u32       echo: the highest packet number received, 0 for none
//!          u32, u16  offset, length, then that many bytes of the level's TLS stream; zeros to the end
//!       1: u8        TLS alert
//!     16 bytes of tag
//! ```
//! RETRY and VERSION, server to client:
//! ```text
//! 18  u32  echo: the packet number answered
//! 22  u8   length, then a cookie or a list of versions
//!     8 bytes of check sum: the start of SHA-256 over what is before it
//! ```
//! Level 0 is sealed with AES-128-GCM under a key that follows from version and attempt (so from the packet itself): that keeps out corruption and
//! whoever does not see the packets; TLS keeps out the others. Level 1 has TLS' handshake keys, nonce = iv xor packet number.

use aws_lc_rs::digest;

use super::session::Level;

/// The version of the protocol that this crate speaks.
pub const VERSION_1: u8 = 1;

/// All versions that this crate speaks, preferred first.
pub const VERSIONS: &[u8] = &[VERSION_1];

/// Longest handshake datagram, and the length of a client's first ones.
pub const DATAGRAM_BYTES: usize = 1200;

/// Set in the first byte of a handshake packet.
pub const LONG: u8 = 0x80;

const INVARIANT_BYTES: usize = 18;
const CHECK_BYTES: usize = 8;

/// What a handshake packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of TLS, acknowledgements, or a close.
    Crypto,
    /// A cookie to come back with.
    Retry,
    /// The versions that the server speaks.
    Version,
}

/// Is this datagram a handshake packet (of any version)?
#[inline]
pub fn is_handshake(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG != 0)
}

/// The part of the header that means the same in every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariant {
    /// What follows.
    pub kind: Kind,
    /// Of the protocol; 0 in VERSION.
    pub version: u8,
    /// The receiver's number for the connection, 0 if the sender does not know it.
    pub destination_cid: u32,
    /// The sender's number for the connection.
    pub source_cid: u32,
    /// The client's random number for this handshake.
    pub attempt: u64,
}

impl Invariant {
    /// `None`: not a handshake packet of a known kind.
    pub fn decode(datagram: &[u8]) -> Option<Self> {
        let mut reader = Reader(datagram);
        let kind = match reader.u8()? {
            0x80 => Kind::Crypto,
            0x81 => Kind::Retry,
            0x82 => Kind::Version,
            _ => return None,
        };
        Some(Self {
            kind,
            version: reader.u8()?,
            destination_cid: reader.u32()?,
            source_cid: reader.u32()?,
            attempt: reader.u64()?,
        })
    }

    fn encode(&self, out: &mut Writer<'_>) -> Option<()> {
        let kind = match self.kind {
            Kind::Crypto => 0,
            Kind::Retry => 1,
            Kind::Version => 2,
        };
        out.put(&[LONG | kind, self.version])?;
        out.put(&self.destination_cid.to_be_bytes())?;
        out.put(&self.source_cid.to_be_bytes())?;
        out.put(&self.attempt.to_be_bytes())
    }
}

/// The clear header of a CRYPTO packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CryptoHeader<'a> {
    /// Its first part.
    pub invariant: Invariant,
    /// From 1, one sequence for both levels of a sender.
    pub packet_number: u32,
    /// Which keys seal the body.
    pub level: Level,
    /// Cookie or admission token; empty from a server.
    pub token: &'a [u8],
}

impl<'a> CryptoHeader<'a> {
    /// The header and its length in bytes.
    pub fn decode(datagram: &'a [u8]) -> Option<(Self, usize)> {
        let invariant = Invariant::decode(datagram).filter(|invariant| invariant.kind == Kind::Crypto)?;
        let mut reader = Reader(datagram.get(INVARIANT_BYTES..)?);
        let packet_number = reader.u32()?;
        let level = match reader.u8()? {
            0 => Level::Initial,
            1 => Level::Handshake,
            _ => return None,
        };
        let length = reader.u8()?;
        let token = reader.take(length.into())?;
        Some((Self { invariant, packet_number, level, token }, datagram.len() - reader.0.len()))
    }

    /// Writes the header to the start of `out`; its length in bytes. `None`: no room, or a token over 255 bytes.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let room = out.len();
        let mut writer = Writer(out);
        self.invariant.encode(&mut writer)?;
        writer.put(&self.packet_number.to_be_bytes())?;
        writer.put(&[self.level as u8, u8::try_from(self.token.len()).ok()?])?;
        writer.put(self.token)?;
        Some(room - writer.0.len())
    }
}

/// What is sealed in a CRYPTO packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// Bytes of TLS (possibly none), acknowledgements.
    Tls {
        /// Bytes received without a gap, per level.
        acknowledged: [u32; 2],
        /// Highest packet number received, 0 for none.
        echo: u32,
        /// Where `bytes` belong in the stream of the packet's level.
        offset: u32,
        /// Of the TLS stream.
        bytes: &'a [u8],
    },
    /// The sender gives up.
    Close {
        /// A TLS alert (RFC 8446 6).
        alert: u8,
    },
}

/// Bytes of a [`Body::Tls`] besides the TLS bytes themselves.
pub(super) const BODY_OVERHEAD_BYTES: usize = 19;

impl<'a> Body<'a> {
    /// `None`: malformed.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        match reader.u8()? {
            0 => {
                let acknowledged = [reader.u32()?, reader.u32()?];
                let (echo, offset, length) = (reader.u32()?, reader.u32()?, reader.u16()?);
                Some(Self::Tls { acknowledged, echo, offset, bytes: reader.take(length.into())? })
            }
            1 => Some(Self::Close { alert: reader.u8()? }),
            _ => None,
        }
    }

    /// Writes the body to the start of `out`; its length in bytes. `None`: no room.
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let room = out.len();
        let mut writer = Writer(out);
        match self {
            Self::Tls { acknowledged, echo, offset, bytes } => {
                writer.put(&[0])?;
                for number in [acknowledged[0], acknowledged[1], *echo, *offset] {
                    writer.put(&number.to_be_bytes())?;
                }
                writer.put(&u16::try_from(bytes.len()).ok()?.to_be_bytes())?;
                writer.put(bytes)?;
            }
            Self::Close { alert } => writer.put(&[1, *alert])?,
        }
        Some(room - writer.0.len())
    }
}

/// A RETRY or a VERSION packet: an answer that needs no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Its first part; the kind is Retry or Version.
    pub invariant: Invariant,
    /// The packet number answered.
    pub echo: u32,
    /// A cookie, or a list of versions; at most 255 bytes.
    pub content: &'a [u8],
}

impl<'a> Answer<'a> {
    /// `None`: malformed, or the check sum is wrong.
    pub fn decode(datagram: &'a [u8]) -> Option<Self> {
        let invariant = Invariant::decode(datagram).filter(|invariant| invariant.kind != Kind::Crypto)?;
        let (covered, check) = datagram.split_at_checked(datagram.len().checked_sub(CHECK_BYTES)?)?;
        if check != check_sum(covered) {
            return None;
        }
        let mut reader = Reader(covered.get(INVARIANT_BYTES..)?);
        let echo = reader.u32()?;
        let length = reader.u8()?;
        let content = reader.take(length.into())?;
        reader.0.is_empty().then_some(Self { invariant, echo, content })
    }

    /// The datagram. Content over 255 bytes is cut off.
    pub fn encode(&self) -> Vec<u8> {
        let content = &self.content[..self.content.len().min(255)];
        let mut out = vec![0; INVARIANT_BYTES + 5 + content.len()];
        let mut writer = Writer(&mut out);
        self.invariant
            .encode(&mut writer)
            .and_then(|()| writer.put(&self.echo.to_be_bytes()))
            .and_then(|()| writer.put(&[content.len() as u8]))
            .and_then(|()| writer.put(content))
            .expect("the buffer has the length of its parts");
        let check = check_sum(&out);
        out.extend_from_slice(&check);
        out
    }
}

fn check_sum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let hash = digest::digest(&digest::SHA256, bytes);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hash.as_ref()[..CHECK_BYTES]);
    check
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut_checked(bytes.len())?;
        place.copy_from_slice(bytes);
        self.0 = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_invariant(kind: Kind) -> impl Strategy<Value = Invariant> {
        any::<(u8, u32, u32, u64)>().prop_map(move |(version, destination_cid, source_cid, attempt)| Invariant {
            kind,
            version,
            destination_cid,
            source_cid,
            attempt,
        })
    }

    proptest! {
        #[test]
        fn headers_round_trip(
            invariant in any_invariant(Kind::Crypto), packet_number: u32, one: bool, token in prop::collection::vec(any::<u8>(), 0..=255)
        ) {
            let level = if one { Level::Handshake } else { Level::Initial };
            let header = CryptoHeader { invariant, packet_number, level, token: &token };
            let mut out = [0; 300];
            let length = header.encode(&mut out).unwrap();
            prop_assert_eq!(CryptoHeader::decode(&out), Some((header, length)));
            prop_assert_eq!(CryptoHeader::decode(&out[..length - 1]), None);
            prop_assert_eq!(header.encode(&mut out[..length - 1]), None);
        }

        #[test]
        fn bodies_round_trip(
            acknowledged: [u32; 2], echo: u32, offset: u32, bytes in prop::collection::vec(any::<u8>(), 0..500), alert: u8
        ) {
            for body in [Body::Tls { acknowledged, echo, offset, bytes: &bytes }, Body::Close { alert }] {
                let mut out = [0; 600];
                let length = body.encode(&mut out).unwrap();
                prop_assert_eq!(Body::decode(&out), Some(body));
                prop_assert_eq!(Body::decode(&out[..length - 1]), None);
            }
        }

        #[test]
        fn answers_round_trip_and_notice_any_change(
            invariant in any_invariant(Kind::Retry), echo: u32, content in prop::collection::vec(any::<u8>(), 0..=255),
            place: prop::sample::Index, flip in 1_u8..
        ) {
            let answer = Answer { invariant, echo, content: &content };
            let mut bytes = answer.encode();
            prop_assert_eq!(Answer::decode(&bytes), Some(answer));
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
            prop_assert_eq!(Answer::decode(&bytes), None);
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0x80_u8..0x84) {
            for _ in 0..2 {
                let _ = Invariant::decode(&bytes);
                let _ = CryptoHeader::decode(&bytes);
                let _ = Body::decode(&bytes);
                let _ = Answer::decode(&bytes);
                if let Some(first) = bytes.first_mut() {
                    *first = kind;
                }
            }
        }
    }
}
