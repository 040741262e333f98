//! When and what to acknowledge on a path.
//!
//! Timer-based: a report every clamp(RTT / 32, 0.25 ms, 5 ms) while packets that want one arrive; at once for what cannot wait. A report runs
//! from the largest packet number down to the floor that the peer has confirmed, as far as one packet holds, so each packet's fate is told many times; when
//! loss makes reports so long that one covers less than [`COVERAGE`] intervals, they are sent more often. To a sender
//! that asks for it the first packets of a path are reported a few at a time: it sees how far they were spread.

use std::time::Duration;

use haul_units::Time;

use super::PacketWindow;
use crate::wire::ack::{Ack, FIXED_BYTES, varint_bytes};
use haul_units::Distribution;

/// How many reports tell each packet's fate at least.
const COVERAGE: u64 = 4;
/// So many packets of a new path are reported in small groups,
const START_PKTS: u64 = 1024;
/// each of this many.
const START_GROUP: u64 = 4;
/// Bounds of the acknowledgement interval.
const INTERVAL_MIN: Duration = Duration::from_micros(250);
const INTERVAL_MAX: Duration = Duration::from_millis(5);
/// A report looks back no further than this, in packets: a third of a second at 10 Gbit/s.
const LOOK_BACK: u64 = 1 << 18;

/// The receiving state of one path.
#[derive(Debug)]
pub struct Reporter {
    window: PacketWindow,
    interval: Duration,
    /// A report is due then, if anything wants one.
    due: Time,
    /// Packets received since the last report.
    unreported: u64,
    /// Packets to receive before a report is due whatever the time.
    coverage_limit: u64,
    /// Until so many have been received they are reported in small groups.
    start_pkts: u64,
    /// Arrival of the newest packet.
    newest_at: Time,
    /// Arrival of the largest packet.
    largest_at: Time,
    bytes: u64,
    packets: u64,
    duplicates: u64,
    gaps: Distribution,
    late: Distribution,
    ect0: u64,
    ect1: u64,
    ce: u64,
}

