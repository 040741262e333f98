//! The vocabulary of misbehaviour, and a peer that plays it.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use haul_proto::wire::Frame;
use haul_proto::wire::ack::Ack;
use haul_proto::{Side, StreamId, StreamKind};

use crate::attempt::random;
use crate::peer::Peer;

/// A block of a placed stream begins at a multiple of this (haul's `MAX_BLOCK`).
const BLOCK_STRIDE_BYTES: u64 = 2 << 20;
/// Of memory.
const PAGE_BYTES: u64 = 4096;
/// In a block of the usual size.
const LARGE_PAGES: u32 = 256;
/// Packets between two looks at what came back, so that the socket's buffer is not what is measured.
const BURST_PKTS: u32 = 64;

/// Runs in one report.
const RUNS_MAX: usize = 50;

/// One thing that a peer does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Takes what comes for so long, and answers nothing.
    Silence(Duration),
    /// One-byte blocks of a placed stream of its own, each in a block of its own.
    OneByteBlocks(u32),
    /// Blocks of 1 MiB of that stream, a byte in each page but the first: buffers that are held whole and never complete.
    HollowBlocks(u32),
    /// Streams of a kind, one byte in each.
    Streams(StreamKind, u32),
    /// Bytes on its first bidirectional stream, where an application speaks first.
    Speak(Vec<u8>),
    /// A report of what has been heard, and no more: what an honest peer says.
    AcknowledgeHeard,
    /// A report that every packet up to the newest heard has arrived, those that were never sent or never came too.
    AcknowledgeAll,
    /// A report of packets that the other side has not sent.
    AcknowledgeUnsent(u64),
    /// From here on it sends from another address.
    MoveTo(IpAddr),
    /// From here on it sends from where it came.
    MoveHome,
    /// One packet with so many challenges.
    Challenges(u32),
    /// Its last packets again, so many times.
    Replay(u32),
    /// Lies in one field.
    Tell(Lie),
    /// Closes with these words.
    Close(Vec<u8>),
    /// Random datagrams, some with the head of a real one.
    Garbage(u32),
}

/// A field that does not hold what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// A report with a clock that jumps, counters of everything, credit without end.
    Report(Flow),
    /// Credit without end, or none.
    Credit(u64),
    /// A stream that ends before what was sent of it, or beyond all numbers.
    Total(u64),
    /// A floor for packet numbers, and a round-trip time.
    Floor(u64),
    /// More streams than there are numbers.
    Streams(u32),
    /// A path that nobody opened.
    Path(u8),
}

/// Where a lying counter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the end of its range.
    Full,
    /// To nothing.
    Empty,
}

impl Lie {
    /// Every field, with the values at its ends.
    pub fn all() -> Vec<Step> {
        let numbers = [0, 1, u64::from(u32::MAX), 1 << 62, u64::MAX - 1, u64::MAX];
        let mut lies = vec![Self::Report(Flow::Full), Self::Report(Flow::Empty), Self::Streams(u32::MAX), Self::Streams(0)];
        for number in numbers {
            lies.extend([Self::Credit(number), Self::Total(number), Self::Floor(number)]);
        }
        lies.extend([1, 7, 8, u8::MAX].map(Self::Path));
        lies.into_iter().map(Step::Tell).collect()
    }
}

impl Peer {
    /// Plays steps, one after the other.
    pub fn play(&mut self, script: &[Step]) {
        for step in script {
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Silence(time) => drop(self.hear(*time)),
            Step::OneByteBlocks(count) => self.one_byte_blocks(*count),
            Step::HollowBlocks(count) => self.hollow_blocks(*count),
            Step::Streams(kind, count) => self.streams(*kind, *count),
            Step::Speak(bytes) => {
                let first = StreamId::new(Side::Client, StreamKind::Bidirectional, 0);
                for (at, part) in bytes.chunks(1000).enumerate() {
                    self.put(first, at as u64 * 1000, part, false);
                }
            }
            Step::AcknowledgeHeard => {
                let runs = self.runs_heard();
                if !runs.is_empty() {
                    self.acknowledge(runs);
                }
            }
            Step::AcknowledgeAll => {
                if let (Some(&first), Some(&last)) = (self.seen().first(), self.seen().last()) {
                    self.acknowledge(vec![first..=last]);
                }
            }
            Step::AcknowledgeUnsent(beyond) => {
                let last = self.seen().last().copied().unwrap_or(0);
                self.acknowledge(vec![last..=last.saturating_add(*beyond)]);
            }
            Step::MoveTo(address) => self.move_to(*address),
            Step::MoveHome => self.move_home(),
            Step::Challenges(count) => {
                let frames: Vec<_> = (0..*count).map(|_| Frame::PathChallenge(random())).collect();
                self.say(0, &frames);
            }
            Step::Replay(times) => {
                let kept = self.kept();
                for packet in (0..*times).flat_map(|_| &kept) {
                    self.throw(packet);
                }
            }
            Step::Tell(lie) => self.lie(*lie),
            Step::Close(reason) => self.say(0, &[Frame::Close { code: 7, reason: reason.clone() }]),
            Step::Garbage(count) => self.garbage(*count),
        }
    }

