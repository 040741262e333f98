//! In front of the phases: the quick start, a measurement by the first packets, then a jump.
//!
//! ```text
//! round trip  1  a few trains back to back; how far they are spread when they arrive tells what the bottleneck carries     reconnaissance
//!             2  half of that, paced                                                                                       jump
//!             3  all of it, once a sixteenth of a round trip of the jump has come through without a queue                  full
//! ```
//!
//! An application that has nothing to say yet is not waited for: filler is measured in place of its data.
//!
//! Where the receiver's clock cannot tell how fast the trains came, the rate that an earlier connection found takes the place of the
//! measurement, if the round-trip time fits: Careful Resume (RFC 9959: Reconnaissance, Unvalidated, Validating, Safe Retreat, Normal).
//! What is wrong shows within the first acknowledgements of the jump, as a queue or as much loss: then what has arrived is the estimate,
//! and the queue is emptied.
//! DEVIATION from RFC 9959: one lost packet is no reason to retreat, for long paths lose packets whatever the rate; and the window grows
//! beyond the jump before its last packet has been acknowledged, for the jump is paced and its first part tells whether a queue forms.

mod filler;
mod leg;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::filler::{Fillers, Sizes};
use self::leg::{Gauge, Leg, part_of};
use super::measure::{Path, Queue};
use crate::pacer::quantum;
use crate::{AckSample, DispersionSample, Learned, LossSample, PathStart, SentSample};

/// A start that measures.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Quick {
    packet: Bytes,
    /// Round-trip time of the handshake.
    rtt: Option<Duration>,
    remembered: Option<Learned>,
    trains: Vec<DispersionSample>,
    fillers: Fillers,
    stage: Stage,
    /// What is left to send of the train that is leaving.
    train_left: Bytes,
    /// Trains that leave from then on are not back to back.
    jumped_at: Time,
    gauge: Gauge,
    /// The queueing delay has been long since then.
    long_since: Option<Time>,
    /// Trains that have left whole.
    trains_sent: u32,
    /// Rounds after the first whole train without one measured.
    blind_rounds: u32,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Trains are out.
    Reconnaissance,
    /// Half of the target is being sent.
    Jump(Leg),
    /// The target is being sent.
    Full(Leg),
}

/// What an acknowledgement means for the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lfn) enum Verdict {
    /// It goes on.
    Continue,
    /// The path is full at this rate, bits per second.
    Full(f64),
    /// The path bears this rate, bits per second, and may bear more.
    Search(f64),
    /// There is nothing to go by.
    Unknown,
}

impl Quick {
    pub(in crate::lfn) fn new(start: &PathStart) -> Self {
        Self {
            packet: start.packet,
            rtt: start.rtt,
            remembered: start.remembered,
            trains: Vec::with_capacity(TRAINS),
            fillers: Fillers::default(),
            stage: Stage::Reconnaissance,
            train_left: Bytes::ZERO,
            jumped_at: Time::NEVER,
            gauge: Gauge::default(),
            long_since: None,
            trains_sent: 0,
            blind_rounds: 0,
        }
    }

    pub(in crate::lfn) fn on_dispersion(&mut self, sample: &DispersionSample) {
        if sample.bytes < self.packet * LEAST_PKTS || sample.sent_at >= self.jumped_at && !self.fillers.contains(sample) {
            return;
        }
        // The scout is too short to count beside trains.
        if self.trains.first().is_some_and(|first| self.fillers.is_scout(first) && first.sent_at != sample.sent_at) {
            self.trains.remove(0);
        }
        if self.trains.last().is_some_and(|last| last.sent_at == sample.sent_at) {
            self.trains.pop();
        }
        if self.trains.len() < TRAINS {
            self.trains.push(*sample);
        }
    }

    pub(in crate::lfn) fn on_sent(&mut self, sent: &SentSample) {
        self.fillers.on_data();
        if self.train_left == Bytes::ZERO {
            self.train_left = self.train();
        }
        self.train_left = self.train_left.saturating_sub(sent.bytes);
        if sent.app_limited {
            // What comes next is not of this train.
            self.train_left = Bytes::ZERO;
        } else if self.train_left == Bytes::ZERO {
            self.trains_sent += 1;
        }
        let train = self.train();
        if let Stage::Jump(leg) | Stage::Full(leg) = &mut self.stage {
            let is_word = sent.app_limited && !leg.begun && leg.words + sent.bytes <= train;
            if is_word {
                leg.words += sent.bytes;
                leg.put_off(sent);
            } else {
                leg.begun = true;
                leg.limited |= sent.app_limited;
            }
        }
    }

