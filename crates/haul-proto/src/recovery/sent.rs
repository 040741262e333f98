//! What a path has sent: a ring of runs.
//!
//! A run is a group of consecutive packets that left in one train with consecutive bytes of one stream: a bulk sender keeps one record for up to 64
//! packets, a few bytes a packet. Two bitmaps in the record tell which packets are acknowledged and which are taken for lost, so an
//! acknowledgement of a whole train costs one step.
//!
//! ```text
//!   front                      scan                          back
//!   [settled, kept for late acks][ unsettled ................. ]
//! ```

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use haul_cc::SentState;
use haul_units::Time;

use crate::streams::StreamId;
use crate::wire::Frame;
use crate::wire::ack::Ack;

/// What the packets of a run carry.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Bytes of a stream, from `offset` on, `payload` in each packet, `last_payload` in the last one.
    Data {
        /// Which stream.
        stream: StreamId,
        /// Offset of the first packet's bytes.
        offset: u64,
        /// Bytes in each packet but the last.
        payload: u16,
        /// Bytes in the last packet.
        last_payload: u16,
        /// The last packet carries the stream's end.
        fin: bool,
    },
    /// Frames that are sent again if lost, and the floor that was told.
    Control(Box<[Frame]>),
    /// A probe of this packet size.
    MtuProbe(u16),
}

/// Consecutive packets of one train.
#[derive(Debug, Clone)]
pub struct Run {
    /// Number of the first packet.
    pub first: u64,
    /// Packets, 1 to 64.
    pub count: u8,
    /// What they carry.
    pub content: Content,
    /// UDP payload of each packet but the last.
    pub packet: u16,
    /// UDP payload of the last packet.
    pub last_packet: u16,
    /// State for the rate sampler; its `sent_at` is when they left.
    pub state: SentState,
    /// Packets of its burst that left before it.
    pub position: u16,
    acked: u64,
    lost: u64,
}

impl Run {
    /// Packets that have just left.
    pub fn new(first: u64, count: u8, content: Content, packet: u16, last_packet: u16, state: SentState) -> Self {
        debug_assert!((1..=64).contains(&count));
        Self { first, count, content, packet, last_packet, state, position: 0, acked: 0, lost: 0 }
    }

    /// The same, `position` packets into a burst.
    #[must_use]
    pub const fn at_position(mut self, position: u16) -> Self {
        self.position = position;
        self
    }

    /// When they left.
    pub const fn sent_at(&self) -> Time {
        self.state.sent_at
    }

    /// Number of the last packet.
    pub const fn last(&self) -> u64 {
        self.first + self.count as u64 - 1
    }

    const fn all(&self) -> u64 {
        u64::MAX >> (64 - self.count as u32)
    }

    const fn is_settled(&self) -> bool {
        self.acked | self.lost == self.all()
    }

    const fn is_acked(&self) -> bool {
        self.acked == self.all()
    }

    /// Bytes of the packets in `mask`.
    fn bytes_of(&self, mask: u64) -> u64 {
        let last = mask >> (self.count - 1) & 1;
        (u64::from(mask.count_ones()) - last) * u64::from(self.packet) + last * u64::from(self.last_packet)
    }

    /// Calls `each` with (offset, length, fin) for each group of consecutive packets in `mask`.
    fn data_of(&self, mask: u64, mut each: impl FnMut(StreamId, u64, u64, bool)) {
        let Content::Data { stream, offset, payload, last_payload, fin } = self.content else { return };
        let mut rest = mask;
        while rest != 0 {
            let low = rest.trailing_zeros();
            let len = (!(rest >> low)).trailing_zeros();
            let with_last = low + len == u32::from(self.count);
            let bytes =
                u64::from(len - u32::from(with_last)) * u64::from(payload) + if with_last { u64::from(last_payload) } else { 0 };
            each(stream, offset + u64::from(low) * u64::from(payload), bytes, with_last && fin);
            rest &= !mask_of(low, len);
        }
    }
}

/// Records that are looked at for the newest packets: control packets lie between.
const NEWEST_RUNS: usize = 64;
/// Runs that can have been sent in one call to the system.
const JUST_SENT: usize = 64;

/// `len` bits from bit `low` on.
const fn mask_of(low: u32, len: u32) -> u64 {
    (u64::MAX >> (64 - len)) << low
}

