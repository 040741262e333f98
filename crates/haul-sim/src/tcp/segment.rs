//! What travels.

use haul_units::{Bytes, Time};

/// What travels: either way, data or acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub(super) kind: Kind,
    /// Which of the connection's subflows.
    pub(super) subflow: u16,
    /// Number of a data packet in its subflow.
    pub(super) number: u32,
    /// And in its connection; of an acknowledgement: all below have arrived, on whatever subflow.
    pub(super) data: u32,
    /// All below have arrived.
    pub(super) acknowledged: u32,
    /// Ranges above that have; an empty one says nothing.
    pub(super) sacked: [(u32, u32); 3],
    /// When it left, and the same of the packet that is answered.
    pub(super) stamp: Time,
    pub(super) echo: Time,
    pub(super) ect: bool,
    /// Tells the sender of a mark.
    pub(super) ece: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    SynAck,
    Data,
    Ack,
}

impl Segment {
    pub(super) fn new(kind: Kind, stamp: Time) -> Self {
        Self {
            kind,
            subflow: 0,
            number: 0,
            data: 0,
            acknowledged: 0,
            sacked: [(0, 0); 3],
            stamp,
            echo: Time::ZERO,
            ect: false,
            ece: false,
        }
    }

    /// On the wire, IP included.
    pub(super) fn bytes(&self, payload: Bytes) -> Bytes {
        let blocks = self.sacked.iter().filter(|(start, end)| start < end).count() as u64;
        match self.kind {
            Kind::Syn | Kind::SynAck => Bytes(60),
            Kind::Data => payload + HEADERS,
            Kind::Ack if blocks > 0 => HEADERS + Bytes(4 + 8 * blocks),
            Kind::Ack => HEADERS,
        }
    }
}

/// IP 20, TCP 20, timestamps 12.
const HEADERS: Bytes = Bytes(52);
