//! One flow: a sender with a real controller, pacer and measurements, and the receiver that acknowledges.
//!
//! Trains travel instead of packets: a train keeps how many of its packets arrived. What a train lacks when a later one, sent a reordering
//! window after it, has been acknowledged is lost (RFC 8985). Data itself does not matter, so nothing is sent again.

use std::collections::VecDeque;
use std::time::Duration;

use haul_cc::{
    AckReport, AckSample, Controller, ControllerChoice, DispersionMeter, EcnSample, Learned, LossSample, OneWayDelay, Pacer,
    PathStart, RateSampler, RttEstimator, SentSample, SentState,
};
use haul_sim::Rng;
use haul_units::{BitRate, Bytes, Time};

use crate::scenario::Scenario;

pub const PACKET: Bytes = Bytes(1472);

/// When a flow sends, and how much it has to send.
#[derive(Debug, Clone, Copy)]
pub struct FlowPlan {
    pub controller: ControllerChoice,
    pub start: Time,
    pub remembered: Option<Learned>,
    /// The controller changes at that time.
    pub change: Option<(Time, ControllerChoice)>,
    /// From, to: the application gives no more than this rate in that time.
    pub limited: Option<(Time, Time, BitRate)>,
    /// From then on the receiver says twice a second that it has room for this rate.
    pub told: Option<(Time, BitRate)>,
    /// Until then the application, or the credit of the peer, keeps it waiting this part of the time, some milliseconds at a time.
    pub waits: Option<(Time, f64)>,
}

impl FlowPlan {
    pub fn bulk(controller: ControllerChoice) -> Self {
        Self { controller, start: Time::ZERO, remembered: None, change: None, limited: None, told: None, waits: None }
    }
}

const TOLD_EVERY: Duration = Duration::from_millis(500);

/// A train on its way through the network.
#[derive(Debug, Clone, Copy)]
pub struct Parcel {
    pub flow: usize,
    pub train: u64,
    pub pkts: u32,
    /// Marked by the queue.
    pub ce: bool,
    /// Its packets are reported in small groups.
    pub grouped: bool,
}

#[derive(Debug)]
struct Train {
    state: SentState,
    pkts: u32,
    acked_pkts: u32,
    lost_pkts: u32,
}

#[derive(Debug)]
struct Ack {
    arrives: Time,
    delay: Duration,
    received: Vec<(u64, u32)>,
    receiver_bytes: Bytes,
    newest_at: Time,
    marked_pkts: u64,
}

#[derive(Debug, Default)]
struct Receiver {
    bytes: Bytes,
    newest_at: Time,
    pending: Vec<(u64, u32)>,
    marked_pkts: u64,
    due: Option<Time>,
    last_sent: Time,
}

#[derive(Debug)]
pub struct Flow {
    index: usize,
    plan: FlowPlan,
    base_rtt: Duration,
    ack_hold: Duration,
    receive_batch: Duration,
    pub controller: Box<dyn Controller>,
    pacer: Pacer,
    sampler: RateSampler,
    rtt: RttEstimator,
    one_way: OneWayDelay,
    dispersion: DispersionMeter,
    trains: VecDeque<Train>,
    first_train: u64,
    in_flight: Bytes,
    delivered: Bytes,
    lost_total: Bytes,
    delivery_rate: BitRate,
    round: u64,
    round_ends: u64,
    wake: Option<Time>,
    progress_at: Time,
    timeouts: u32,
    app_credit: f64,
    app_at: Time,
    /// What the application waits for: from, to.
    app_wait: (Time, Time),
    rng: Rng,
    receiver: Receiver,
    acks: VecDeque<Ack>,
    pub sent_pkts: u64,
    pub received: Bytes,
}

