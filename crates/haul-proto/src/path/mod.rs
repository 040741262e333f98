//! A path: a pair of addresses with its own packet numbers, round-trip time, recovery, congestion controller, pacer and packet size.
//!
//! [`Path::on_report`] applies an acknowledgement in this order: the sent ring settles packets, the round-trip time and the queueing delay are sampled, what is overdue
//! is taken for lost, the controller hears of loss, marks and acknowledgement.

mod ecn;
mod samples;
mod skips;

use std::net::SocketAddr;
use std::time::Duration;

use haul_cc::{
    AckSample, Controller, ControllerChoice, DispersionMeter, EcnSample, Learned, OneWayDelay, Pacer, PathStart, RateSampler,
    RttEstimator, Trains,
};
use haul_paths::{Duty, Evidence, MtuDiscovery, PeerAddress, Witness};
use haul_units::{BitRate, Bytes, Time};

pub use ecn::EcnState;
pub use samples::SentRun;
pub use skips::Skips;

use crate::config::TransportConfig;
use crate::receive::Reporter;
use crate::recovery::{LossDetector, SentRing};
use crate::streams::StreamId;
use crate::wire::ack::Ack;
use crate::wire::{BASE_BYTES, Frame};
use haul_units::Distribution;

/// The round-trip time assumed before one is measured. // RFC 9002 6.2.2
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Timers believe in no shorter one that was not measured here: a satellite's modem answers TCP for the host at the other end.
const EXPECTED_RTT_MIN: Duration = Duration::from_millis(100);
/// The longest an acknowledgement waits at the receiver.
pub const ACK_DELAY_MAX: Duration = Duration::from_millis(5);
/// The floor of reports is told no more often, however short the round trip.
const FLOOR_INTERVAL_MIN: Duration = Duration::from_millis(2);
/// Nor more often than this without an acknowledgement: two round trips' worth.
const FLOORS_UNHEARD: u8 = 8;
/// Packets that leave after everything in flight was taken for lost, besides probes, until the peer is heard: with these and the probes a minute of silence costs less than 100.
const UNHEARD_PKTS: u64 = 40;
/// Round trips after which a path is taken to be known.
const LEARNING_ROUNDS: u64 = 4;
/// Probe timeouts in a row after which a path is silent: others take over its bytes.
const SILENT_PROBES: u32 = 2;
/// Highest packet number: leaves room for arithmetic.
pub const NUMBER_MAX: u64 = 1 << 62;

/// One path of a connection.
#[derive(Debug)]
pub struct Path {
    /// Its number on the wire.
    pub id: u8,
    /// Where it leads.
    pub peer: PeerAddress,
    /// What it is for.
    pub duty: Duty,
    /// Number of the next packet to send.
    pub next_number: u64,
    /// Numbers that were never used.
    pub skips: Skips,
    /// What is in flight.
    pub sent: SentRing,
    /// Decides what is lost.
    pub loss: LossDetector,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// What has been received, and when to report it.
    pub reporter: Reporter,
    /// Packet size.
    pub mtu: MtuDiscovery,
    /// ECN marks.
    pub ecn: EcnState,
    /// Spaces trains.
    pub pacer: Pacer,
    /// Says how long they may be.
    pub trains: Trains,
    /// Measures the delivery rate.
    pub sampler: RateSampler,
    /// Sets window, rate and burst.
    pub controller: Box<dyn Controller>,
    /// Probe packets that may leave beyond the window.
    pub probes_due: u32,
    /// A ping is to leave on this path.
    pub ping_due: bool,
    /// When something last left on it.
    pub sent_at: Time,
    /// Data waits for the pacer until then.
    pub paced_until: Time,
    /// Until then its socket has no room for data.
    pub held_until: Time,
    /// When to tell the floor of reports next, if anything is in flight.
    floor_due: Time,
    /// How often it has been told since the last acknowledgement.
    floors_told: u8,
    /// Packets sent since everything in flight was taken for lost, without an acknowledgement.
    unheard_pkts: u64,
    /// Packets are not taken for lost, nor the peer asked again, before so much time: for paths that lose nothing and stand still for a while.
    pub patience: Duration,
    /// Counters and samples for people.
    pub meter: Meter,
    /// What the path has shown of itself.
    witness: Witness,
    /// Round-trip times, in microseconds.
    pub rtts_us: Distribution,
    /// Queueing delays towards the peer, in microseconds.
    pub queue_delays_us: Distribution,
    one_way: OneWayDelay,
    dispersion: DispersionMeter,
    /// What has a lower number says nothing of where the path leads now.
    measured_from: u64,
    round: u64,
    /// A round ends when this packet is acknowledged.
    round_end: u64,
    /// Rounds in which data was acknowledged: credit and other control says nothing of how much the path carries.
    data_rounds: u64,
    /// Some was since the last of them.
    data_acked: bool,
}

