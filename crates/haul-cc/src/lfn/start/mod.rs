//! In front of the phases: the quick start, a measurement by the first packets, then a jump.
//!
//! ```text
//! round trip  1  a few trains back to back; how far they are spread when they arrive tells what the bottleneck carries     reconnaissance
//!             2  half of that, paced                                                                                       jump
//!             3  all of it, once a sixteenth of a round trip of the jump has come through without a queue                  full
//! ```
//!
//! A gentle start goes from one to the other in legs, each at most four times what the one before was: the trains may have measured what a token bucket lets pass before
//! it is empty.
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
mod jump;
mod leg;
mod trains;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::filler::{Fillers, Sizes};
use self::leg::{Gauge, Leg};
use super::measure::Path;
use crate::pacer::quantum;
use crate::{AckSample, DispersionSample, Learned, LossSample, PathStart, SentSample};

/// A start that measures.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Quick {
    packet: Bytes,
    /// Round-trip time of the handshake, or of the first acknowledgement on a path that had none.
    rtt: Option<Duration>,
    /// The smallest so far.
    min_rtt: Duration,
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
    /// What has left as trains in a round trip, bits per second.
    trains_bps: f64,
    /// Trains of this length that have left whole, and the rounds since the first of them.
    trains_sent: u32,
    waited_rounds: u32,
    /// Rounds after the first whole train without one measured.
    blind_rounds: u32,
    /// What the scout has found, or trains that were too short, where they go ahead.
    scout: Option<DispersionSample>,
    /// Trains that left before are not of this round of them.
    since: Time,
    /// When trains left, from and until.
    leaving: Vec<(Time, Time)>,
    /// A train's first packets have arrived just now, and those of the first one met this delay.
    opens: bool,
    first_delay: Option<Duration>,
    /// By how much longer the second one's delay was.
    risen: Option<Duration>,
    /// A memory, long trains at once and filler are not for everybody.
    manner: Manner,
}