    fn one_byte_blocks(&mut self, count: u32) {
        let stream = StreamId::new(Side::Client, StreamKind::Placed, 0);
        for index in 0..count {
            self.put(stream, u64::from(index) * BLOCK_STRIDE_BYTES, &[1], true);
            self.rest_after(index);
        }
    }

    fn hollow_blocks(&mut self, count: u32) {
        let stream = StreamId::new(Side::Client, StreamKind::Placed, 0);
        for index in 0..count * LARGE_PAGES {
            let (block, page) = (u64::from(index / LARGE_PAGES), u64::from(index % LARGE_PAGES));
            let is_last = page + 1 == u64::from(LARGE_PAGES);
            if page > 0 {
                self.put(stream, block * BLOCK_STRIDE_BYTES + page * PAGE_BYTES, &[1], is_last);
            }
            self.rest_after(index);
        }
    }

    /// Leaves the other side time to take a burst.
    fn rest_after(&mut self, index: u32) {
        if index % BURST_PKTS == BURST_PKTS - 1 {
            self.hear(Duration::from_millis(1));
        }
    }

    fn streams(&mut self, kind: StreamKind, count: u32) {
        for index in 0..count {
            self.put(StreamId::new(Side::Client, kind, index), 0, &[1], false);
            self.rest_after(index);
        }
    }

    /// What has been heard, as a report has it: the newest runs, highest first.
    fn runs_heard(&self) -> Vec<RangeInclusive<u64>> {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for &number in self.seen().iter().rev() {
            let count = runs.len();
            match runs.last_mut() {
                Some(run) if *run.start() == number + 1 => *run = number..=*run.end(),
                _ if count == RUNS_MAX => break,
                _ => runs.push(number..=number),
            }
        }
        runs
    }

    /// Claims that these packets have arrived; runs highest first.
    fn acknowledge(&mut self, runs: Vec<RangeInclusive<u64>>) {
        let (Some(highest), Some(lowest)) = (runs.first(), runs.last()) else { return };
        let clock_ns = self.clock_ns();
        let ack = Ack {
            largest: *highest.end(),
            lowest: *lowest.start(),
            clock_ns,
            largest_clock_ns: clock_ns,
            bytes: self.outlets().iter().map(|outlet| outlet.received_bytes).sum(),
            credit: 1 << 40,
            runs,
            ..Ack::default()
        };
        self.say(0, &[Frame::Ack(ack)]);
    }

    fn lie(&mut self, lie: Lie) {
        let (first, last) = (self.seen().first().copied().unwrap_or(0), self.seen().last().copied().unwrap_or(0));
        let stream = StreamId::new(Side::Client, StreamKind::Bidirectional, 0);
        let placed = StreamId::new(Side::Client, StreamKind::Placed, 0);
        match lie {
            Lie::Report(flow) => {
                let value = if flow == Flow::Full { u64::MAX } else { 0 };
                let ack = Ack {
                    largest: last,
                    lowest: first,
                    runs: vec![last..=last],
                    delay_us: value,
                    clock_ns: value,
                    largest_clock_ns: 0,
                    bytes: value,
                    ect0: value,
                    ect1: value,
                    ce: value,
                    credit: value,
                    path: 0,
                };
                self.say(0, &[Frame::Ack(ack)]);
            }
            Lie::Credit(max) => self.say(0, &[Frame::MaxData(max), Frame::MaxStreamData { stream, max }]),
            Lie::Total(total) => {
                self.say(0, &[Frame::PlacedFin { stream: placed, total }]);
                self.say(0, &[Frame::ResetStream { stream, code: total, total }]);
            }
            Lie::Floor(floor) => {
                self.say(0, &[Frame::AckFloor { path: 0, floor, rtt: Duration::from_micros(floor) }]);
            }
            Lie::Streams(max) => {
                let frames = StreamKind::ALL.map(|kind| Frame::MaxStreams { kind, max });
                self.say(0, &frames);
            }
            Lie::Path(path) => self.say(path, &[Frame::Ping, Frame::PathResponse(random())]),
        }
    }

    fn garbage(&mut self, count: u32) {
        let head = self.kept().pop().unwrap_or_default();
        for index in 0..count {
            let length = (random() % 1400) as usize;
            let mut datagram: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random().to_le_bytes()).collect();
            datagram.truncate(length);
            if index % 2 == 0 {
                let kept = head.len().min(16).min(length);
                datagram[..kept].copy_from_slice(&head[..kept]);
            }
            self.throw(&datagram);
        }
    }
}
