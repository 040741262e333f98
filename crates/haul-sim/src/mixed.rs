//! Two kinds of endpoints in one network.

use haul_units::{Bytes, Time};

use crate::{Delivered, Endpoint, EndpointId, FlowEnd, Transmit};

/// One of two kinds of endpoints, or of their packets. A packet of the other kind is not understood, and vanishes.
#[derive(Debug, Clone, Copy)]
pub enum Mixed<A, B> {
    /// The first kind.
    First(A),
    /// The second.
    Second(B),
}

impl<A: Endpoint, B: Endpoint> Endpoint for Mixed<A, B> {
    type Packet = Mixed<A::Packet, B::Packet>;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Self::Packet>) {
        let Delivered { packet, at, ce, corrupted } = delivered;
        match (self, packet) {
            (Self::First(end), Mixed::First(packet)) => end.handle(now, from, Delivered { packet, at, ce, corrupted }),
            (Self::Second(end), Mixed::Second(packet)) => end.handle(now, from, Delivered { packet, at, ce, corrupted }),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::First(end) => end.handle_timeout(now),
            Self::Second(end) => end.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Self::Packet>> {
        match self {
            Self::First(end) => {
                let Transmit { to, way, packet, bytes } = end.poll_transmit(now)?;
                Some(Transmit { to, way, packet: Mixed::First(packet), bytes })
            }
            Self::Second(end) => {
                let Transmit { to, way, packet, bytes } = end.poll_transmit(now)?;
                Some(Transmit { to, way, packet: Mixed::Second(packet), bytes })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::First(end) => end.poll_timeout(),
            Self::Second(end) => end.poll_timeout(),
        }
    }

    fn ecn_capable(packet: &Self::Packet) -> bool {
        match packet {
            Mixed::First(packet) => A::ecn_capable(packet),
            Mixed::Second(packet) => B::ecn_capable(packet),
        }
    }
}

impl<A: FlowEnd, B: FlowEnd> FlowEnd for Mixed<A, B> {
    fn received(&self) -> Bytes {
        match self {
            Self::First(end) => end.received(),
            Self::Second(end) => end.received(),
        }
    }

    fn completed_at(&self) -> Option<Time> {
        match self {
            Self::First(end) => end.completed_at(),
            Self::Second(end) => end.completed_at(),
        }
    }
}
