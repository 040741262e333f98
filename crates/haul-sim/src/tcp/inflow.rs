//! The receiving end of a subflow: when to say what has arrived, and how.

use std::time::Duration;

use haul_units::{Ranges, Time};

use super::Segment;
use super::segment::Kind;

/// Numbers that have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// All below, and these above.
    next: u32,
    above: Ranges,
}

impl Arrived {
    /// All below have arrived.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Notes one; false if it was here before.
    pub(super) fn take(&mut self, number: u32) -> bool {
        if number < self.next {
            return false;
        }
        if number > self.next {
            return self.above.insert_new(number.into()..u64::from(number) + 1);
        }
        self.next += 1;
        if let Some(range) = self.above.first().filter(|range| range.start == u64::from(self.next)) {
            self.next = range.end as u32;
            self.above.remove_below(range.end);
        }
        true
    }
}

#[derive(Debug, Default)]
pub(super) struct Inflow {
    arrived: Arrived,
    /// A number in each of the ranges that grew last, the newest first (RFC 2018 4).
    recent: [Option<u64>; 3],
    /// Packets that no acknowledgement has told of; the stamp of the first.
    untold_pkts: u32,
    echo: Time,
    marked: bool,
    answer: Option<Kind>,
    answer_at: Option<Time>,
}

impl Inflow {
    pub(super) fn on_syn(&mut self, segment: &Segment) {
        self.echo = segment.stamp;
        self.answer = Some(Kind::SynAck);
    }

    /// `complete`: the connection has all.
    pub(super) fn on_data(&mut self, now: Time, segment: &Segment, ce: bool, complete: bool, ack_delay: Duration) {
        self.marked |= ce;
        let number = segment.number;
        let (next, in_order) = (self.arrived.next(), self.arrived.above.is_empty());
        if !self.arrived.take(number) {
            self.answer = Some(Kind::Ack);
            return;
        }
        if number > next {
            self.remember(number.into());
            self.answer = Some(Kind::Ack);
            return;
        }
        if self.untold_pkts == 0 {
            self.echo = segment.stamp;
        }
        self.untold_pkts += 1;
        // RFC 5681 4.2: at least every second full packet, at once when a gap closes; and at once at the start, as Linux does.
        if !in_order || self.untold_pkts >= 2 || self.arrived.next() <= QUICK_PKTS || complete || self.marked {
            self.answer = Some(Kind::Ack);
        } else {
            self.answer_at.get_or_insert(now + ack_delay);
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

    /// What is to be said now.
    pub(super) fn answer(&mut self, now: Time) -> Option<Segment> {
        let kind = self.answer.take()?;
        self.answer_at = None;
        self.untold_pkts = 0;
        let mut segment = Segment { acknowledged: self.arrived.next(), echo: self.echo, ..Segment::new(kind, now) };
        segment.ece = std::mem::take(&mut self.marked);
        if !self.arrived.above.is_empty() {
            segment.sacked = self.blocks();
        }
        Some(segment)
    }

    /// The newest range first.
    fn remember(&mut self, number: u64) {
        let range = self.arrived.above.around(number);
        let old = self.recent;
        let others = old.into_iter().flatten().filter(|n| range.as_ref().is_none_or(|range| !range.contains(n)));
        self.recent = [None; 3];
        for (slot, number) in self.recent.iter_mut().zip(std::iter::once(number).chain(others)) {
            *slot = Some(number);
        }
    }

    fn blocks(&self) -> [(u32, u32); 3] {
        let mut blocks = [(0, 0); 3];
        let ranges = self.recent.iter().flatten().filter_map(|number| self.arrived.above.around(*number));
        for (block, range) in blocks.iter_mut().zip(ranges) {
            *block = (range.start as u32, range.end as u32);
        }
        blocks
    }
}

/// The first packets are acknowledged one by one.
const QUICK_PKTS: u32 = 16;