/// What a path has counted and measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    /// Packets sent.
    pub sent_pkts: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes acknowledged.
    pub delivered: u64,
    /// Bytes taken for lost, spurious losses taken off.
    pub lost_bytes: u64,
    /// Packets taken for lost, spurious losses not taken off.
    pub lost_pkts: u64,
    /// Packets taken for lost that turned up.
    pub spurious_pkts: u64,
    /// Probe timeouts that have passed.
    pub probe_timeouts: u64,
    /// Newest delivery rate.
    pub delivery_rate: BitRate,
    /// Newest queueing delay towards the peer.
    pub queue_delay: Duration,
}

/// What a report or a timer changed, for the connection.
#[derive(Debug, Default)]
pub struct PathOutcome {
    /// The newest packet newly acknowledged.
    pub newest_acked: Option<u64>,
    /// Frames to send again.
    pub frames: Vec<Frame>,
    /// From our clock when the newest packet of the report left to the peer's when it arrived, in nanoseconds, if it is newly acknowledged.
    pub one_way_ns: Option<i64>,
}

impl Path {
    /// A path to `peer`; `rtt`, if it has been measured.
    pub fn new(
        id: u8,
        now: Time,
        peer: PeerAddress,
        rtt: Option<Duration>,
        max_packet: u16,
        config: &TransportConfig,
        seed: u64,
    ) -> Self {
        let expected = config.expected_rtt.filter(|_| id == 0);
        let mut estimator = RttEstimator::new(expected.map_or(INITIAL_RTT, |rtt| rtt.max(EXPECTED_RTT_MIN)));
        if let Some(sample) = rtt {
            estimator.on_sample(now, sample, Duration::ZERO);
        }
        let rtt = rtt.or(expected);
        // What is remembered was learned on one path: several that used it at once would overshoot together.
        let remembered = config.remembered.filter(|_| id == 0);
        let start = PathStart { rtt, remembered, ..PathStart::new(now, Bytes(BASE_BYTES.into()), seed) };
        Self {
            id,
            peer,
            duty: Duty::default(),
            next_number: 0,
            skips: Skips::default(),
            sent: SentRing::default(),
            loss: LossDetector::default(),
            reporter: Reporter::new(rtt.unwrap_or(INITIAL_RTT)),
            rtt: estimator,
            mtu: MtuDiscovery::new(max_packet),
            ecn: EcnState::default(),
            pacer: Pacer::new(now),
            trains: Trains::default(),
            sampler: RateSampler::new(now),
            controller: config.controller.build(&start),
            probes_due: 0,
            ping_due: false,
            sent_at: now,
            paced_until: Time::NEVER,
            held_until: Time::ZERO,
            floor_due: Time::NEVER,
            floors_told: 0,
            unheard_pkts: 0,
            patience: Duration::ZERO,
            meter: Meter::default(),
            witness: Witness::new(now),
            rtts_us: Distribution::default(),
            queue_delays_us: Distribution::default(),
            one_way: OneWayDelay::new(),
            measured_from: 0,
            dispersion: DispersionMeter::default(),
            round: 0,
            round_end: 0,
            data_rounds: 0,
            data_acked: false,
        }
    }

    /// The peer has answered at the other end of a path that had not been proved: it begins, with the round-trip time of that answer.
    pub fn begin(&mut self, now: Time, rtt: Duration, controller: ControllerChoice, seed: u64) {
        self.rtt = RttEstimator::new(INITIAL_RTT);
        self.rtt.on_sample(now, rtt, Duration::ZERO);
        let packet = Bytes(self.mtu.current().into());
        self.controller = controller.build(&PathStart { rtt: Some(rtt), ..PathStart::new(now, packet, seed) });
        self.pacer = Pacer::new(now);
        self.sampler = RateSampler::new(now);
        self.sent_at = now;
    }

