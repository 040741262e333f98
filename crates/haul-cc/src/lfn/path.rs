//! What is known about the path, and the rate and window that follow from it.
//!
//! Bandwidth is what arrives. While a queue stands for a whole epoch the mean delivery rate *is* our share of the bottleneck, whether
//! higher or lower than thought; without a queue it is a lower bound and can only raise the estimate. Whether a delay is a queue of ours
//! shows when it rises or falls with what we send; one that does neither although we send less belongs to the path, and becomes `floor`.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::epoch::{Epoch, Summary};
use super::mode::Mode;
use super::phase::Phase;
use crate::{AckSample, Learned};

/// The model of a path.
#[derive(Debug, Clone)]
pub(super) struct PathModel {
    mode: Mode,
    packet: Bytes,
    /// Delivered, bits per second; 0 while unknown.
    bandwidth_bps: f64,
    /// What it was before the last attempt at more.
    before_up_bps: f64,
    min_rtt: Option<Duration>,
    /// False while a new minimum is sought; the old one stands in.
    min_rtt_known: bool,
    /// When a round-trip time near the minimum was seen.
    min_rtt_at: Time,
    base_loss: f64,
    /// How many packets `base_loss` is the mean of.
    loss_memory_pkts: f64,
    /// Loss is not made up for, to see how much there is.
    testing_loss: bool,
    epoch: Epoch,
    /// The last queueing delays: their minimum ignores single late packets.
    recent_delays: [Duration; RECENT],
    /// Delay that is not ours to drain.
    floor: Duration,
    /// By how much delay varies without a queue.
    jitter: Duration,
    last_delay_min: Duration,
    /// Pacing gain of cruise, below one while a queue stands.
    cruise_gain: f64,
    /// Epochs in which the delay neither rose nor fell although we sent less.
    stuck_epochs: u32,
}

impl PathModel {
    /// Acknowledgements that [`PathModel::queue_delay`] looks at.
    pub(super) const RECENT_DELAYS: u32 = RECENT as u32;

    pub(super) fn new(mode: Mode, packet: Bytes) -> Self {
        Self {
            mode,
            packet,
            bandwidth_bps: 0.0,
            before_up_bps: 0.0,
            min_rtt: None,
            min_rtt_known: false,
            min_rtt_at: Time::ZERO,
            base_loss: 0.0,
            loss_memory_pkts: 0.0,
            testing_loss: false,
            epoch: Epoch::new(Time::ZERO),
            recent_delays: [Duration::ZERO; RECENT],
            floor: Duration::ZERO,
            jitter: Duration::ZERO,
            last_delay_min: Duration::ZERO,
            cruise_gain: 1.0,
            stuck_epochs: 0,
        }
    }

    /// Begins with what the controller before knew.
    pub(super) fn take_over(&mut self, now: Time, learned: &Learned) {
        self.bandwidth_bps = learned.bandwidth.as_bps() as f64;
        self.before_up_bps = self.bandwidth_bps;
        self.min_rtt = Some(learned.min_rtt);
        self.min_rtt_known = true;
        self.min_rtt_at = now;
        self.base_loss = learned.base_loss.clamp(0.0, MAX_BASE_LOSS);
        self.loss_memory_pkts = LOSS_MEMORY_PKTS / 2.0;
        self.epoch = Epoch::new(now);
    }

    /// What is known; nothing before the first round trip.
    pub(super) fn learned(&self) -> Option<Learned> {
        let min_rtt = self.min_rtt.filter(|_| self.bandwidth_bps > 0.0)?;
        Some(Learned { bandwidth: self.bandwidth(), min_rtt, base_loss: self.base_loss })
    }

    /// Takes an acknowledgement in; the summary of the epoch if it ends one.
    pub(super) fn on_ack(&mut self, ack: &AckSample, phase: &Phase) -> Option<Summary> {
        self.track_min_rtt(ack);
        if let Some(delay) = ack.queue_delay {
            self.recent_delays.rotate_left(1);
            self.recent_delays[RECENT - 1] = delay;
        }
        if let (Phase::Quick(_) | Phase::Startup(_) | Phase::Drain { .. }, Some(sample)) = (phase, ack.rate) {
            self.bandwidth_bps = self.bandwidth_bps.max(sample.rate.as_bps() as f64);
        }
        if matches!(phase, Phase::Startup(_) | Phase::Up(_)) {
            // Nothing of ours drains a queue here.
            self.jitter = self.jitter.max(self.epoch.fall().min(MAX_JITTER));
        }
        let length = match phase {
            Phase::Cruise => self.min_rtt().max(CRUISE_EPOCH),
            Phase::Up(_) | Phase::Down { .. } => self.min_rtt().max(UP_EPOCH),
            _ => self.min_rtt(),
        };
        let summary = self.epoch.on_ack(ack, length)?;
        match phase {
            Phase::Startup(_) => self.learn_base_loss(&summary),
            // What a jump into a queue that others keep full loses is no loss of the path, and shows no delay.
            Phase::Quick(_) | Phase::Drain { .. } | Phase::ProbeRtt { .. } => {}
            Phase::Up(_) | Phase::Down { .. } => self.bandwidth_bps = self.bandwidth_bps.max(summary.mean_bps),
            Phase::Cruise => {
                if std::mem::take(&mut self.testing_loss) {
                    self.learn_base_loss(&summary);
                } else if self.cruise_gain >= 1.0 {
                    self.learn_jitter(&summary);
                }
                self.cruise(&summary);
            }
        }
        self.last_delay_min = summary.delay_min;
        Some(summary)
    }

