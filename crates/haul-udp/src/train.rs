//! What goes through a socket: trains, and what becomes of them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The largest train in bytes: what fits into one IPv4 datagram, for the kernel counts a train as one until it is cut.
pub const MAX_TRAIN_BYTES: usize = 65_507;

/// The most datagrams in one train: the limit of kernels before 6.10 (later ones take 128).
pub const MAX_TRAIN_SEGMENTS: usize = 64;

/// Room for one received train: enough for the largest.
pub const SLOT_BYTES: usize = 65_536;

/// Datagrams to send.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// To whom.
    pub to: SocketAddr,
    /// From which of our addresses; `None` leaves it to the routing table. Of use for sockets bound to the unspecified address.
    pub from: Option<IpAddr>,
    /// ECN codepoint, the two low bits of the traffic class (RFC 3168 5).
    pub ecn: u8,
    /// The train, at most [`MAX_TRAIN_BYTES`].
    pub train: &'a [u8],
    /// Size of each datagram in it but the last, at least 1 and at most [`MAX_TRAIN_SEGMENTS`] to a train.
    pub segment_bytes: usize,
}

/// What became of a train.
#[derive(Debug)]
pub enum Sent {
    /// The system has taken it.
    Taken,
    /// Datagrams of this size exceed the MTU of the interface or the path as the system knows it; what was left of the train is gone.
    TooBig,
    /// The system could not send it at present (no route, no buffers, refused by a filter): lost like a packet in the network.
    Lost(std::io::Error),
}

/// A received train.
#[derive(Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Which of our addresses it was sent to, where the system says so.
    pub to: Option<IpAddr>,
    /// ECN codepoint of the datagrams.
    pub ecn: u8,
    /// The datagrams.
    pub train: &'a mut [u8],
    /// Size of each but the last; at least 1.
    pub segment_bytes: usize,
    /// How long the first of them had been there when it was taken; zero where the system does not say.
    pub waited: Duration,
}