/// What an acknowledgement changed.
#[derive(Debug, Default)]
pub struct AckOutcome {
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Packets newly acknowledged.
    pub acked_pkts: u64,
    /// Of these, bytes that had been taken for lost.
    pub spurious_bytes: u64,
    /// Of these, packets that had been taken for lost.
    pub spurious_pkts: u64,
    /// State of the newest packet newly acknowledged, with its number.
    pub newest: Option<(u64, SentState)>,
}

/// Packets sent on a path and not yet forgotten, oldest first.
#[derive(Debug, Default)]
pub struct SentRing {
    runs: VecDeque<Run>,
    /// Runs before this index are settled.
    scan: usize,
    in_flight: u64,
}

impl SentRing {
    /// Packets have left.
    pub fn push(&mut self, run: Run) {
        self.in_flight += run.bytes_of(run.all());
        self.runs.push_back(run);
    }

    /// Bytes in flight: neither acknowledged nor taken for lost.
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Packets below this number are forgotten: reports need not tell of them again.
    pub fn floor(&self) -> Option<u64> {
        self.runs.front().map(|run| run.first)
    }

    /// When the newest packet in flight left.
    pub fn newest_sent_at(&self) -> Option<Time> {
        (self.in_flight > 0).then(|| self.runs.back().map(Run::sent_at)).flatten()
    }

    /// Applies a report. `on_data` gets each newly acknowledged range as (stream, offset, length, end), `on_control` the frames that arrived,
    /// `on_mtu` the size of a probe that did.
    pub fn on_ack(
        &mut self,
        ack: &Ack,
        mut on_data: impl FnMut(StreamId, u64, u64, bool),
        mut on_control: impl FnMut(&[Frame]),
        mut on_mtu: impl FnMut(u16),
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let mut index = 0;
        for range in ack.runs.iter().rev() {
            index += self.first_run_at(index, *range.start());
            while let Some(run) = self.runs.get_mut(index) {
                if run.first > *range.end() {
                    break;
                }
                if !run.is_acked() {
                    let mask = overlap(run, range) & !run.acked;
                    if mask != 0 {
                        self.in_flight -= run.bytes_of(mask & !run.lost);
                        apply(run, mask, &mut outcome);
                        run.data_of(mask, &mut on_data);
                        match &run.content {
                            Content::Control(frames) => on_control(frames),
                            Content::MtuProbe(size) => on_mtu(*size),
                            Content::Data { .. } => {}
                        }
                    }
                }
                if run.last() > *range.end() {
                    break;
                }
                index += 1;
            }
        }
        outcome
    }

    /// Takes for lost what left so long before `deadline`-passing acknowledged packets that it should have been reported: every packet of runs with
    /// `is_late`. Calls `on_run` with each run that loses packets, their bytes and their mask, and the mask's ranges through `on_data`.
    pub fn mark_lost(
        &mut self,
        mut is_late: impl FnMut(&Run) -> bool,
        mut on_data: impl FnMut(StreamId, u64, u64, bool),
        mut on_run: impl FnMut(&Run, u64, u64),
    ) {
        while let Some(run) = self.runs.get_mut(self.scan) {
            if !run.is_settled() {
                if !is_late(run) {
                    break;
                }
                let mask = run.all() & !run.acked & !run.lost;
                run.lost |= mask;
                let bytes = run.bytes_of(mask);
                self.in_flight -= bytes;
                run.data_of(mask, &mut on_data);
                on_run(run, bytes, mask);
            }
            self.scan += 1;
        }
    }

    /// The system did not send the newest probe of the packet size, for it is too large: it is not in flight, and no loss.
    pub fn on_refused(&mut self, size: u16) {
        let is_it = |run: &&mut Run| matches!(run.content, Content::MtuProbe(of) if of == size) && !run.is_settled();
        // It has just been tried.
        if let Some(run) = self.runs.iter_mut().rev().take(JUST_SENT).find(is_it) {
            run.lost = run.all();
            self.in_flight -= run.bytes_of(run.all());
        }
    }

