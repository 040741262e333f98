//! A model of TCP: what haul shares links with.
//!
//! Handshake, selective acknowledgements, fast recovery, retransmission timeout, delayed acknowledgements, Reno, CUBIC and, paced, BBR
//! version 1; subflows over several ways, coupled or not: what decides the rate and the completion time of a flow. Counted in packets of the full size; no bytes are moved. Not modelled:
//! the receive window except as a bound, tail loss probes, adaption to reordering, the end of a connection, segmentation offloads.
//! Sources: RFC 5681 and RFC 9438 (windows), 6675 (SACK recovery), 8985 (retransmissions lost again), 6298 with a minimum of 200 ms, 7323
//! (round-trip times), 3168 (marks), 6928 (initial window).

mod bbr;
mod config;
mod connection;
mod coupling;
mod hystart;
mod inflow;
mod receiver;
mod segment;
mod sender;
mod supply;
mod window;

use haul_units::{Bytes, Time};

pub use self::config::{Scatter, TcpConfig, TcpControl};
use self::connection::Connection;
use self::receiver::Receiver;
pub use self::segment::Segment;
pub use self::sender::TcpStats;
use crate::{Delivered, Endpoint, EndpointId, FlowEnd, FlowSpec, Transmit};

/// One end of a TCP connection that carries data one way.
#[derive(Debug)]
pub struct Tcp(Role);

#[derive(Debug)]
enum Role {
    Sender(Box<Connection>),
    Receiver(Receiver),
}

impl Tcp {
    /// The end that connects at `start` and sends `size`, or without end.
    pub fn sender(config: TcpConfig, peer: EndpointId, start: Time, size: Option<Bytes>) -> Self {
        Self::sender_by(config, peer, start, size, 1, 0)
    }

    /// The end that receives it.
    pub fn receiver(config: TcpConfig, size: Option<Bytes>) -> Self {
        Self::receiver_by(config, size, 1)
    }

    /// By several ways; the seed says where scattered packets go.
    fn sender_by(config: TcpConfig, peer: EndpointId, start: Time, size: Option<Bytes>, ways: u16, seed: u64) -> Self {
        Self(Role::Sender(Box::new(Connection::new(config, peer, start, packets(&config, size), ways, seed))))
    }

    fn receiver_by(config: TcpConfig, size: Option<Bytes>, ways: u16) -> Self {
        Self(Role::Receiver(Receiver::new(config, packets(&config, size), size, ways)))
    }

    /// Sender and receiver of a flow, over as many ways as it has.
    pub fn pair<K>(config: TcpConfig, flow: &FlowSpec<'_, K>) -> (Self, Self) {
        let FlowSpec { receiver, start, size, ways, seed, .. } = *flow;
        (Self::sender_by(config, receiver, start, size, ways, seed), Self::receiver_by(config, size, ways))
    }

    /// What each subflow did; nothing for the receiver.
    pub fn subflow_stats(&self) -> Vec<TcpStats> {
        match &self.0 {
            Role::Sender(sender) => sender.subflow_stats().collect(),
            Role::Receiver(_) => Vec::new(),
        }
    }

    /// What the sender did; zero for the receiver.
    pub fn stats(&self) -> TcpStats {
        match &self.0 {
            Role::Sender(sender) => sender.stats(),
            Role::Receiver(_) => TcpStats::default(),
        }
    }
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