    fn track_min_rtt(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.rtt else { return };
        let min = self.min_rtt.filter(|_| self.min_rtt_known).unwrap_or(Duration::MAX);
        if rtt <= min {
            self.min_rtt = Some(rtt);
            self.min_rtt_known = true;
        }
        if rtt <= min.saturating_add(min / 20) {
            self.min_rtt_at = ack.now;
        }
    }

    /// Loss while the queue is short, and no more is sent than arrives, is the path's own.
    ///
    /// Compensated pacing cannot tell: with a queue too short to show as delay, sending a tenth too much because a tenth is lost loses it.
    fn learn_base_loss(&mut self, summary: &Summary) {
        if summary.delay_max.saturating_sub(self.floor) > self.jitter * 2 + self.queue_threshold(8) {
            return;
        }
        let packets = summary.bytes.as_u64() as f64 / self.packet.as_u64() as f64;
        self.loss_memory_pkts = (self.loss_memory_pkts + packets).min(LOSS_MEMORY_PKTS);
        let weight = (packets / self.loss_memory_pkts.max(1.0)).min(0.5);
        self.base_loss = (self.base_loss + (summary.loss - self.base_loss) * weight).min(MAX_BASE_LOSS);
    }

    /// A delay that falls faster than anybody drains a queue is no queue.
    fn learn_jitter(&mut self, summary: &Summary) {
        let fall = summary.fall.min(MAX_JITTER);
        self.jitter = fall.max(self.jitter * 7 / 8 + fall / 8);
    }

    fn cruise(&mut self, summary: &Summary) {
        self.floor = self.floor.min(summary.delay_min);
        let standing = summary.delay_min.saturating_sub(self.floor);
        let mean = summary.mean_bps;
        if summary.app_limited || standing <= self.standing_threshold() {
            if mean > self.bandwidth_bps {
                self.bandwidth_bps += (mean - self.bandwidth_bps) / 2.0;
            }
            self.settle();
            return;
        }
        let margin = summary.length.mul_f64(0.015).max(self.jitter / 4);
        let rising = summary.delay_min > self.last_delay_min + margin;
        let falling = summary.delay_min + margin < self.last_delay_min;
        if rising || falling {
            self.bandwidth_bps += (mean - self.bandwidth_bps) * if rising { 0.75 } else { 0.5 };
            self.stuck_epochs = 0;
        } else if self.cruise_gain < 1.0 {
            self.stuck_epochs += 1;
        }
        if self.stuck_epochs >= STUCK_EPOCHS {
            self.floor = summary.delay_min;
            self.settle();
            return;
        }
        if !self.mode.drains() {
            return;
        }
        // Drains the queue within some four epochs; harder if that does not help.
        let proportional = standing.as_secs_f64() / (4.0 * summary.length.as_secs_f64());
        self.cruise_gain = 1.0 - proportional.clamp(0.02, 0.25) - 0.05 * f64::from(self.stuck_epochs);
    }

    /// Back to sending what arrives.
    fn settle(&mut self) {
        self.cruise_gain = 1.0;
        self.stuck_epochs = 0;
    }

    /// Cruise begins with what arrives, not made up for loss: for an epoch what is lost then is the path's own.
    pub(super) fn enter_cruise(&mut self, now: Time) {
        self.settle();
        self.testing_loss = true;
        self.epoch = Epoch::new(now + self.min_rtt());
    }

    pub(super) fn enter_up(&mut self, now: Time) {
        self.testing_loss = false;
        self.before_up_bps = self.bandwidth_bps;
        self.restart_epoch(now);
    }

    /// The last attempt at more bandwidth brought much.
    pub(super) fn has_gained(&self) -> bool {
        self.bandwidth_bps > self.before_up_bps * 1.2
    }

    pub(super) fn restart_epoch(&mut self, now: Time) {
        self.epoch = Epoch::new(now);
    }