    /// The oldest packets in flight are to be sent again as a probe, up to `packets` of them; they stay in flight. Calls as
    /// [`Self::on_ack`] does.
    pub fn probe(
        &self,
        mut packets: u32,
        mut on_data: impl FnMut(StreamId, u64, u64, bool),
        mut on_control: impl FnMut(&[Frame]),
    ) {
        for run in self.runs.iter().skip(self.scan).filter(|run| !run.is_settled()) {
            let mut mask = run.all() & !run.acked & !run.lost;
            while mask.count_ones() > packets {
                mask &= !(1 << mask.ilog2());
            }
            run.data_of(mask, &mut on_data);
            if let Content::Control(frames) = &run.content {
                on_control(frames);
            }
            packets -= mask.count_ones();
            if packets == 0 {
                return;
            }
        }
    }

    /// What the newest packets in flight carry, up to `packets` of them, the newest first. Calls as [`Self::on_ack`] does.
    pub fn newest(&self, mut packets: u32, mut on_data: impl FnMut(StreamId, u64, u64, bool)) {
        for run in self.runs.iter().rev().take(NEWEST_RUNS).filter(|run| !run.is_settled()) {
            let mut mask = run.all() & !run.acked & !run.lost;
            while mask.count_ones() > packets {
                mask &= mask - 1;
            }
            run.data_of(mask, &mut on_data);
            packets -= mask.count_ones();
            if packets == 0 {
                return;
            }
        }
    }

    /// Forgets settled runs: those acknowledged at once, those with losses once they left before `before`, when a late acknowledgement is no longer expected.
    pub fn forget(&mut self, before: Time) {
        while self.scan > 0 && self.runs.front().is_some_and(|run| run.is_acked() || (run.is_settled() && run.sent_at() < before))
        {
            self.runs.pop_front();
            self.scan -= 1;
        }
        while self.runs.get(self.scan).is_some_and(Run::is_settled) {
            self.scan += 1;
        }
    }

    /// The oldest run with a packet in flight.
    pub fn oldest(&self) -> Option<&Run> {
        self.runs.range(self.scan.min(self.runs.len())..).find(|run| !run.is_settled())
    }

