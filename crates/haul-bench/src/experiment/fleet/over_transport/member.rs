//! One end of a member's connection: a sender that has orders, or the client's receiver.

use std::collections::VecDeque;
use std::net::SocketAddr;

use haul_plan::PieceId;
use haul_proto::{ClientConfig, StreamId, StreamKind};
use haul_scenarios::{Datagram, End};
use haul_sim::{Delivered, Endpoint, EndpointId, Transmit};
use haul_units::Time;

/// A range of a piece that is still to be given to the transport.
#[derive(Debug)]
pub struct Told {
    pub piece: PieceId,
    pub next: u64,
    pub end: u64,
}

impl Told {
    pub const fn len(&self) -> u64 {
        self.end - self.next
    }
}

pub struct Member {
    pub end: End,
    /// When it connects, where to, and how: of a sender that has not yet.
    start: Option<(Time, SocketAddr, Box<ClientConfig>)>,
    is_sender: bool,
    /// It says nothing more.
    pub is_dead: bool,
    stream: Option<StreamId>,
    offset: u64,
    pub orders: VecDeque<Told>,
    /// What was given to the transport, in order: by the bytes that have come it is known what of it has.
    pub given: VecDeque<Told>,
}

impl Member {
    pub fn sender(end: End, start: (Time, SocketAddr, Box<ClientConfig>)) -> Self {
        Self { start: Some(start), is_sender: true, ..Self::receiver(end) }
    }

    pub fn receiver(end: End) -> Self {
        Self {
            end,
            start: None,
            is_sender: false,
            is_dead: false,
            stream: None,
            offset: 0,
            orders: VecDeque::new(),
            given: VecDeque::new(),
        }
    }

    /// Gives blocks to the transport as long as it wants some.
    fn feed(&mut self) {
        let Some(connection) = self.end.connection.as_mut() else { return };
        if self.stream.is_none() {
            self.stream = connection.open(StreamKind::Placed).ok();
        }
        let Some(stream) = self.stream else { return };
        while let Some(told) = self.orders.front_mut() {
            if told.next >= told.end {
                self.orders.pop_front();
                continue;
            }
            if connection.buffered() >= connection.send_budget() {
                return;
            }
            let len = (told.end - told.next).min(BLOCK);
            if connection.write_block(stream, self.offset, vec![0; len as usize]).is_err() {
                return;
            }
            self.given.push_back(Told { piece: told.piece, next: told.next, end: told.next + len });
            told.next += len;
            self.offset += len;
        }
    }
}

impl Endpoint for Member {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Datagram>) {
        if !self.is_dead {
            self.end.handle(now, from, delivered);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Datagram>> {
        if self.is_dead {
            return None;
        }
        if let Some((_, server, config)) = self.start.take_if(|(at, ..)| *at <= now) {
            self.end.connect(now, server, *config);
        }
        if self.is_sender && self.end.connected_at.is_some() {
            self.feed();
        }
        let transmit = self.end.poll_transmit(now);
        self.end.events.clear();
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.is_dead {
            return None;
        }
        self.start.as_ref().map(|(at, ..)| *at).or_else(|| self.end.poll_timeout())
    }

    fn ecn_capable(packet: &Datagram) -> bool {
        End::ecn_capable(packet)
    }
}

/// As haul-files sends them.
const BLOCK: u64 = 1 << 20;