/// ECN field of a packet's IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable, or unknown.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Reporter {
    /// A path with nothing received; `rtt` as the handshake measured it.
    pub fn new(rtt: Duration) -> Self {
        Self {
            window: PacketWindow::default(),
            interval: interval_for(rtt),
            due: Time::NEVER,
            unreported: 0,
            coverage_limit: u64::MAX,
            start_pkts: 0,
            newest_at: Time::ZERO,
            largest_at: Time::ZERO,
            bytes: 0,
            packets: 0,
            duplicates: 0,
            gaps: Distribution::default(),
            late: Distribution::default(),
            ect0: 0,
            ect1: 0,
            ce: 0,
        }
    }

    /// The peer measures the path by its first packets: they are reported in small groups.
    pub const fn report_the_start(&mut self) {
        self.start_pkts = START_PKTS;
        self.coverage_limit = START_GROUP;
    }

    /// Whether a packet of this number has been received already.
    #[inline]
    pub fn is_duplicate(&self, number: u64) -> bool {
        self.window.contains(number)
    }

    /// An authentic packet has come once more.
    pub const fn on_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// Notes an authentic packet, not a duplicate.
    #[inline]
    pub fn on_packet(&mut self, now: Time, number: u64, bytes: usize, ecn: Ecn) {
        let next = self.window.largest().map_or(0, |largest| largest + 1);
        if number >= next {
            self.largest_at = now;
        }
        if number > next {
            self.gaps.record(number - next);
        } else if number < next {
            self.late.record(next - 1 - number);
        }
        self.window.insert(number);
        self.newest_at = self.newest_at.max(now);
        self.bytes += bytes as u64;
        self.packets += 1;
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => {
                self.ce += 1;
                self.due = self.due.min(now);
            }
        }
    }

    /// A packet that wants an acknowledgement has arrived, within the interval.
    #[inline]
    pub fn want_report(&mut self, now: Time) {
        self.unreported += 1;
        if self.due == Time::NEVER {
            self.due = now + self.interval;
        }
        if self.unreported >= self.coverage_limit {
            self.due = self.due.min(now);
        }
    }

    /// A packet that wants an acknowledgement at once has arrived.
    pub fn want_report_now(&mut self, now: Time) {
        self.unreported += 1;
        self.due = self.due.min(now);
    }

    /// When the next report is due; [`Time::NEVER`] without need.
    pub const fn due(&self) -> Time {
        self.due
    }

    /// Whether it is time alone that makes a report due: what comes before then may as well be looked at then.
    pub const fn is_by_time(&self) -> bool {
        self.coverage_limit == u64::MAX
    }

    /// A report that is due within half an interval leaves now, with others.
    pub fn hasten(&mut self, now: Time) {
        if self.due.since(now) <= self.interval / 2 {
            self.due = self.due.min(now);
        }
    }

    /// The peer has confirmed reports up to `floor`, and tells its smoothed round-trip time.
    pub fn on_floor(&mut self, floor: u64, rtt: Duration) {
        self.window.raise_floor(floor);
        self.interval = interval_for(rtt);
    }

    /// Builds the report that is due, at most `room` bytes long as runs or bitmap.
    pub fn report(&mut self, now: Time, path: u8, credit: u64, room: usize) -> Option<Ack> {
        let largest = self.window.largest()?;
        let budget = room.saturating_sub(FIXED_BYTES);
        let floor = self.window.floor().max(largest.saturating_sub(LOOK_BACK)).min(largest);
        // Runs as long as they fit; beyond, the bitmap reaches a known distance.
        let bitmap_reach = largest.saturating_sub(budget as u64 * 8 - 8).max(floor);
        let mut runs = Vec::new();
        let mut bytes = 4;
        let mut lowest = floor;
        let mut above = largest;
        for run in self.window.runs_down_to(floor) {
            let gap = above - run.end();
            bytes += varint_bytes(gap) + varint_bytes(run.end() - run.start());
            if bytes > budget && *run.end() < bitmap_reach {
                lowest = above;
                break;
            }
            above = *run.start();
            runs.push(run);
        }
        if bytes > budget && lowest < bitmap_reach {
            lowest = bitmap_reach;
            cut_below(&mut runs, lowest);
        }
        self.due = Time::NEVER;
        self.unreported = 0;
        // A report cut short must be followed soon enough for COVERAGE of them to overlap.
        self.coverage_limit = if lowest > floor { ((largest - lowest) / COVERAGE).max(1) } else { u64::MAX };
        if self.packets < self.start_pkts {
            self.coverage_limit = self.coverage_limit.min(START_GROUP);
        }
        Some(Ack {
            path,
            largest,
            delay_us: u64::try_from(now.since(self.largest_at).as_micros()).unwrap_or(u64::MAX),
            clock_ns: self.newest_at.as_nanos(),
            largest_clock_ns: self.largest_at.as_nanos(),
            bytes: self.bytes,
            ect0: self.ect0,
            ect1: self.ect1,
            ce: self.ce,
            credit,
            runs,
            lowest,
        })
    }

    /// Packets received, each once.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Lengths of the gaps before packets that came too early: what is lost or comes late, and the few numbers that the peer has left out.
    pub const fn gaps(&self) -> &Distribution {
        &self.gaps
    }

    /// How far behind the largest number packets came that were not in order.
    pub const fn late(&self) -> &Distribution {
        &self.late
    }

    /// Packets that came more than once.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Bytes of packets received, each packet once.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest packet number received.
    pub fn largest(&self) -> Option<u64> {
        self.window.largest()
    }
}

fn interval_for(rtt: Duration) -> Duration {
    (rtt / 32).clamp(INTERVAL_MIN, INTERVAL_MAX)
}

