//! A model of TCP: what haul shares links with.
//!
//! Handshake, selective acknowledgements, fast recovery, retransmission timeout, delayed acknowledgements, Reno, CUBIC and, paced, BBR
//! version 1: what decides the rate and the completion time of a flow. Counted in packets of the full size; no bytes are moved. Not modelled:
//! the receive window except as a bound, tail loss probes, adaption to reordering, the end of a connection, segmentation offloads.
//! Sources: RFC 5681 and RFC 9438 (windows), 6675 (SACK recovery), 8985 (retransmissions lost again), 6298 with a minimum of 200 ms, 7323
//! (round-trip times), 3168 (marks), 6928 (initial window).

mod bbr;
mod hystart;
mod ranges;
mod receiver;
mod sender;
mod window;

use std::time::Duration;

use haul_units::{Bytes, Time};

use self::receiver::Receiver;
use self::sender::Sender;
use crate::{Delivered, Endpoint, EndpointId, FlowEnd, Transmit};

/// How a sender finds its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpControl {
    /// One packet more a round trip, half on loss (RFC 5681).
    Reno,
    /// A cubic function of the time since the last loss (RFC 9438).
    #[default]
    Cubic,
    /// The rate that arrives and the smallest round-trip time, whatever is lost (BBR, version 1).
    Bbr,
}

/// What a TCP connection is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConfig {
    /// How the window is found.
    pub control: TcpControl,
    /// Leaves slow start when the path is full, as Linux does for CUBIC.
    pub hystart: bool,
    /// Packets at the start; 10 (RFC 6928).
    pub initial_window_pkts: u32,
    /// Most packets in flight: the receiver's window.
    pub max_window_pkts: u32,
    /// Payload of a full packet; 1448 bytes of 1500.
    pub payload: Bytes,
    /// Least retransmission timeout beyond the round-trip time; 200 ms, as in Linux.
    pub min_timeout: Duration,
    /// How long an acknowledgement waits for a second packet; 40 ms.
    pub ack_delay: Duration,
    /// Packets can be marked, and marks are heeded.
    pub ecn: bool,
}

impl TcpConfig {
    /// CUBIC with HyStart, as Linux has it.
    pub const CUBIC: Self = Self {
        control: TcpControl::Cubic,
        hystart: true,
        initial_window_pkts: 10,
        max_window_pkts: 1 << 20,
        payload: Bytes(1448),
        min_timeout: Duration::from_millis(200),
        ack_delay: Duration::from_millis(40),
        ecn: false,
    };

    /// BBR, version 1.
    pub const BBR: Self = Self { control: TcpControl::Bbr, hystart: false, ..Self::CUBIC };

    /// Reno.
    pub const RENO: Self = Self { control: TcpControl::Reno, hystart: false, ..Self::CUBIC };
}

/// What travels: either way, data or acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    kind: Kind,
    /// Number of a data packet.
    number: u32,
    /// All below have arrived.
    acknowledged: u32,
    /// Ranges above that have; an empty one says nothing.
    sacked: [(u32, u32); 3],
    /// When it left, and the same of the packet that is answered.
    stamp: Time,
    echo: Time,
    ect: bool,
    /// Tells the sender of a mark.
    ece: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Syn,
    SynAck,
    Data,
    Ack,
}

impl Segment {
    fn new(kind: Kind, stamp: Time) -> Self {
        Self { kind, number: 0, acknowledged: 0, sacked: [(0, 0); 3], stamp, echo: Time::ZERO, ect: false, ece: false }
    }

    /// On the wire, IP included.
    fn bytes(&self, payload: Bytes) -> Bytes {
        let blocks = self.sacked.iter().filter(|(start, end)| start < end).count() as u64;
        match self.kind {
            Kind::Syn | Kind::SynAck => Bytes(60),
            Kind::Data => payload + HEADERS,
            Kind::Ack if blocks > 0 => HEADERS + Bytes(4 + 8 * blocks),
            Kind::Ack => HEADERS,
        }
    }
}

/// One end of a TCP connection that carries data one way.
#[derive(Debug)]
pub struct Tcp(Role);

#[derive(Debug)]
enum Role {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

impl Tcp {
    /// The end that connects at `start` and sends `size`, or without end.
    pub fn sender(config: TcpConfig, peer: EndpointId, start: Time, size: Option<Bytes>) -> Self {
        Self(Role::Sender(Box::new(Sender::new(config, peer, start, packets(&config, size)))))
    }

    /// The end that receives it.
    pub fn receiver(config: TcpConfig, size: Option<Bytes>) -> Self {
        Self(Role::Receiver(Receiver::new(config, packets(&config, size), size)))
    }

    /// What the sender did; zero for the receiver.
    pub fn stats(&self) -> TcpStats {
        match &self.0 {
            Role::Sender(sender) => sender.stats(),
            Role::Receiver(_) => TcpStats::default(),
        }
    }
}

/// What a sender did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TcpStats {
    /// Data packets sent, repeated ones included.
    pub sent_pkts: u64,
    /// Of these, repeated ones.
    pub resent_pkts: u64,
    /// Times the window was cut after loss or marks.
    pub cuts: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Congestion window in packets.
    pub window_pkts: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

/// Packets for so many bytes.
fn packets(config: &TcpConfig, size: Option<Bytes>) -> u32 {
    size.map_or(u32::MAX, |size| u32::try_from(size.0.div_ceil(config.payload.0.max(1))).unwrap_or(u32::MAX).max(1))
}

impl Endpoint for Tcp {
    type Packet = Segment;

    fn handle(&mut self, now: Time, from: EndpointId, packet: Delivered<Segment>) {
        // A checksum does not hold: as if it had been lost.
        if packet.corrupted {
            return;
        }
        match &mut self.0 {
            Role::Sender(sender) => sender.handle(now, &packet.packet),
            Role::Receiver(receiver) => receiver.handle(now, from, &packet.packet, packet.ce),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match &mut self.0 {
            Role::Sender(sender) => sender.handle_timeout(now),
            Role::Receiver(receiver) => receiver.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment>> {
        match &mut self.0 {
            Role::Sender(sender) => sender.poll_transmit(now),
            Role::Receiver(receiver) => receiver.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.0 {
            Role::Sender(sender) => sender.poll_timeout(),
            Role::Receiver(receiver) => receiver.poll_timeout(),
        }
    }

    fn ecn_capable(packet: &Segment) -> bool {
        packet.ect
    }
}

impl FlowEnd for Tcp {
    fn received(&self) -> Bytes {
        match &self.0 {
            Role::Sender(_) => Bytes::ZERO,
            Role::Receiver(receiver) => receiver.received(),
        }
    }

    fn completed_at(&self) -> Option<Time> {
        match &self.0 {
            Role::Sender(_) => None,
            Role::Receiver(receiver) => receiver.completed_at(),
        }
    }
}

/// IP 20, TCP 20, timestamps 12.
const HEADERS: Bytes = Bytes(52);
