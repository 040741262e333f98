//! Messages of the two ends to each other through ssh's channel, to meet.

use std::net::SocketAddr;

use data_encoding::BASE64;
use haul_relay::{End, Key, PairId, Ticket};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

use super::grants::ticket;

/// Near to far: where to make itself known, and to whom to punch a hole then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    /// The relay.
    pub relay: SocketAddr,
    /// Number of the pair.
    pair: PairId,
    /// The far side's key there, in base64.
    key: PeerText,
    /// What their hole punching is proved with, in base64.
    #[serde(rename = "knock")]
    punch: PeerText,
    /// Where the near side is seen.
    pub seen: SocketAddr,
}

impl Meeting {
    /// With the other end's ticket.
    pub fn new(relay: SocketAddr, ticket: &Ticket, punch: &Key, seen: SocketAddr) -> Self {
        Self { relay, pair: ticket.pair, key: BASE64.encode(&ticket.key).into(), punch: BASE64.encode(punch).into(), seen }
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From what was received.
    pub fn from_bytes(message: &[u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// The far side's ticket, and the key of hole punching.
    pub fn secrets(&self) -> Option<(Ticket, Key)> {
        let punch = BASE64.decode(self.punch.as_bytes()).ok()?.try_into().ok()?;
        Some((ticket(self.pair, End::Other, &self.key)?, punch))
    }

    /// Which pair it is about.
    pub const fn pair(&self) -> PairId {
        self.pair
    }
}

/// Far to near.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// Which pair it is about.
    pub pair: PairId,
    /// Where the far side is seen; nowhere, where the relay does not answer it.
    #[serde(default)]
    pub seen: Option<SocketAddr>,
}

impl Met {
    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From what was received.
    pub fn from_bytes(message: &[u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }
}

#[cfg(test)]
mod tests {
    use haul::carrier::MAX_SAID_BYTES;

    use super::*;

    #[test]
    fn the_longest_messages_fit_and_are_understood() {
        let seen: SocketAddr = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().expect("an address");
        let ticket = Ticket { pair: u64::MAX, end: End::Other, key: [255; 32] };
        let meeting = Meeting::new(seen, &ticket, &[7; 32], seen);
        assert!(meeting.to_bytes().len() <= MAX_SAID_BYTES);
        assert_eq!(Meeting::from_bytes(&meeting.to_bytes()).and_then(|read| read.secrets()), Some((ticket, [7; 32])));
        let met = Met { pair: 1, seen: Some(seen) };
        assert_eq!(Met::from_bytes(&met.to_bytes()), Some(met));
        // Other versions of haul know it by this name.
        assert!(String::from_utf8_lossy(&meeting.to_bytes()).contains("\"knock\":\""));
        assert_eq!(Meeting::from_bytes(b"{}"), None);
    }
}