impl Flow {
    pub fn new(index: usize, plan: FlowPlan, scenario: &Scenario) -> Self {
        let Scenario { rtt: base_rtt, ack_hold, receive_batch, .. } = *scenario;
        let start = PathStart {
            rtt: Some(base_rtt),
            remembered: plan.remembered,
            ..PathStart::new(plan.start, PACKET, index as u64 + 1)
        };
        Self {
            index,
            plan,
            base_rtt,
            ack_hold,
            receive_batch,
            controller: plan.controller.build(&start),
            pacer: Pacer::new(plan.start),
            sampler: RateSampler::new(plan.start),
            rtt: RttEstimator::default(),
            one_way: OneWayDelay::new(),
            dispersion: DispersionMeter::default(),
            trains: VecDeque::new(),
            first_train: 0,
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            lost_total: Bytes::ZERO,
            delivery_rate: BitRate::ZERO,
            round: 0,
            round_ends: 0,
            wake: Some(plan.start),
            progress_at: plan.start,
            timeouts: 0,
            app_credit: 0.0,
            app_at: plan.start,
            app_wait: (plan.start, plan.start),
            rng: Rng::new(index as u64 + 1),
            receiver: Receiver::default(),
            acks: VecDeque::new(),
            sent_pkts: 0,
            received: Bytes::ZERO,
        }
    }

    pub fn next_event(&self) -> Time {
        let ack = self.acks.front().map_or(Time::NEVER, |ack| ack.arrives);
        let wake = self.wake.unwrap_or(Time::NEVER).min(self.plan.change.map_or(Time::NEVER, |(at, _)| at));
        let wake = wake.min(self.plan.told.map_or(Time::NEVER, |(at, _)| at));
        ack.min(wake).min(self.receiver.due.unwrap_or(Time::NEVER)).min(self.probe_at())
    }

    /// Does all that is due, and gives the trains to send.
    pub fn advance(&mut self, now: Time, out: &mut Vec<Parcel>) {
        if self.receiver.due.is_some_and(|due| due <= now) {
            self.send_ack(now);
        }
        while self.acks.front().is_some_and(|ack| ack.arrives <= now) {
            let ack = self.acks.pop_front().expect("just seen");
            self.on_ack(now, &ack);
        }
        if self.probe_at() <= now {
            self.probe(now, out);
        }
        if let Some((at, rate)) = self.plan.told.as_mut().filter(|(at, _)| *at <= now) {
            *at = now + TOLD_EVERY;
            self.controller.on_room(now, *rate);
        }
        if let Some((_, choice)) = self.plan.change.take_if(|(at, _)| *at <= now) {
            self.change(now, choice);
        }
        if now >= self.plan.start {
            self.send(now, out);
        }
    }

    /// Another controller takes over.
    fn change(&mut self, now: Time, choice: ControllerChoice) {
        let known = Learned::from_window(self.controller.window(), self.rtt.smoothed(), self.rtt.min(), self.delivery_rate);
        let learned = self.controller.learned().or(known);
        self.controller = choice.build(&PathStart { learned, ..PathStart::new(now, PACKET, self.index as u64 + 1) });
    }

    /// Packets of a train arrive.
    pub fn receive(&mut self, at: Time, parcel: Parcel) {
        let Parcel { train, pkts, ce, grouped, .. } = parcel;
        // The receiver looks at its socket now and then.
        let at = round_up(at, self.receive_batch);
        let receiver = &mut self.receiver;
        receiver.marked_pkts += u64::from(pkts) * u64::from(ce);
        receiver.bytes += PACKET * u64::from(pkts);
        receiver.newest_at = at;
        receiver.pending.push((train, pkts));
        self.received += PACKET * u64::from(pkts);
        let interval = (self.base_rtt / 32).clamp(Duration::from_micros(250), Duration::from_millis(5));
        let due = receiver.due.get_or_insert((receiver.last_sent + interval).max(at));
        if grouped {
            *due = at;
        }
    }

