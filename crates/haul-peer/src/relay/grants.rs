//! What a client and a relay say on the connection on which a pair is asked for: one line each way. The pair ends with that connection.

use data_encoding::BASE64;
use haul_relay::{Allocation, End, PairId, Ticket};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

use crate::greeting::Refusal;

/// The application protocol.
pub const PROTOCOL: &[u8] = b"haul-relay/1";

/// A client wants a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayAsk {
    /// Version of the program, for the log.
    pub version: PeerText,
}

impl RelayAsk {
    /// Of this program.
    pub fn new() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into() }
    }
}

impl Default for RelayAsk {
    fn default() -> Self {
        Self::new()
    }
}

/// What the relay answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelayReply {
    /// There is a pair.
    Granted(Grant),
    /// There is none.
    Refused(Refusal),
}

/// A pair of tickets, and where they are good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The UDP port at the same address.
    pub port: u16,
    /// Number of the pair.
    pub pair: PairId,
    /// Key of who has asked, in base64.
    pub ours: PeerText,
    /// Key of the other end.
    pub theirs: PeerText,
}

impl Grant {
    /// Of a relay at this port.
    pub fn of(made: &Allocation, port: u16) -> Self {
        let key = |ticket: &Ticket| BASE64.encode(&ticket.key).into();
        Self { port, pair: made.asking.pair, ours: key(&made.asking), theirs: key(&made.other) }
    }

    /// The tickets of who has asked and of the other end, if they are such.
    pub fn tickets(&self) -> Option<(Ticket, Ticket)> {
        Some((ticket(self.pair, End::Asking, &self.ours)?, ticket(self.pair, End::Other, &self.theirs)?))
    }
}

/// A ticket from how its key is written.
pub fn ticket(pair: PairId, end: End, key: &str) -> Option<Ticket> {
    Some(Ticket { pair, end, key: BASE64.decode(key.as_bytes()).ok()?.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_arrive_as_they_were_made() {
        let ticket = |end, key| Ticket { pair: u64::MAX, end, key: [key; 32] };
        let made = Allocation { asking: ticket(End::Asking, 1), other: ticket(End::Other, 2) };
        let line = serde_json::to_string(&RelayReply::Granted(Grant::of(&made, 7701))).expect("JSON");
        let RelayReply::Granted(read) = serde_json::from_str(&line).expect("the same") else { panic!("{line}") };
        assert_eq!(read.tickets(), Some((made.asking, made.other)));
        assert_eq!(Grant { ours: "AAAA".into(), ..read }.tickets(), None);
    }
}
