//! The two messages of a handshake that goes another way than over UDP.
//!
//! Where the two ends have a channel already, as over ssh, what they would tell each other in the handshake's round trip travels with what that channel carries anyway:
//!
//! ```text
//! client                                              server
//!   opening: ClientHello            == channel ==>      state: Handshake::carried, which sends nothing
//!                                  <== channel ==       answer: ServerHello, parameters, key, signature, Finished
//!   Finished, and data behind it    --   UDP   -->      its address is where this comes from
//! ```
//! Numbers in network order:
//! ```text
//! opening:  u8 version, u64 attempt, u32 the client's connection id; the rest is TLS of level Initial
//! answer:   u32 the server's connection id, u16 length, then so many bytes of TLS of level Initial; the rest is TLS of level Handshake
//! ```
//! What was carried counts as sent and acknowledged, the answer as the server's packet number [`ANSWER_NUMBER`]: the client's first packet echoes it, which gives the
//! server a round trip. From then on only packets of level Handshake count, whose keys nobody else has. Neither message is secret; the channel
//! need not keep them from being changed either, for TLS notices.

use super::wire::Reader;

/// The packet number that an answer stands for.
pub(super) const ANSWER_NUMBER: u32 = 1;

/// What a client sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarriedOpening<'a> {
    /// Of the protocol.
    pub version: u8,
    /// The client's random number for this handshake.
    pub attempt: u64,
    /// The client's number for the connection, not 0.
    pub client_cid: u32,
    /// TLS of level Initial.
    pub hello: &'a [u8],
}

impl<'a> CarriedOpening<'a> {
    /// `None`: malformed.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (version, attempt, client_cid) = (reader.u8()?, reader.u64()?, reader.u32()?);
        (client_cid != 0).then_some(Self { version, attempt, client_cid, hello: reader.0 })
    }

    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        [&[self.version], &self.attempt.to_be_bytes()[..], &self.client_cid.to_be_bytes(), self.hello].concat()
    }
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarriedAnswer<'a> {
    /// The server's number for the connection, not 0.
    pub server_cid: u32,
    /// TLS of level Initial, at most 65,535 bytes.
    pub hello: &'a [u8],
    /// TLS of level Handshake.
    pub rest: &'a [u8],
}

impl<'a> CarriedAnswer<'a> {
    /// `None`: malformed.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (server_cid, length) = (reader.u32()?, reader.u16()?);
        let hello = reader.take(length.into())?;
        (server_cid != 0).then_some(Self { server_cid, hello, rest: reader.0 })
    }

    /// As it travels. `None`: the hello is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let length = u16::try_from(self.hello.len()).ok()?;
        Some([&self.server_cid.to_be_bytes(), &length.to_be_bytes()[..], self.hello, self.rest].concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_round_trip(
            version: u8, attempt: u64, cid in 1_u32.., hello in prop::collection::vec(any::<u8>(), 0..500), rest in prop::collection::vec(any::<u8>(), 0..500)
        ) {
            let opening = CarriedOpening { version, attempt, client_cid: cid, hello: &hello };
            let bytes = opening.encode();
            prop_assert_eq!(CarriedOpening::decode(&bytes), Some(opening));
            let answer = CarriedAnswer { server_cid: cid, hello: &hello, rest: &rest };
            let bytes = answer.encode().unwrap();
            prop_assert_eq!(CarriedAnswer::decode(&bytes), Some(answer));
            prop_assert_eq!(CarriedAnswer::decode(&bytes[..5 + hello.len()]), None);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (CarriedOpening::decode(&bytes), CarriedAnswer::decode(&bytes));
        }
    }

    #[test]
    fn connection_ids_of_nobody_are_refused() {
        assert_eq!(CarriedOpening::decode(&[0; 40]), None);
        assert_eq!(CarriedAnswer::decode(&[0; 40]), None);
    }
}