    /// It begins to carry data beside others of its connection, which carry so much.
    pub fn join(&mut self, now: Time, controller: ControllerChoice, beside: BitRate, seed: u64) {
        let rtt = self.rtt.is_measured().then(|| self.rtt.smoothed());
        let packet = Bytes(self.mtu.current().into());
        self.controller = controller.build(&PathStart { rtt, joins: Some(beside), ..PathStart::new(now, packet, seed) });
    }

    /// The product of its bandwidth, as far as it has been seen, and round-trip time, in bytes.
    pub fn product(&self) -> u64 {
        self.meter.delivery_rate.bytes_in(self.rtt.min()).as_u64()
    }

    /// Whether data may go there and the path answers: the one to send on, where there is a choice.
    pub fn is_usable(&self) -> bool {
        self.peer.is_open() && self.loss.probes() < SILENT_PROBES && self.may_carry()
    }

    /// UDP payload that may leave on it, as far as its client wants that.
    pub fn duty_room(&self) -> u64 {
        self.duty.room(self.meter.sent_bytes)
    }

    /// Whether any may.
    pub fn may_carry(&self) -> bool {
        self.duty_room() > 0
    }

    /// Whether what is said of it leaves on it, and not on the main path.
    pub fn is_home(&self) -> bool {
        self.peer.is_open() && self.may_carry()
    }

    /// What the path has shown of itself so far.
    pub fn evidence(&self, now: Time) -> Evidence {
        self.witness.read(now)
    }

    /// Bytes in flight that count against the window.
    fn in_flight(&self) -> u64 {
        self.sent.in_flight().saturating_sub(self.mtu.doubtful())
    }

    /// Bytes that the window still lets go.
    pub fn window_room(&self) -> u64 {
        self.controller.window().as_u64().saturating_sub(self.in_flight())
    }