    /// Filler to send, and when, while the application has nothing.
    pub(in crate::lfn) fn filler(&self) -> Option<(Time, Bytes)> {
        let waits = match self.stage {
            Stage::Reconnaissance => self.trains_sent == 0,
            Stage::Jump(leg) => !leg.begun,
            Stage::Full(_) => false,
        };
        let sizes = Sizes { packet: self.packet, least: self.packet * LEAST_TRAIN_PKTS, most: self.train(), gap: self.gap() };
        let scout = self.trains.first();
        waits.then(|| self.fillers.next(scout, sizes)).flatten()
    }

    /// Filler has left.
    pub(in crate::lfn) fn on_filler(&mut self, sent: &SentSample) {
        let Some((_, train)) = self.filler() else { return };
        self.fillers.on_sent(sent.now, sent.bytes, train, self.packet);
        // What comes next is not of a train of data.
        self.train_left = Bytes::ZERO;
        if let Stage::Jump(leg) = &mut self.stage {
            leg.put_off(sent);
        }
    }

    pub(in crate::lfn) fn on_loss(&mut self, loss: &LossSample) {
        if let Stage::Jump(leg) | Stage::Full(leg) = &mut self.stage
            && let Some(span) = leg.span_of(loss.sent_at)
        {
            span.lost += loss.lost;
        }
    }