/// How much a start dares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lfn) enum Manner {
    /// An initial window goes ahead and tells how long trains may be.
    Gentle,
    /// Trains at once, and what is remembered.
    Quick,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// A short train is out, which tells how long trains may be.
    Scout,
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
    pub(in crate::lfn) fn new(start: &PathStart, manner: Manner) -> Self {
        Self {
            packet: start.packet,
            rtt: start.rtt,
            min_rtt: start.rtt.unwrap_or_default(),
            remembered: start.remembered.filter(|_| manner == Manner::Quick),
            trains: Vec::with_capacity(TRAINS),
            fillers: Fillers::default(),
            stage: if manner == Manner::Gentle { Stage::Scout } else { Stage::Reconnaissance },
            train_left: Bytes::ZERO,
            jumped_at: Time::NEVER,
            gauge: Gauge::default(),
            long_since: None,
            trains_bps: 0.0,
            trains_sent: 0,
            waited_rounds: 0,
            blind_rounds: 0,
            scout: None,
            since: Time::ZERO,
            leaving: Vec::new(),
            opens: false,
            first_delay: None,
            risen: None,
            manner,
        }
    }

    pub(in crate::lfn) fn on_dispersion(&mut self, sample: &DispersionSample) {
        if sample.sent_at < self.since {
            return;
        }
        self.opens |= sample.time.is_none();
        let least = if matches!(self.stage, Stage::Scout) { LEAST_SCOUT_PKTS } else { LEAST_PKTS };
        if sample.bytes < self.packet * least || sample.sent_at >= self.jumped_at && !self.fillers.contains(sample) {
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
        self.note_leaving(sent.now);
        self.train_left = self.train_left.saturating_sub(sent.bytes);
        if sent.app_limited {
            // What comes next is not of this train.
            self.train_left = Bytes::ZERO;
        } else if self.train_left == Bytes::ZERO {
            self.trains_sent += 1;
        }
        let (train, rtt) = (self.train(), self.min_rtt);
        if let Stage::Jump(leg) | Stage::Full(leg) = &mut self.stage {
            let is_message = sent.app_limited && !leg.begun && leg.messages + sent.bytes <= train;
            if is_message {
                leg.messages += sent.bytes;
                leg.put_off(sent);
            } else {
                leg.begun = true;
                leg.limited |= sent.app_limited;
                leg.on_sent(sent, leg.window(rtt, train * TRAINS as u64));
            }
        }
    }

    /// Filler to send, and when, while the application has nothing.
    pub(in crate::lfn) fn filler(&self) -> Option<(Time, Bytes)> {
        let waits = match self.stage {
            Stage::Reconnaissance => self.manner == Manner::Quick && self.trains_sent == 0,
            Stage::Jump(leg) => self.manner == Manner::Quick && !leg.begun,
            Stage::Scout | Stage::Full(_) => false,
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
        self.min_rtt = path.min_rtt();
        self.rtt = self.rtt.or_else(|| path.measured_rtt());
        self.gauge.on_ack(ack, self.min_rtt);
        self.waited_rounds += u32::from(ack.round_start && self.trains_sent > 0);
        match self.stage {
            Stage::Scout => self.follow_scout(ack, path),
            Stage::Reconnaissance => self.reconnoitre(ack, path),
            Stage::Jump(leg) => self.validate(ack, path, leg),
            Stage::Full(leg) => self.confirm(ack, path, leg),
        }
    }

    pub(in crate::lfn) fn rate(&self) -> BitRate {
        match self.stage {
            Stage::Scout => BitRate::MAX,
            Stage::Reconnaissance if self.train_left > Bytes::ZERO => BitRate::MAX,
            // The pacer waits for what left last, which is one call's worth.
            Stage::Reconnaissance => BitRate::of(self.burst(), self.gap()),
            Stage::Jump(leg) | Stage::Full(leg) => leg.rate(),
        }
    }

    pub(in crate::lfn) fn window(&self, path: &Path) -> Bytes {
        match self.stage {
            // Nothing more before it has been measured, or is gone.
            Stage::Scout if self.trains_sent > 0 => self.packet,
            Stage::Scout => self.train(),
            Stage::Reconnaissance => self.train() * TRAINS as u64,
            Stage::Jump(leg) | Stage::Full(leg) => leg.window(path.min_rtt(), self.train() * TRAINS as u64),
        }
    }

    pub(in crate::lfn) fn burst(&self) -> Bytes {
        match self.stage {
            Stage::Scout | Stage::Reconnaissance => self.train().min(quantum(BitRate::MAX, self.packet)),
            Stage::Jump(_) | Stage::Full(_) => quantum(self.rate(), self.packet),
        }
    }

    pub(in crate::lfn) const fn name(&self) -> &'static str {
        match self.stage {
            Stage::Scout => "scout",
            Stage::Reconnaissance => "reconnaissance",
            Stage::Jump(_) => "jump",
            Stage::Full(_) => "validating",
        }
    }

    pub(in crate::lfn) const fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
    }
}