    /// How many runs from `from` on end below `number`.
    fn first_run_at(&self, from: usize, number: u64) -> usize {
        let from = from.min(self.runs.len());
        // Reports mostly go on where the last range ended.
        if self.runs.get(from).is_none_or(|run| run.last() >= number) {
            return 0;
        }
        let tail = self.runs.range(from..);
        let (mut low, mut high) = (0, tail.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.runs[from + middle].last() < number { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Bytes that the ring itself takes.
    #[cfg(test)]
    fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }
}

fn overlap(run: &Run, range: &RangeInclusive<u64>) -> u64 {
    let low = range.start().saturating_sub(run.first);
    let high = (*range.end()).min(run.last()) - run.first;
    if low > high { 0 } else { mask_of(low as u32, (high - low + 1) as u32) }
}

fn apply(run: &mut Run, mask: u64, outcome: &mut AckOutcome) {
    let spurious = mask & run.lost;
    if spurious != 0 {
        outcome.spurious_bytes += run.bytes_of(spurious);
        outcome.spurious_pkts += u64::from(spurious.count_ones());
    }
    run.acked |= mask;
    run.lost &= !mask;
    outcome.acked_bytes += run.bytes_of(mask);
    outcome.acked_pkts += u64::from(mask.count_ones());
    let number = run.first + u64::from(mask.ilog2());
    if outcome.newest.is_none_or(|(newest, _)| number > newest) {
        outcome.newest = Some((number, run.state));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use haul_cc::RateSampler;
    use haul_units::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn state(at_ms: u64) -> SentState {
        let now = Time::ZERO + Duration::from_millis(at_ms);
        RateSampler::new(now).on_sent(now, Bytes(1), Bytes(1))
    }

    fn run(first: u64, count: u8, at_ms: u64) -> Run {
        let content = Content::Data { stream: StreamId(4), offset: first * 100, payload: 100, last_payload: 100, fin: false };
        Run::new(first, count, content, 144, 144, state(at_ms))
    }

    fn ack(numbers: &BTreeSet<u64>) -> Option<Ack> {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for &number in numbers.iter().rev() {
            match runs.last_mut() {
                Some(run) if *run.start() == number + 1 => *run = number..=*run.end(),
                _ => runs.push(number..=number),
            }
        }
        Some(Ack { largest: *numbers.last()?, runs, ..Ack::default() })
    }

    #[test]
    fn a_probe_that_the_system_refuses_is_not_in_flight() {
        let mut ring = SentRing::default();
        ring.push(run(0, 2, 0));
        ring.push(Run::new(2, 1, Content::MtuProbe(8972), 8972, 8972, state(0)));
        assert_eq!(ring.in_flight(), 2 * 144 + 8972);
        // Of another size, and a second time: nothing.
        for size in [1472, 8972, 8972] {
            ring.on_refused(size);
        }
        assert_eq!(ring.in_flight(), 2 * 144);
        // It is no loss either.
        let mut lost = 0;
        ring.mark_lost(|_| true, |_, _, _, _| {}, |_, bytes, _| lost += bytes);
        assert_eq!((lost, ring.in_flight()), (2 * 144, 0));
    }

    proptest! {
        /// Reports in any order against a set: each packet's bytes are told once, in flight never goes wrong, losses come back as spurious.
        #[test]
        fn each_packet_is_acknowledged_once(
            counts in prop::collection::vec(1..=64u8, 1..20),
            reports in prop::collection::vec(prop::collection::btree_set(0..1300u64, 1..80), 1..12),
            lose_before in prop::collection::vec(0..20u64, 1..12),
        ) {
            let mut ring = SentRing::default();
            let mut next = 0;
            for (at, &count) in counts.iter().enumerate() {
                ring.push(run(next, count, at as u64));
                next += u64::from(count);
            }
            let (mut acked, mut lost) = (BTreeSet::new(), BTreeSet::new());
            for (report, before) in reports.into_iter().zip(lose_before.into_iter().cycle()) {
                let report: BTreeSet<u64> = report.into_iter().filter(|&number| number < next).collect();
                let Some(ack) = ack(&report) else { continue };
                let mut told = BTreeSet::new();
                let outcome = ring.on_ack(&ack, |_, offset, len, _| told.extend(offset / 100..(offset + len) / 100), |_| (), |_| ());
                let new: BTreeSet<u64> = report.difference(&acked).copied().collect();
                prop_assert_eq!(&told, &new);
                prop_assert_eq!(outcome.acked_pkts, new.len() as u64);
                prop_assert_eq!(outcome.spurious_pkts, new.intersection(&lost).count() as u64);
                prop_assert_eq!(outcome.newest.map(|(number, _)| number), new.last().copied());
                acked.extend(&new);
                lost.retain(|number| !acked.contains(number));
                let deadline = Time::ZERO + Duration::from_millis(before);
                ring.mark_lost(|run| run.sent_at() < deadline, |_, offset, len, _| lost.extend(offset / 100..(offset + len) / 100), |_, _, _| ());
                let out = (0..next).filter(|number| !acked.contains(number) && !lost.contains(number)).count() as u64;
                prop_assert_eq!(ring.in_flight(), out * 144);
            }
        }
    }

    #[test]
    fn a_bulk_sender_pays_a_few_bytes_a_packet() {
        assert!(size_of::<Run>() <= 192, "{}", size_of::<Run>());
        let mut ring = SentRing::default();
        for train in 0..1_000_000 / 44 {
            ring.push(run(train * 44, 44, 0));
        }
        let per_packet = ring.memory_bytes() as f64 / 1e6;
        assert!(per_packet < 10.0, "{per_packet} bytes a packet");
    }

    #[test]
    fn settled_runs_are_forgotten_and_lost_ones_kept_for_a_while() {
        let mut ring = SentRing::default();
        for train in 0..4 {
            ring.push(run(train * 10, 10, train));
        }
        let numbers = (0..5).chain(10..40).collect();
        ring.on_ack(&ack(&numbers).unwrap(), |_, _, _, _| (), |_| (), |_| ());
        assert_eq!(ring.floor(), Some(0));
        ring.mark_lost(|run| run.first == 0, |_, _, _, _| (), |_, bytes, mask| assert_eq!((bytes, mask), (720, 0b11_1110_0000)));
        assert_eq!(ring.in_flight(), 0);
        ring.forget(Time::ZERO);
        assert_eq!(ring.runs.len(), 4);
        ring.forget(Time::ZERO + Duration::from_millis(1));
        assert_eq!((ring.runs.len(), ring.floor()), (0, None));
    }
}
