//! What a connection has for its application and for the network.

use std::net::SocketAddr;

use super::reason::CloseReason;
use crate::receive::Ecn;
use crate::streams::{StreamId, StreamKind};

/// Something that the application may want to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The peer has opened a stream of this kind: [`super::Connection::accept`] has it.
    Opened(StreamKind),
    /// The peer allows more streams of this kind.
    Openable(StreamKind),
    /// A read will not block.
    Readable(StreamId),
    /// Everything written has been acknowledged, the end included.
    Acknowledged(StreamId),
    /// The peer wants no more of a stream that we send.
    Stopped(StreamId, u64),
    /// A write was refused for want of room, and now there is room for a good part of the budget.
    BudgetFree,
    /// A write to this ordered stream was refused, and now it may have room of its own.
    Writable(StreamId),
    /// The connection is over for the application.
    Closed(CloseReason),
    /// Nothing more will be sent or understood: forget the connection.
    Drained,
}

/// A datagram, or several of equal size, to hand to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// On which path: a client sends each from a port of its own.
    pub path: u8,
    /// Where to.
    pub remote: SocketAddr,
    /// Bytes in the train's buffer.
    pub len: usize,
    /// Bytes of each datagram but the last, which may be shorter.
    pub segment: usize,
    /// The mark for the IP header.
    pub ecn: Ecn,
}