    pub(super) fn on_outage(&mut self) {
        self.bandwidth_bps *= 0.7;
        self.settle();
    }

    /// Marks in cruise: less for the rest of the epoch.
    pub(super) fn hold_back(&mut self) {
        self.cruise_gain = self.cruise_gain.min(0.9);
    }

    /// Forgets the smallest round-trip time: the next samples, with hardly a queue, set it anew.
    pub(super) fn forget_min_rtt(&mut self) {
        self.min_rtt_known = false;
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    /// What the quick start has seen arrive.
    pub(super) fn raise_bandwidth(&mut self, arrived_bps: f64) {
        self.bandwidth_bps = self.bandwidth_bps.max(arrived_bps);
    }

    /// Cuts the estimate to what arrives.
    pub(super) fn limit_bandwidth(&mut self, mean_bps: f64) {
        self.bandwidth_bps = self.bandwidth_bps.min(mean_bps);
    }

    pub(super) fn min_rtt(&self) -> Duration {
        self.min_rtt.unwrap_or(UNMEASURED_RTT)
    }

    pub(super) fn min_rtt_at(&self) -> Time {
        self.min_rtt_at
    }

    pub(super) fn bandwidth(&self) -> BitRate {
        BitRate::from_bps(self.bandwidth_bps as u64)
    }

    pub(super) fn bandwidth_bps(&self) -> f64 {
        self.bandwidth_bps
    }

    pub(super) fn base_loss(&self) -> f64 {
        self.base_loss
    }

    pub(super) fn cruise_gain(&self) -> f64 {
        self.cruise_gain
    }

    pub(super) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// Queueing delay that has lasted for some acknowledgements, without what is not ours.
    pub(super) fn queue_delay(&self) -> Duration {
        self.recent_delays.iter().min().copied().unwrap_or_default().saturating_sub(self.floor)
    }

    /// A part of the round trip, but no less than a millisecond, which scheduling alone can take.
    pub(super) fn queue_threshold(&self, part: u32) -> Duration {
        (self.min_rtt() / part).max(Duration::from_millis(1))
    }

    /// A delay beyond this is a queue that stands.
    pub(super) fn standing_threshold(&self) -> Duration {
        self.queue_threshold(32).max(self.jitter * 3 / 2)
    }

    /// Bytes that fill the path without a queue, lost ones included.
    pub(super) fn pipe(&self) -> Bytes {
        BitRate::from_bps((self.bandwidth_bps / (1.0 - self.base_loss)) as u64).bytes_in(self.min_rtt())
    }

    pub(super) fn pacing_rate(&self, gain: f64) -> BitRate {
        let Some(min_rtt) = self.min_rtt else { return BitRate::of(self.initial_window(), FIRST_FLIGHT) };
        let least = BitRate::of(self.packet * 4, min_rtt.max(Duration::from_micros(100)));
        if self.bandwidth_bps == 0.0 {
            return BitRate::of(self.initial_window(), min_rtt.max(Duration::from_micros(100))).scaled(2.0);
        }
        let made_up = if self.testing_loss { 1.0 } else { 1.0 - self.base_loss };
        BitRate::from_bps((self.bandwidth_bps * gain / made_up) as u64).max(least)
    }

    pub(super) fn window(&self, gain: f64) -> Bytes {
        let rtt = self.min_rtt();
        let time = rtt.mul_f64(gain) + self.jitter * 3 + (rtt / 16).clamp(MIN_ACK_TIME, MAX_ACK_TIME);
        let rate = BitRate::from_bps((self.bandwidth_bps / (1.0 - self.base_loss)) as u64);
        rate.bytes_in(time).clamp(self.initial_window(), MAX_WINDOW)
    }

    /// DEVIATION from RFC 9002 7.2 (10 packets): a start on a long fat path takes 14 round trips from there.
    fn initial_window(&self) -> Bytes {
        self.packet * 48
    }
}

const RECENT: usize = 4;
/// Beyond any path: 100 Gbit/s over a minute.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
const UNMEASURED_RTT: Duration = Duration::from_millis(100);
/// The first window leaves within this time.
const FIRST_FLIGHT: Duration = Duration::from_millis(10);
const CRUISE_EPOCH: Duration = Duration::from_millis(100);
const UP_EPOCH: Duration = Duration::from_millis(30);
const LOSS_MEMORY_PKTS: f64 = 6_000.0;
const MAX_BASE_LOSS: f64 = 0.15;
const MAX_JITTER: Duration = Duration::from_millis(30);
const STUCK_EPOCHS: u32 = 4;
const MIN_ACK_TIME: Duration = Duration::from_micros(500);
const MAX_ACK_TIME: Duration = Duration::from_millis(10);