/// The second of the two reports.
const LEAST_SCOUT_PKTS: u64 = 4;
/// Trains of the first flight.
const TRAINS: usize = 3;
/// Four reports of four packets: three times between them is what a rate needs.
const LEAST_TRAIN_PKTS: u64 = 16;
/// 0.2 ms at 10 Gbit/s.
const MOST_TRAIN_PKTS: u64 = 176;
/// News of a bucket that is empty takes a round trip: less than startup's pacing gain of 4.94, so that no more is sent into it meanwhile than by a search.
const REACH: f64 = 4.0;
/// A shorter train is not measured.
const LEAST_PKTS: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1472);
    const RTT: Duration = Duration::from_millis(100);

    /// A start that has measured half of 200 Mbit/s, with nothing under way.
    fn jumping() -> Quick {
        let now = Time::ZERO + RTT;
        let ack = jumped(now);
        let start = PathStart { rtt: Some(RTT), ..PathStart::new(Time::ZERO, PACKET, 1) };
        Quick { stage: Stage::Jump(Leg::new(&ack, 1e8)), jumped_at: now, ..Quick::new(&start, Manner::Quick) }
    }

    /// Sixteen packets have arrived, and nothing is under way.
    fn jumped(now: Time) -> AckSample {
        AckSample {
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
        }
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
    fn messages_put_the_jump_off() {
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

    /// A gentle start whose scout has arrived at this rate, and its path.
    fn scouted(rate: BitRate) -> (Quick, Path, AckSample) {
        let start = PathStart { rtt: Some(RTT), ..PathStart::new(Time::ZERO, PACKET, 1) };
        let (mut quick, mut path) = (Quick::new(&start, Manner::Gentle), Path::new(PACKET));
        let scout = quick.window(&path);
        assert_eq!(scout, PACKET * 10);
        leave(&mut quick, Time::ZERO, scout);
        assert_eq!(quick.window(&path), PACKET, "nothing more before it has been measured");
        let ack = AckSample { in_flight: PACKET * 2, ..jumped(Time::ZERO + RTT) };
        path.on_ack(&ack, true);
        arrive(&mut quick, Time::ZERO, PACKET * 4, None);
        assert_eq!((quick.on_ack(&ack, &path), quick.window(&path)), (Verdict::Continue, PACKET));
        arrive(&mut quick, Time::ZERO, PACKET * 4, Some(rate.time_for(PACKET * 4)));
        assert_eq!(quick.on_ack(&ack, &path), Verdict::Continue);
        (quick, path, ack)
    }

    fn leave(quick: &mut Quick, now: Time, bytes: Bytes) {
        quick.on_sent(&SentSample { now, bytes, in_flight: bytes, app_limited: false });
    }

    /// So many bytes of a train have arrived in so long; its first packets, if that is not said.
    fn arrive(quick: &mut Quick, sent_at: Time, bytes: Bytes, time: Option<Duration>) {
        let steps = time.map_or(0, |_| (bytes.as_u64() / PACKET.as_u64() / 4) as u32);
        quick.on_dispersion(&DispersionSample { sent_at, bytes, time, steps });
    }

    #[test]
    fn a_scout_tells_how_long_trains_may_be() {
        let (quick, path, _) = scouted(BitRate::mbps(100));
        // An eighth of a round trip.
        assert_eq!(quick.train(), PACKET * 106);
        assert_eq!(quick.window(&path), PACKET * 318);
    }

    #[test]
    fn a_scout_that_a_stall_of_seconds_has_stretched_is_not_believed() {
        let (mut quick, mut path, ack) = scouted(BitRate::from_bps(20_000));
        let Stage::Reconnaissance = quick.stage else { panic!("slower than the least, and believed: {:?}", quick.stage) };
        let (train, first) = (quick.train(), ack.now + Duration::from_millis(1));
        for n in 0..TRAINS as u32 {
            leave(&mut quick, first + RTT / 5 * n, train);
            arrive(&mut quick, first + RTT / 5 * n, train, Some(BitRate::from_bps(20_000).time_for(train)));
        }
        let mut ack = AckSample { now: first + RTT * 70, in_flight: Bytes::ZERO, queue_delay: Some(Duration::ZERO), ..ack };
        assert_eq!(quick.on_ack(&ack, &path), Verdict::Continue);
        let least = BitRate::of(PACKET * 4, RTT);
        assert_eq!(quick.rate(), least);
        // Nothing is wrong any more, and the jump is over ten round trips later.
        for _ in 0..40 {
            leave(&mut quick, ack.now, PACKET);
            ack = AckSample { now: ack.now + RTT / 4, acked: PACKET, delivered: ack.delivered + PACKET, ..ack };
            path.on_ack(&ack, false);
            match quick.on_ack(&ack, &path) {
                Verdict::Continue => {}
                verdict => return assert_eq!(verdict, Verdict::Search(least.as_bps() as f64)),
            }
        }
        panic!("still {:?}", quick.stage);
    }

    #[test]
    fn a_jump_is_within_reach_of_what_the_trains_were() {
        let (mut quick, path, ack) = scouted(BitRate::gbps(10));
        let (train, first) = (quick.train(), ack.now + Duration::from_millis(1));
        assert_eq!(train, PACKET * MOST_TRAIN_PKTS);
        for n in 0..TRAINS as u32 {
            let sent_at = first + RTT / 5 * n;
            leave(&mut quick, sent_at, train);
            arrive(&mut quick, sent_at, train, Some(BitRate::gbps(10).time_for(train)));
        }
        let all = AckSample { now: first + RTT * 2, in_flight: Bytes::ZERO, queue_delay: Some(Duration::ZERO), ..ack };
        assert_eq!(quick.on_ack(&all, &path), Verdict::Continue);
        let Stage::Jump(leg) = quick.stage else { panic!("{:?}", quick.stage) };
        let trains_bps = BitRate::of(train * TRAINS as u64, RTT).as_bps() as f64;
        assert!((leg.goal_bps / trains_bps / REACH - 1.0).abs() < 1e-6, "not half of 10 Gbit/s: {leg:?}");
    }

    #[test]
    fn what_others_put_between_two_trains_ends_the_measurement() {
        // The whole first train still stands in the queue when the second one comes, or nothing of it.
        for (left, is_alone) in [(1.0, false), (0.1, true)] {
            let (mut quick, path, ack) = scouted(BitRate::mbps(100));
            let (train, first) = (quick.train(), ack.now + Duration::from_millis(1));
            let second = first + RTT / 5;
            leave(&mut quick, first, train);
            leave(&mut quick, second, train);
            let time = BitRate::mbps(100).time_for(train);
            let seen = |after: Duration, delay: Duration| AckSample {
                now: second + after,
                in_flight: train,
                queue_delay: Some(delay),
                ..ack
            };
            arrive(&mut quick, first, PACKET * 4, None);
            assert_eq!(quick.on_ack(&seen(RTT / 2, Duration::ZERO), &path), Verdict::Continue);
            arrive(&mut quick, first, train - PACKET * 4, Some(time.mul_f64(102.0 / 106.0)));
            assert_eq!(quick.on_ack(&seen(RTT / 2, Duration::ZERO), &path), Verdict::Continue, "one train alone does not tell");
            arrive(&mut quick, second, PACKET * 4, None);
            let verdict = quick.on_ack(&seen(RTT, time.mul_f64(left)), &path);
            if is_alone {
                let Stage::Jump(leg) = quick.stage else { panic!("{:?}", quick.stage) };
                assert!((leg.goal_bps / 50e6 - 1.0).abs() < 0.01, "half of what was measured: {leg:?}");
            } else {
                assert_eq!(verdict, Verdict::Unknown);
            }
        }
    }

    #[test]
    fn trains_too_short_for_a_receiver_are_followed_by_longer_ones() {
        let (mut quick, path, ack) = scouted(BitRate::mbps(33));
        let (train, first) = (quick.train(), ack.now + Duration::from_millis(1));
        leave(&mut quick, first, train);
        // It came whole in one report.
        arrive(&mut quick, first, train, None);
        let all = AckSample { now: first + RTT, in_flight: Bytes::ZERO, ..ack };
        assert_eq!(quick.on_ack(&all, &path), Verdict::Continue);
        assert!(matches!(quick.stage, Stage::Reconnaissance) && quick.trains.is_empty());
        assert_eq!(quick.train(), PACKET * MOST_TRAIN_PKTS);
    }

    /// Sixty bytes of control are in flight whenever something is acknowledged, for so many rounds.
    fn trickle(quick: &mut Quick, path: &Path, ack: AckSample, rounds: u32) -> Option<Verdict> {
        (1..=rounds).map(|n| AckSample { now: ack.now + RTT * n, in_flight: Bytes(60), round_start: true, ..ack }).find_map(
            |ack| {
                leave(quick, ack.now, Bytes(60));
                Some(quick.on_ack(&ack, path))
                    .filter(|verdict| *verdict != Verdict::Continue || !matches!(quick.stage, Stage::Scout))
            },
        )
    }

    #[test]
    fn a_scout_that_tells_nothing_is_not_waited_for_while_control_packets_flow() {
        let start = PathStart { rtt: Some(RTT), ..PathStart::new(Time::ZERO, PACKET, 1) };
        let (mut quick, mut path) = (Quick::new(&start, Manner::Gentle), Path::new(PACKET));
        let scout = quick.window(&path);
        leave(&mut quick, Time::ZERO, scout);
        let ack = AckSample { in_flight: Bytes(60), round_start: false, ..jumped(Time::ZERO + RTT) };
        path.on_ack(&ack, true);
        // It came whole in one report.
        arrive(&mut quick, Time::ZERO, scout, None);
        quick.on_ack(&ack, &path);
        assert!(matches!(quick.stage, Stage::Scout));
        trickle(&mut quick, &path, ack, 3);
        assert!(matches!(quick.stage, Stage::Reconnaissance), "{:?}", quick.stage);
    }

    #[test]
    fn a_receiver_that_tells_nothing_of_trains_is_not_asked_for_ever() {
        let (mut quick, path, ack) = scouted(BitRate::mbps(100));
        for n in 0..TRAINS as u32 {
            let train = quick.train();
            leave(&mut quick, ack.now + RTT / 5 * n, train);
        }
        assert_eq!(trickle(&mut quick, &path, ack, 5), Some(Verdict::Continue), "what comes out of the scout");
        let verdicts: Vec<_> = (0..5).filter_map(|_| trickle(&mut quick, &path, ack, 1)).collect();
        assert!(verdicts.contains(&Verdict::Unknown), "{verdicts:?}");
    }

    /// As where a connection goes on at an address to which no handshake went.
    #[test]
    fn a_round_trip_that_only_acknowledgements_tell_makes_trains_as_long_as_any_other() {
        for rtt in [Some(RTT), None] {
            let start = PathStart { rtt, ..PathStart::new(Time::ZERO, PACKET, 1) };
            let (mut quick, mut path) = (Quick::new(&start, Manner::Gentle), Path::new(PACKET));
            let scout = quick.window(&path);
            leave(&mut quick, Time::ZERO, scout);
            let ack = AckSample { in_flight: PACKET * 2, ..jumped(Time::ZERO + RTT) };
            path.on_ack(&ack, true);
            arrive(&mut quick, Time::ZERO, PACKET * 4, None);
            quick.on_ack(&ack, &path);
            arrive(&mut quick, Time::ZERO, PACKET * 4, Some(BitRate::mbps(100).time_for(PACKET * 4)));
            quick.on_ack(&ack, &path);
            assert_eq!(quick.train(), PACKET * 106, "{rtt:?}");
        }
    }

    #[test]
    fn an_application_that_waits_now_and_then_limits_a_leg() {
        for (part, is_limited) in [(1.0, false), (0.9, false), (0.7, true)] {
            let mut quick = jumping();
            for n in 1..=100 {
                let now = Time::ZERO + RTT + RTT / 100 * n;
                leave(&mut quick, now, Bytes((1e8 / 8.0 * 0.001 * part) as u64));
            }
            let Stage::Jump(leg) = quick.stage else { panic!("{:?}", quick.stage) };
            assert_eq!(leg.is_limited(), is_limited, "{part}: {leg:?}");
        }
    }
}
