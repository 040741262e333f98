//! The receiving end: what has arrived, and when to say so.

use haul_units::{Bytes, Time};

use super::ranges::Ranges;
use super::segment::Kind;
use super::{Segment, TcpConfig};
use crate::{EndpointId, Transmit};

#[derive(Debug)]
pub(super) struct Receiver {
    config: TcpConfig,
    total_pkts: u32,
    size: Option<Bytes>,
    peer: Option<EndpointId>,
    /// All below have arrived, and these above.
    next: u32,
    above: Ranges,
    /// A number in each of the ranges that grew last, the newest first (RFC 2018 4).
    recent: [Option<u32>; 3],
    received_pkts: u32,
    completed_at: Option<Time>,
    /// Packets that no acknowledgement has told of; the stamp of the first.
    untold_pkts: u32,
    echo: Time,
    marked: bool,
    answer: Option<Kind>,
    answer_at: Option<Time>,
}

impl Receiver {
    pub(super) fn new(config: TcpConfig, total_pkts: u32, size: Option<Bytes>) -> Self {
        Self {
            config,
            total_pkts,
            size,
            peer: None,
            next: 0,
            above: Ranges::default(),
            recent: [None; 3],
            received_pkts: 0,
            completed_at: None,
            untold_pkts: 0,
            echo: Time::ZERO,
            marked: false,
            answer: None,
            answer_at: None,
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
        match segment.kind {
            Kind::Syn => {
                self.echo = segment.stamp;
                self.answer = Some(Kind::SynAck);
            }
            Kind::Data => self.take(now, segment, ce),
            Kind::SynAck | Kind::Ack => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.answer_at.is_some_and(|at| at <= now) {
            self.answer = Some(Kind::Ack);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.answer_at
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment>> {
        let kind = self.answer.take()?;
        let to = self.peer?;
        self.answer_at = None;
        self.untold_pkts = 0;
        let mut packet = Segment { acknowledged: self.next, echo: self.echo, ..Segment::new(kind, now) };
        packet.ece = std::mem::take(&mut self.marked);
        if !self.above.is_empty() {
            packet.sacked = self.blocks();
        }
        Some(Transmit { to, packet, bytes: packet.bytes(self.config.payload) })
    }

    fn take(&mut self, now: Time, segment: &Segment, ce: bool) {
        self.marked |= ce;
        let number = segment.number;
        if number < self.next || self.above.around(number).is_some() {
            self.answer = Some(Kind::Ack);
            return;
        }
        self.received_pkts += 1;
        if number > self.next {
            self.above.insert(number..number + 1, |_| {});
            self.remember(number);
            self.answer = Some(Kind::Ack);
            return;
        }
        if self.untold_pkts == 0 {
            self.echo = segment.stamp;
        }
        self.untold_pkts += 1;
        let in_order = self.above.is_empty();
        self.next += 1;
        if let Some(range) = self.above.first().filter(|range| range.start == self.next) {
            self.next = range.end;
            self.above.remove_below(self.next);
        }
        if self.next == self.total_pkts {
            self.completed_at.get_or_insert(now);
        }
        // RFC 5681 4.2: at least every second full packet, at once when a gap closes; and at once at the start, as Linux does.
        if !in_order || self.untold_pkts >= 2 || self.next <= QUICK_PKTS || self.next == self.total_pkts || self.marked {
            self.answer = Some(Kind::Ack);
        } else {
            self.answer_at.get_or_insert(now + self.config.ack_delay);
        }
    }

    /// The newest range first.
    fn remember(&mut self, number: u32) {
        let range = self.above.around(number);
        let old = self.recent;
        let others = old.into_iter().flatten().filter(|n| range.as_ref().is_none_or(|range| !range.contains(n)));
        self.recent = [None; 3];
        for (slot, number) in self.recent.iter_mut().zip(std::iter::once(number).chain(others)) {
            *slot = Some(number);
        }
    }

    fn blocks(&self) -> [(u32, u32); 3] {
        let mut blocks = [(0, 0); 3];
        let ranges = self.recent.iter().flatten().filter_map(|number| self.above.around(*number));
        for (block, range) in blocks.iter_mut().zip(ranges) {
            *block = (range.start, range.end);
        }
        blocks
    }
}

/// The first packets are acknowledged one by one.
const QUICK_PKTS: u32 = 16;