    fn send_ack(&mut self, now: Time) {
        let receiver = &mut self.receiver;
        receiver.due = None;
        receiver.last_sent = now;
        let arrives = now + self.base_rtt / 2;
        self.acks.push_back(Ack {
            arrives: round_up(arrives, self.ack_hold),
            delay: now - receiver.newest_at,
            received: std::mem::take(&mut receiver.pending),
            receiver_bytes: receiver.bytes,
            newest_at: receiver.newest_at,
            marked_pkts: std::mem::take(&mut receiver.marked_pkts),
        });
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        let (mut acked, mut spurious, mut newest) = (Bytes::ZERO, Bytes::ZERO, None);
        for &(id, pkts) in &ack.received {
            let Some(train) = id.checked_sub(self.first_train).and_then(|n| self.trains.get_mut(n as usize)) else { continue };
            train.acked_pkts += pkts;
            let late = (train.acked_pkts + train.lost_pkts).saturating_sub(train.pkts);
            train.lost_pkts -= late;
            spurious += PACKET * u64::from(late);
            acked += PACKET * u64::from(pkts);
            newest = Some((id, train.state));
        }
        let Some((id, state)) = newest else { return };
        (self.progress_at, self.timeouts) = (now, 0);
        self.delivered += acked;
        self.lost_total = self.lost_total.saturating_sub(spurious);
        self.in_flight = self.in_flight.saturating_sub(acked.saturating_sub(spurious));
        let round_trip = now - state.sent_at;
        let rtt = self.rtt.on_sample(now, round_trip, ack.delay);
        let queue_delay = self.one_way.on_sample(now, state.sent_at, ack.newest_at, round_trip);
        if spurious > Bytes::ZERO {
            self.controller.on_spurious(now, spurious);
        }
        self.detect_loss(now, id, state.sent_at);
        if ack.marked_pkts > 0 {
            let reported_pkts = acked.0 / PACKET.0;
            self.controller.on_ecn(&EcnSample { now, marked_pkts: ack.marked_pkts, reported_pkts, sent_at: state.sent_at });
        }
        let report = AckReport {
            now,
            receiver_bytes: ack.receiver_bytes,
            receiver_time: ack.newest_at,
            lost_total: self.lost_total,
            min_rtt: self.rtt.min(),
        };
        let round_start = id >= self.round_ends;
        if round_start {
            self.round += 1;
            self.round_ends = self.first_train + self.trains.len() as u64;
        }
        if let Some(sample) = self.dispersion.on_report(&state, ack.receiver_bytes, ack.newest_at) {
            self.controller.on_dispersion(&sample);
        }
        let rate = self.sampler.on_ack(&state, &report);
        self.delivery_rate = rate.map_or(self.delivery_rate, |sample| sample.rate);
        let sample = AckSample {
            now,
            acked,
            delivered: self.delivered,
            in_flight: self.in_flight,
            rtt: Some(rtt),
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            queue_delay: Some(queue_delay),
            rate,
            round: self.round,
            round_start,
            lost_total: self.lost_total,
        };
        self.controller.on_ack(&sample);
    }

    fn detect_loss(&mut self, now: Time, newest: u64, newest_sent: Time) {
        let window = (self.rtt.min() / 16).max(Duration::from_millis(1));
        let (mut lost, mut runs, mut last) = (Bytes::ZERO, 0, None);
        while let Some(train) = self.trains.front() {
            let missing = train.pkts - train.acked_pkts - train.lost_pkts;
            if missing > 0 && (self.first_train >= newest || train.state.sent_at + window > newest_sent) {
                break;
            }
            // A train that is complete, or whose window is over; late packets of the latter no longer count as spurious.
            if missing > 0 {
                lost += PACKET * u64::from(missing);
                runs += u64::from(missing);
                last = Some(train.state);
            }
            self.trains.pop_front();
            self.first_train += 1;
        }
        if let Some(state) = last {
            self.report_loss(now, lost, runs, &state, false);
        }
    }

    fn report_loss(&mut self, now: Time, lost: Bytes, runs: u64, newest: &SentState, persistent: bool) {
        self.in_flight = self.in_flight.saturating_sub(lost);
        self.lost_total += lost;
        self.controller.on_loss(&LossSample {
            now,
            lost,
            runs,
            in_flight: self.in_flight,
            in_flight_at_send: newest.in_flight,
            sent_at: newest.sent_at,
            persistent,
            min_rtt: self.rtt.min(),
        });
    }

    fn probe_at(&self) -> Time {
        if self.in_flight == Bytes::ZERO && self.timeouts == 0 {
            return Time::NEVER;
        }
        self.progress_at + self.rtt.probe_timeout(Duration::from_millis(5)) * (1 << self.timeouts.min(4))
    }

    fn probe(&mut self, now: Time, out: &mut Vec<Parcel>) {
        self.timeouts += 1;
        self.progress_at = now;
        if self.timeouts == PERSISTENT_TIMEOUTS {
            let lost: u64 = self.trains.iter().map(|t| u64::from(t.pkts - t.acked_pkts - t.lost_pkts)).sum();
            for train in &mut self.trains {
                train.lost_pkts = train.pkts - train.acked_pkts;
            }
            if let Some(state) = self.trains.back().map(|train| train.state) {
                self.report_loss(now, PACKET * lost, 1, &state, true);
            }
        }
        self.launch(now, 2, false, out);
    }