    /// What was taken for lost has arrived.
    pub(in crate::lfn) fn on_spurious(&mut self, bytes: Bytes) {
        if let Stage::Jump(leg) | Stage::Full(leg) = &mut self.stage {
            leg.span.lost = leg.span.lost.saturating_sub(bytes);
        }
    }

    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, path: &Path) -> Verdict {
        self.gauge.on_ack(ack, path.min_rtt());
        match self.stage {
            Stage::Reconnaissance => self.reconnoitre(ack, path),
            Stage::Jump(leg) => self.validate(ack, path, leg),
            Stage::Full(leg) => self.confirm(ack, path, leg),
        }
    }

    fn reconnoitre(&mut self, ack: &AckSample, path: &Path) -> Verdict {
        if self.has_lost_trains(ack, path) {
            return Verdict::Unknown;
        }
        let Some((target_bps, _)) = self.target(path.min_rtt()) else {
            self.blind_rounds += u32::from(ack.round_start && self.trains_sent > 0);
            return if self.blind_rounds > BLIND_ROUNDS { Verdict::Unknown } else { Verdict::Continue };
        };
        // RFC 9959, Unvalidated Phase: at most half of what was saved.
        self.stage = Stage::Jump(Leg::new(ack, target_bps * JUMP));
        self.jumped_at = ack.now;
        Verdict::Continue
    }

    fn validate(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> Verdict {
        let Some((target_bps, known)) = self.target(path.min_rtt()) else { return Verdict::Unknown };
        let settled = leg.settled(ack);
        let leg = leg.with(ack);
        if settled == Bytes::ZERO && self.has_lost_trains(ack, path) {
            return Verdict::Unknown;
        }
        if settled == Bytes::ZERO {
            // Trains that came later correct the first one.
            self.stage = Stage::Jump(Leg { goal_bps: target_bps * JUMP, rate_bps: target_bps * JUMP, ..leg });
            return Verdict::Continue;
        }
        if self.is_refused(ack, path, leg) {
            return self.retreat(path, leg);
        }
        // docs/controllers/quickstart.md: a sixteenth of a round trip has arrived, in several reports.
        let enough = leg.rate().bytes_in(path.min_rtt() / 16).max(self.packet * 32);
        self.stage = Stage::Jump(leg);
        // Delays seen before the leg say nothing about it.
        if settled < enough || leg.acks <= Queue::MEMORY {
            return Verdict::Continue;
        }
        if !leg.limited && leg.arrived_bps(ack) < leg.rate_bps * LEAST_ARRIVED {
            return self.retreat(path, leg);
        }
        if !known {
            return Verdict::Search(leg.rate_bps);
        }
        self.stage = Stage::Full(Leg { before: Some(leg.span), begun: true, ..Leg::new(ack, target_bps) });
        self.gauge.best_bps = 0.0;
        Verdict::Continue
    }

    fn confirm(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> Verdict {
        let settled = leg.settled(ack);
        let leg = leg.with(ack);
        if settled == Bytes::ZERO {
            // The jump made no queue: what was lost of it the path loses whatever the rate.
            self.stage = Stage::Full(leg.made_up(ack));
            return Verdict::Continue;
        }
        self.stage = Stage::Full(leg);
        if self.is_refused(ack, path, leg) {
            return self.retreat(path, leg);
        }
        if settled < leg.rate().bytes_in(path.min_rtt() / 2) {
            return Verdict::Continue;
        }
        Verdict::Full(self.gauge.best_bps.clamp(leg.goal_bps / 2.0, leg.goal_bps))
    }

    /// RFC 9959, Reconnaissance Phase: no jump onto a path that is congested already.
    fn has_lost_trains(&self, ack: &AckSample, path: &Path) -> bool {
        self.is_lossy(path, ack.delivered + ack.lost_total, ack.lost_total)
    }

    /// Of what was sent much more is lost than the path loses whatever the rate, and more than chance makes of half as much.
    fn is_lossy(&self, path: &Path, settled: Bytes, lost: Bytes) -> bool {
        let base = self.remembered.map_or(0.0, |learned| learned.base_loss).max(path.base_loss());
        let half = base + REFUSED_LOSS / 2.0;
        let packets = settled.as_u64() as f64 / path.packet_bytes();
        // Three standard deviations.
        let by_chance = half + 3.0 * (half * (1.0 - half) / packets.max(1.0)).sqrt();
        packets > LEAST_LOSSY_PKTS && part_of(lost, settled) > by_chance.max(base + REFUSED_LOSS)
    }

    /// A queue forms, or much is lost.
    fn is_refused(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> bool {
        let lossy = self.is_lossy(path, leg.settled(ack), leg.span.lost);
        // A hiccup of some thread passes; a queue of our making stays.
        let long = path.queue_delay() > path.queue_threshold(8).max(path.jitter() * 2);
        let since = long.then(|| self.long_since.unwrap_or(ack.now));
        self.long_since = since;
        // docs/controllers/quickstart.md: a queue that stands for a sixteenth of a round trip.
        lossy || since.is_some_and(|since| ack.now.since(since) >= path.min_rtt() / 16)
    }

    /// RFC 9959, Safe Retreat Phase: back to what is known to have come through.
    fn retreat(&self, path: &Path, leg: Leg) -> Verdict {
        let least_bps = if leg.limited { leg.goal_bps / 2.0 } else { path.bandwidth_bps() };
        let arrived_bps = self.gauge.best_bps.min(leg.goal_bps).max(least_bps);
        Verdict::Full(arrived_bps)
    }

    /// The rate to go for, and whether it is more than a lower bound.
    fn target(&self, rtt: Duration) -> Option<(f64, bool)> {
        let remembered = self.remembered.filter(|learned| learned.fits(rtt)).map(|learned| learned.bandwidth.as_bps() as f64);
        let mut trains: Vec<_> = self.trains.iter().map(|train| (train.rate(), train.is_exact())).collect();
        trains.sort_unstable();
        // Trains that do not agree have been stretched by others or by hiccups of threads: the path may well bear more.
        let agree = trains.first().zip(trains.last()).is_some_and(|(least, most)| most.0.as_bps() / 2 <= least.0.as_bps());
        // The lower median: none of them is believed alone.
        let median = trains.get(trains.len().saturating_sub(1) / 2);
        match median.map(|(rate, exact)| (rate, *exact && agree)) {
            Some((rate, true)) => Some((rate.as_bps() as f64, true)),
            Some((least, false)) => {
                let least_bps = least.as_bps() as f64;
                Some(remembered.filter(|bps| *bps > least_bps).map_or((least_bps, false), |bps| (bps, true)))
            }
            None => Some((remembered.filter(|_| self.blind_rounds > 1)?, true)),
        }
    }

    pub(in crate::lfn) fn rate(&self) -> BitRate {
        match self.stage {
            Stage::Reconnaissance if self.train_left > Bytes::ZERO => BitRate::MAX,
            // The pacer waits for what left last, which is one call's worth.
            Stage::Reconnaissance => BitRate::of(self.burst(), self.gap()),
            Stage::Jump(leg) | Stage::Full(leg) => leg.rate(),
        }
    }

    pub(in crate::lfn) fn window(&self, path: &Path) -> Bytes {
        match self.stage {
            Stage::Reconnaissance => self.train() * TRAINS as u64,
            Stage::Jump(leg) | Stage::Full(leg) => leg.rate().bytes_in(path.min_rtt() * 2).max(self.train() * TRAINS as u64),
        }
    }

    pub(in crate::lfn) fn burst(&self) -> Bytes {
        match self.stage {
            Stage::Reconnaissance => self.train().min(quantum(BitRate::MAX, self.packet)),
            Stage::Jump(_) | Stage::Full(_) => quantum(self.rate(), self.packet),
        }
    }

    pub(in crate::lfn) const fn name(&self) -> &'static str {
        match self.stage {
            Stage::Reconnaissance => "reconnaissance",
            Stage::Jump(_) => "jump",
            Stage::Full(_) => "validating",
        }
    }

    pub(in crate::lfn) const fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    /// From one train to the next.
    fn gap(&self) -> Duration {
        // docs/controllers/quickstart.md: a fifth of a round trip, in which the last one has left the queue.
        self.rtt.map_or(UNKNOWN_GAP, |rtt| (rtt / 5).max(LEAST_GAP))
    }

    /// A train that a queue of a quarter of a round trip at 100 Mbit/s holds.
    fn train(&self) -> Bytes {
        let long = self.rtt.map_or(Bytes::ZERO, |rtt| BitRate::mbps(100).bytes_in(rtt / 5));
        let packets = long.as_u64() / self.packet.as_u64().max(1);
        self.packet * packets.clamp(LEAST_TRAIN_PKTS, MOST_TRAIN_PKTS)
    }
}

/// Trains of the first flight.
const TRAINS: usize = 3;
/// Four reports of four packets: three times between them is what a rate needs.
const LEAST_TRAIN_PKTS: u64 = 16;
/// 0.2 ms at 10 Gbit/s.
const MOST_TRAIN_PKTS: u64 = 176;
/// A shorter train is not measured.
const LEAST_PKTS: u64 = 6;
/// Between trains: a queue at 100 Mbit/s has sent the last one by then.
const LEAST_GAP: Duration = Duration::from_millis(2);
/// Between trains where no round trip has been measured: a fifth of 50 ms.
const UNKNOWN_GAP: Duration = Duration::from_millis(10);
/// Without a measurement for so long, none will come.
const BLIND_ROUNDS: u32 = 3;
/// RFC 9959: the jump is at most half of what was saved.
const JUMP: f64 = 0.5;
/// Less of the jump than this, and it has met a limit.
const LEAST_ARRIVED: f64 = 0.6;
/// Beyond the path's own loss; a policer or a queue that overflows takes more.
const REFUSED_LOSS: f64 = 0.2;
/// Of fewer, three standard deviations of a tenth are more than another tenth.
const LEAST_LOSSY_PKTS: f64 = 48.0;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1472);
    const RTT: Duration = Duration::from_millis(100);

    /// A start that has measured half of 200 Mbit/s, with nothing under way.
    fn jumping() -> Quick {
        let now = Time::ZERO + RTT;
        let ack = AckSample {
            now,
            acked: PACKET * 16,
            delivered: PACKET * 16,
            in_flight: Bytes::ZERO,
            rtt: Some(RTT),
            smoothed_rtt: RTT,
            min_rtt: RTT,
            queue_delay: None,
            rate: None,
            round: 1,
            round_start: true,
            lost_total: Bytes::ZERO,
        };
        let start = PathStart { rtt: Some(RTT), ..PathStart::new(Time::ZERO, PACKET, 1) };
        Quick { stage: Stage::Jump(Leg::new(&ack, 1e8)), jumped_at: now, ..Quick::new(&start) }
    }

    /// The application has written that, and nothing more.
    fn write(quick: &mut Quick, after: u32, bytes: Bytes) -> Leg {
        let now = Time::ZERO + RTT + RTT / 10 * after;
        quick.on_sent(&SentSample { now, bytes, in_flight: bytes, app_limited: true });
        match quick.stage {
            Stage::Jump(leg) => leg,
            stage => panic!("{stage:?}"),
        }
    }

    #[test]
    fn words_put_the_jump_off() {
        let mut quick = jumping();
        for n in 1..=20 {
            let leg = write(&mut quick, n, PACKET);
            assert!(!leg.begun && leg.span.from == PACKET * (16 + u64::from(n)), "{leg:?}");
        }
    }

    #[test]
    fn an_application_that_gives_much_but_not_enough_does_not() {
        let mut quick = jumping();
        let half = Bytes(quick.train().as_u64() / 2);
        assert!(!write(&mut quick, 1, half).begun);
        let leg = write(&mut quick, 2, half + PACKET);
        assert!(leg.begun && leg.limited && leg.span.from == PACKET * 16 + half, "{leg:?}");
    }
}
