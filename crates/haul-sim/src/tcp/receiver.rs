//! The receiving end of a connection: what has arrived, on whichever of its subflows.

use haul_units::{Bytes, Time};

use super::inflow::{Arrived, Inflow};
use super::segment::Kind;
use super::{Segment, TcpConfig};
use crate::{EndpointId, Transmit};

#[derive(Debug)]
pub(super) struct Receiver {
    config: TcpConfig,
    total_pkts: u32,
    size: Option<Bytes>,
    peer: Option<EndpointId>,
    subflows: Vec<Inflow>,
    /// Of the connection's packets.
    arrived: Arrived,
    received_pkts: u32,
    completed_at: Option<Time>,
}

impl Receiver {
    pub(super) fn new(config: TcpConfig, total_pkts: u32, size: Option<Bytes>, ways: u16) -> Self {
        Self {
            config,
            total_pkts,
            size,
            peer: None,
            subflows: (0..config.subflows(ways)).map(|_| Inflow::default()).collect(),
            arrived: Arrived::default(),
            received_pkts: 0,
            completed_at: None,
        }
    }

    /// Payload that has arrived, in whatever order.
    pub(super) fn received(&self) -> Bytes {
        let bytes = self.config.payload * u64::from(self.received_pkts);
        self.size.map_or(bytes, |size| bytes.min(size))
    }

    pub(super) fn completed_at(&self) -> Option<Time> {
        self.completed_at
    }

    pub(super) fn handle(&mut self, now: Time, from: EndpointId, segment: &Segment, ce: bool) {
        self.peer = Some(from);
        let Some(subflow) = self.subflows.get_mut(usize::from(segment.subflow)) else { return };
        match segment.kind {
            Kind::Syn => subflow.on_syn(segment),
            Kind::Data => {
                if self.arrived.take(segment.data) {
                    self.received_pkts += 1;
                }
                let complete = self.arrived.next() == self.total_pkts;
                if complete {
                    self.completed_at.get_or_insert(now);
                }
                subflow.on_data(now, segment, ce, complete, self.config.ack_delay);
            }
            Kind::SynAck | Kind::Ack => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        for subflow in &mut self.subflows {
            subflow.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.subflows.iter().filter_map(Inflow::poll_timeout).min()
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment>> {
        let to = self.peer?;
        let (number, answer) =
            (0..).zip(&mut self.subflows).find_map(|(number, subflow)| Some((number, subflow.answer(now)?)))?;
        let packet = Segment { subflow: number, data: self.arrived.next(), ..answer };
        Some(Transmit { to, way: self.config.way(number), packet, bytes: packet.bytes(self.config.payload) })
    }
}