fn cut_below(runs: &mut Vec<std::ops::RangeInclusive<u64>>, lowest: u64) {
    while let Some(run) = runs.last_mut() {
        if *run.end() >= lowest {
            *run = (*run.start()).max(lowest)..=*run.end();
            return;
        }
        runs.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1400;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    fn receive(reporter: &mut Reporter, now: Time, number: u64) {
        assert!(!reporter.is_duplicate(number));
        reporter.on_packet(now, number, 1472, Ecn::NotEct);
        reporter.want_report(now);
    }

    #[test]
    fn reports_once_an_interval() {
        let mut reporter = Reporter::new(Duration::from_millis(64));
        assert_eq!(reporter.due(), Time::NEVER);
        receive(&mut reporter, ms(10), 0);
        receive(&mut reporter, ms(11), 1);
        assert_eq!(reporter.due(), ms(12));
        let ack = reporter.report(ms(12), 0, 99, ROOM).unwrap();
        assert_eq!((ack.largest, ack.delay_us, ack.bytes, ack.runs), (1, 1000, 2944, vec![0..=1]));
        assert_eq!(reporter.due(), Time::NEVER);
    }

    #[test]
    fn gaps_and_late_packets_are_counted_once_each() {
        let mut reporter = Reporter::new(Duration::from_millis(64));
        for number in [0, 1, 5, 3, 6, 16, 2] {
            receive(&mut reporter, ms(10), number);
        }
        let classes =
            |distribution: &Distribution| distribution.classes().map(|(low, _, count)| (low, count)).collect::<Vec<_>>();
        assert_eq!(classes(reporter.gaps()), [(3, 1), (9, 1)], "2 to 4 before 5, 7 to 15 before 16");
        assert_eq!(classes(reporter.late()), [(2, 1), (14, 1)], "3 behind 5, 2 behind 16");
    }

    #[test]
    fn the_start_is_reported_in_groups() {
        let mut reporter = Reporter::new(Duration::from_millis(64));
        reporter.report_the_start();
        for number in 0..START_PKTS {
            receive(&mut reporter, ms(1), number);
            assert_eq!(reporter.due() == ms(1), number % START_GROUP == START_GROUP - 1, "{number}");
            if reporter.due() == ms(1) {
                reporter.report(ms(1), 0, 0, ROOM);
            }
        }
        (START_PKTS..START_PKTS + 20).for_each(|number| receive(&mut reporter, ms(2), number));
        assert_eq!(reporter.due(), ms(4));
    }

    #[test]
    fn every_packet_is_told_again_until_the_floor_rises() {
        let mut reporter = Reporter::new(Duration::from_millis(64));
        for number in [0, 1, 5, 6] {
            receive(&mut reporter, ms(1), number);
        }
        assert_eq!(reporter.report(ms(2), 0, 0, ROOM).unwrap().runs, vec![5..=6, 0..=1]);
        receive(&mut reporter, ms(3), 8);
        assert_eq!(reporter.report(ms(4), 0, 0, ROOM).unwrap().runs, vec![8..=8, 5..=6, 0..=1]);
        reporter.on_floor(6, Duration::from_millis(64));
        let ack = reporter.report(ms(5), 0, 0, ROOM).unwrap();
        assert_eq!((ack.runs, ack.lowest), (vec![8..=8, 6..=6], 6));
    }

    #[test]
    fn heavy_loss_makes_reports_more_frequent_and_keeps_them_in_a_packet() {
        let mut reporter = Reporter::new(Duration::from_millis(64));
        for number in (0..100_000).filter(|n| n % 3 != 1) {
            receive(&mut reporter, ms(1), number);
        }
        let ack = reporter.report(ms(2), 0, 0, ROOM).unwrap();
        let mut out = Vec::new();
        ack.encode(&mut out);
        assert!(out.len() <= ROOM, "{}", out.len());
        let covered = ack.largest - ack.lowest;
        assert!(covered > 9_000, "{covered}");
        let mut fresh = 0;
        let mut number = 100_000;
        while reporter.due() > ms(3) {
            receive(&mut reporter, ms(3), number);
            number += 1;
            fresh += 1;
        }
        assert!(fresh * COVERAGE <= covered, "{fresh} of {covered}");
    }
}