    /// The probe timeout in force.
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.probe_timeout(ACK_DELAY_MAX).max(self.patience)
    }

    /// Packets of data and frames that may leave besides probes: once everything in flight has been taken for lost, a few more, for what loses packets in a row may have ended; then
    /// the peer must be heard first.
    pub fn unheard_room_pkts(&self) -> u64 {
        if self.loss.is_persistent() { UNHEARD_PKTS.saturating_sub(self.unheard_pkts) } else { u64::MAX }
    }

    /// Whether any may leave.
    pub fn may_send(&self) -> bool {
        !self.peer.is_held() && (self.probes_due > 0 || self.unheard_room_pkts() > 0)
    }

    /// When the floor of reports is to be told next; not to a peer that does not report any more.
    pub fn floor_timer(&self) -> Time {
        let is_due = self.sent.in_flight() > 0 && self.floors_told < FLOORS_UNHEARD && !self.peer.is_held();
        if is_due { self.floor_due } else { Time::NEVER }
    }

    /// The floor of reports has been told.
    pub fn on_floor_told(&mut self, now: Time) {
        self.floors_told += 1;
        self.floor_due = now + self.floor_interval();
    }

    /// Something new has come from the peer: if it had fallen silent, it is asked at once.
    pub fn on_heard(&mut self) {
        if self.loss.is_persistent() {
            self.probes_due = self.probes_due.max(1);
        }
    }

    /// How often the peer is told which reports have come.
    pub fn floor_interval(&self) -> Duration {
        (self.rtt.smoothed() / 4).max(FLOOR_INTERVAL_MIN)
    }

    /// The reordering window in force.
    fn reordering_window(&self) -> Duration {
        self.loss.window(self.rtt.min(), self.rtt.smoothed()).max(self.patience)
    }

    /// When the path next wants to detect losses or to probe; `silent` paths are asked side by side.
    pub fn recovery_timer(&self, silent: u32) -> Time {
        if self.sent.in_flight() == 0 || self.peer.data_room() < u64::from(self.mtu.current()) {
            return Time::NEVER;
        }
        let loss = self.loss.loss_timer(&self.sent, self.reordering_window());
        loss.min(self.probe_timer(silent))
    }

    /// When it next wants to probe.
    pub fn probe_timer(&self, silent: u32) -> Time {
        self.loss.probe_timer(&self.sent, self.probe_timeout(), silent)
    }

    /// Applies a report that has arrived then; `on_data` gets every range newly acknowledged, `on_control` the frames that arrived, `on_lost` each range lost.
    pub fn on_report(
        &mut self,
        now: Time,
        arrived: Time,
        ack: &Ack,
        mut on_data: impl FnMut(StreamId, u64, u64, bool),
        on_control: impl FnMut(&[Frame]),
        on_lost: impl FnMut(StreamId, u64, u64, bool),
    ) -> PathOutcome {
        let mut largest_probe = None;
        let data_acked = &mut self.data_acked;
        let on_data = |stream, start, end, fin| {
            *data_acked = true;
            on_data(stream, start, end, fin);
        };
        let mut outcome = self.sent.on_ack(ack, on_data, on_control, |size| largest_probe = Some(size));
        if let Some(size) = largest_probe
            && self.mtu.on_probe_acked(size)
        {
            self.controller.on_mtu(Bytes(self.mtu.current().into()));
        }
        if outcome.spurious_pkts > 0 {
            self.meter.spurious_pkts += outcome.spurious_pkts;
            self.meter.lost_bytes = self.meter.lost_bytes.saturating_sub(outcome.spurious_bytes);
        }
        if outcome.newest.is_some_and(|(number, _)| number < self.measured_from) {
            // It has arrived elsewhere.
            outcome.spurious_pkts = 0;
        }
        let round_start = outcome.newest.is_some_and(|(number, _)| number >= self.round_end);
        if round_start {
            self.witness.on_round();
            self.round += 1;
            self.round_end = self.next_number;
            self.data_rounds += u64::from(std::mem::take(&mut self.data_acked));
            self.trains.on_round(self.next_number);
        }
        if outcome.newest.is_some() {
            self.floors_told = 0;
            self.unheard_pkts = 0;
        }
        let sample = self.sample(now, arrived, ack, &outcome, round_start);
        let newest = outcome.newest.filter(|(number, _)| *number == ack.largest && *number >= self.measured_from);
        let one_way_ns = newest.map(|(_, state)| ack.largest_clock_ns.wrapping_sub(state.sent_at.as_nanos()).cast_signed());
        self.loss.on_ack(now, &outcome, round_start);
        let frames = self.detect_losses(now, on_lost);
        if outcome.spurious_pkts > 0 {
            self.controller.on_spurious(now, Bytes(outcome.spurious_bytes));
        }
        let marked_pkts = self.ecn.on_ack(ack, outcome.acked_pkts);
        if marked_pkts > 0
            && let Some((_, state)) = outcome.newest
        {
            let reported_pkts = outcome.acked_pkts;
            self.controller.on_ecn(&EcnSample { now, marked_pkts, reported_pkts, sent_at: state.sent_at });
        }
        if let Some(sample) = sample {
            let in_flight = Bytes(self.in_flight());
            self.controller.on_ack(&AckSample { in_flight, lost_total: Bytes(self.meter.lost_bytes), ..sample });
            if self.witness.is_starting() && !self.controller.snapshot().is_starting {
                self.witness.on_started(now);
            }
        }
        self.sent.forget(now.before(self.rtt.smoothed() * 2 + self.reordering_window()));
        let newest_acked = outcome.newest.map(|(number, _)| number);
        PathOutcome { newest_acked, frames, one_way_ns }
    }

    /// Takes for lost what is overdue and tells the controller. Returns the control frames to send again.
    pub fn detect_losses(&mut self, now: Time, on_lost: impl FnMut(StreamId, u64, u64, bool)) -> Vec<Frame> {
        let window = self.reordering_window();
        let lost = self.loss.detect(now, &mut self.sent, window, on_lost);
        for &(first, position, mask) in &lost.places {
            self.trains.on_lost(first, position, mask);
        }
        self.on_lost(now, lost, false)
    }

    /// A probe timeout has passed on the only path that data can take: either probes are due, or everything in flight is taken for lost.
    pub fn on_probe_timeout(&mut self, now: Time, on_lost: impl FnMut(StreamId, u64, u64, bool)) -> Vec<Frame> {
        self.loss.on_probe_timeout(now);
        self.meter.probe_timeouts += 1;
        if self.loss.is_persistent() {
            self.probes_due = 1;
            return self.lose_all(now, on_lost);
        }
        // RFC 9002 6.2.4: two, for one may be lost.
        self.probes_due = 2;
        Vec::new()
    }

    /// A probe timeout has passed on a path beside others that answer: it is asked by a ping, and once it is silent the others get what was in flight.
    pub fn on_probe_timeout_beside_others(&mut self, now: Time, on_lost: impl FnMut(StreamId, u64, u64, bool)) -> Vec<Frame> {
        self.loss.on_probe_timeout(now);
        self.meter.probe_timeouts += 1;
        self.probes_due = 0;
        self.ping_due = true;
        if self.is_usable() { Vec::new() } else { self.lose_all(now, on_lost) }
    }

    /// Everything in flight is taken for lost.
    pub fn lose_all(&mut self, now: Time, on_lost: impl FnMut(StreamId, u64, u64, bool)) -> Vec<Frame> {
        let lost = LossDetector::lose_all(&mut self.sent, on_lost);
        let frames = self.on_lost(now, lost, true);
        if self.mtu.on_silence(now) {
            self.controller.on_mtu(Bytes(self.mtu.current().into()));
        }
        frames
    }

    /// The path leads to a new address. What was learned about the old one goes, unless only the port has changed (a NAT); nothing is in flight to it then. `rtt`, if it has answered there.
    pub fn on_new_address(&mut self, now: Time, old: SocketAddr, rtt: Option<Duration>) {
        self.loss.on_new_address();
        if old.ip() != self.peer.current().ip() {
            self.forget(now, rtt);
            if self.mtu.on_silence(now) {
                self.controller.on_mtu(Bytes(self.mtu.current().into()));
            }
        }
    }

    /// RFC 9000 9.4: what was measured of a path says nothing of the one that has taken its place, and neither does what left before, which is no longer in flight. `rtt`, if that has been measured there.
    fn forget(&mut self, now: Time, rtt: Option<Duration>) {
        self.rtt = RttEstimator::new(self.rtt.smoothed());
        if let Some(sample) = rtt {
            self.rtt.on_sample(now, sample, Duration::ZERO);
        }
        self.one_way = OneWayDelay::default();
        self.dispersion.restart();
        self.sampler.restart(Bytes(self.meter.lost_bytes));
        self.measured_from = self.next_number;
        self.controller.on_path_change(now, rtt);
        self.ecn.restart();
    }

    /// It leaves from elsewhere, or could not leave for a while: the peer is asked, and until it answers the path is silent.
    pub fn ask_again(&mut self, now: Time, moved: bool) {
        if moved {
            self.forget(now, None);
        }
        if self.peer.is_proved() {
            self.loss.fall_silent(now, SILENT_PROBES);
            self.ping_due = true;
        } else {
            self.peer = PeerAddress::opening(now, self.peer.current());
        }
    }

    /// Another controller takes over, with what the last one has learned.
    pub fn set_controller(&mut self, now: Time, choice: ControllerChoice, seed: u64) {
        let rtt = self.rtt.is_measured().then(|| self.rtt.smoothed());
        let packet = Bytes(self.mtu.current().into());
        self.controller = choice.build(&PathStart { rtt, learned: self.learned(), ..PathStart::new(now, packet, seed) });
    }

    /// What is known about the path; nothing before data has made some round trips.
    pub fn learned(&self) -> Option<Learned> {
        if self.data_rounds < LEARNING_ROUNDS {
            return None;
        }
        self.controller.learned().or_else(|| {
            Learned::from_window(self.controller.window(), self.rtt.smoothed(), self.rtt.min(), self.meter.delivery_rate)
        })
    }

    /// Loss so far, 0..=1.
    pub fn loss_ratio(&self) -> f64 {
        loss_ratio(self.meter.delivered, self.meter.lost_bytes)
    }
}

/// The part lost of what was `delivered` or `lost`, 0..=1.
pub fn loss_ratio(delivered: u64, lost: u64) -> f64 {
    let total = delivered + lost;
    if total == 0 { 0.0 } else { lost as f64 / total as f64 }
}