    fn send(&mut self, now: Time, out: &mut Vec<Parcel>) {
        self.wake = None;
        while self.timeouts < PERSISTENT_TIMEOUTS {
            let (burst, window) = (self.controller.burst(), self.controller.window());
            let room = window.saturating_sub(self.in_flight);
            if room < burst.min(Bytes(window.0 / 4)).max(PACKET) {
                return;
            }
            let budget = match self.pacer.budget(now, self.controller.rate(), burst) {
                Ok(budget) => budget.min(burst).min(room),
                Err(when) => {
                    self.wake = Some(when);
                    return;
                }
            };
            let wanted = (budget.0 / PACKET.0) as u32;
            let pkts = wanted.min(self.app_packets(now));
            if pkts < wanted {
                self.sampler.on_app_limited(now);
                self.wake = Some(if self.is_waiting(now) { self.app_wait.1 } else { now + Duration::from_millis(5) });
            }
            if pkts == 0 {
                return;
            }
            self.launch(now, pkts, pkts < wanted, out);
        }
    }

    /// How many packets the application has for us.
    fn app_packets(&mut self, now: Time) -> u32 {
        self.wait_now_and_then(now);
        if self.is_waiting(now) {
            return 0;
        }
        let Some((from, to, rate)) = self.plan.limited.filter(|(from, to, _)| (*from..*to).contains(&now)) else {
            self.app_at = now;
            return u32::MAX;
        };
        let earned = rate.bytes_in(now - self.app_at.max(from)).0 as f64;
        self.app_credit = (self.app_credit + earned).min(rate.bytes_in(Duration::from_millis(20)).0 as f64);
        self.app_at = now.min(to);
        (self.app_credit / PACKET.0 as f64) as u32
    }

    /// Plans the next wait once the last one is over: 1 to 9 ms long, and as far from the last one as its part of the time asks for.
    fn wait_now_and_then(&mut self, now: Time) {
        let Some((_, part)) = self.plan.waits.filter(|(until, _)| now < *until) else { return };
        while self.app_wait.1 <= now {
            let wait = Duration::from_millis(1) + Duration::from_millis(8).mul_f64(self.rng.unit());
            let from = self.app_wait.1 + MEAN_WAIT.mul_f64((1.0 - part) / part * 2.0 * self.rng.unit());
            self.app_wait = (from, from + wait);
        }
    }

    fn is_waiting(&self, now: Time) -> bool {
        (self.app_wait.0..self.app_wait.1).contains(&now)
    }

    fn launch(&mut self, now: Time, pkts: u32, app_limited: bool, out: &mut Vec<Parcel>) {
        let bytes = PACKET * u64::from(pkts);
        if self.in_flight == Bytes::ZERO {
            self.progress_at = now;
            if self.delivered > Bytes::ZERO {
                self.controller.on_idle(now);
            }
        }
        self.app_credit -= if self.plan.limited.is_some() { bytes.0 as f64 } else { 0.0 };
        self.app_credit = self.app_credit.max(0.0);
        self.in_flight += bytes;
        let state = self.sampler.on_sent(now, bytes, self.in_flight);
        let train = self.first_train + self.trains.len() as u64;
        self.trains.push_back(Train { state, pkts, acked_pkts: 0, lost_pkts: 0 });
        self.pacer.on_sent(now, bytes);
        self.controller.on_sent(&SentSample { now, bytes, in_flight: self.in_flight, app_limited });
        self.sent_pkts += u64::from(pkts);
        let grouped = self.plan.controller.measures_dispersion() && self.sent_pkts <= GROUPED_PKTS;
        out.push(Parcel { flow: self.index, train, pkts, ce: false, grouped });
    }
}

fn round_up(time: Time, step: Duration) -> Time {
    let step = step.as_nanos() as u64;
    if step == 0 { time } else { Time::from_nanos(time.as_nanos().next_multiple_of(step)) }
}

const MEAN_WAIT: Duration = Duration::from_millis(5);
const PERSISTENT_TIMEOUTS: u32 = 3;
/// As the transport does.
const GROUPED_PKTS: u64 = 1024;
pub const GROUP_PKTS: u32 = 4;
