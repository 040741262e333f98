//! What is known about the path; `sending.rs` has the rate and window that follow from it.
//!
//! Bandwidth is what arrives. While a queue stands for a whole epoch the mean delivery rate *is* our share of the bottleneck, whether
//! higher or lower than thought; without a queue it is a lower bound and can only raise the estimate. A delay that comes at once and stays
//! although we send less belongs to the path, and becomes `floor`.

mod losing;
mod sending;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::epoch::{Epoch, Summary};
use super::jitter::Jitter;
use super::loss::BaseLoss;
use super::lull::{Lull, Lulls, Moment};
use super::mode::Mode;
use super::rivals::Rivals;
use super::share::{drain_gain, raise_gain, wanted_delay};
use super::trials::{Trial, Trials};
use crate::rate_sampler::LONG_PATH;
use crate::{AckSample, Learned};

/// What the controller is up to, as far as the model has to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Doing {
    /// Looking for the bandwidth.
    Search,
    /// Emptying the queue of the search.
    Drain,
    /// Sending what arrives.
    Cruise,
    /// Trying for more, or emptying the queue of the attempt.
    Attempt,
    /// Holding a part beside others, with so many bytes less in flight than a moment ago.
    Contest { less: f64 },
    /// Leaving the queue empty.
    ProbeRtt,
}

/// The model of a path.
#[derive(Debug, Clone)]
pub(super) struct PathModel {
    mode: Mode,
    packet: Bytes,
    /// Delivered, bits per second; 0 while unknown.
    bandwidth_bps: f64,
    /// Bytes that have arrived in all.
    delivered: Bytes,
    /// Until then the samples show what the search for the bandwidth has sent.
    search_until: Time,
    /// What it was before the last attempt at more.
    before_up_bps: f64,
    min_rtt: Option<Duration>,
    /// False while a new minimum is sought; the old one stands in.
    min_rtt_known: bool,
    /// When a round-trip time near the minimum was seen.
    min_rtt_at: Time,
    loss: BaseLoss,
    trials: Trials,
    /// Epochs in a row in which more was lost than before.
    lossy_epochs: u32,
    /// The trial under way began with the rate brought down to what arrives.
    is_limited: bool,
    epoch: Epoch,
    /// The last queueing delays: their minimum ignores single late packets.
    recent_delays: [Duration; RECENT],
    /// By how much delay varies without a queue.
    jitter: Jitter,
    last_delay_min: Duration,
    /// Pacing gain of cruise, below one while a queue stands.
    cruise_gain: f64,
    /// Delay that belongs to the path although it was shorter before, and epochs that say so.
    floor: Duration,
    flat_epochs: u32,
    /// Epochs since the delay has risen at once.
    since_step: u32,
    rivals: Rivals,
    lulls: Lulls,
    /// Has just ended.
    lull: Option<Lull>,
    smoothed_rtt: Duration,
    /// Epochs without a queue.
    empty_epochs: u32,
    /// So many tell that there is room.
    room_epochs: u32,
    /// By how much more than arrives is sent where there is no queue.
    raise: f64,
    /// The bandwidth when the queue was last too short.
    overflow_bps: f64,
    /// Of what arrives on all paths of the connection that may share the bottleneck, the part that arrives on this one.
    pub(super) part: f64,
}

impl PathModel {
    /// Acknowledgements that [`PathModel::queue_delay`] looks at.
    pub(super) const RECENT_DELAYS: u32 = RECENT as u32;

    pub(super) fn new(mode: Mode, packet: Bytes) -> Self {
        Self {
            mode,
            packet,
            bandwidth_bps: 0.0,
            delivered: Bytes::ZERO,
            search_until: Time::ZERO,
            before_up_bps: 0.0,
            min_rtt: None,
            min_rtt_known: false,
            min_rtt_at: Time::ZERO,
            loss: BaseLoss::default(),
            trials: Trials::default(),
            lossy_epochs: 0,
            is_limited: false,
            epoch: Epoch::new(Time::ZERO),
            recent_delays: [Duration::ZERO; RECENT],
            jitter: Jitter::default(),
            last_delay_min: Duration::ZERO,
            cruise_gain: 1.0,
            floor: Duration::ZERO,
            flat_epochs: 0,
            since_step: u32::MAX,
            rivals: Rivals::default(),
            lulls: Lulls::default(),
            lull: None,
            smoothed_rtt: Duration::ZERO,
            empty_epochs: 0,
            room_epochs: ROOM_EPOCHS,
            raise: MAX_RAISE,
            overflow_bps: 0.0,
            part: 1.0,
        }
    }

    /// Begins with what the controller before knew.
    pub(super) fn take_over(&mut self, now: Time, learned: &Learned) {
        self.bandwidth_bps = learned.bandwidth.as_bps() as f64;
        self.before_up_bps = self.bandwidth_bps;
        self.min_rtt = Some(learned.min_rtt);
        self.min_rtt_known = true;
        self.min_rtt_at = now;
        self.loss = BaseLoss::remembered(learned.base_loss);
        self.epoch = Epoch::new(now);
    }

    /// What is known; nothing before the first round trip.
    pub(super) fn learned(&self) -> Option<Learned> {
        let min_rtt = self.min_rtt.filter(|_| self.bandwidth_bps > 0.0)?;
        Some(Learned { bandwidth: self.bandwidth(), min_rtt, base_loss: self.base_loss() })
    }

    /// Takes an acknowledgement in; the summary of the epoch if it ends one.
    pub(super) fn on_ack(&mut self, ack: &AckSample, doing: Doing) -> Option<Summary> {
        self.track_min_rtt(ack);
        self.smoothed_rtt = ack.smoothed_rtt;
        self.delivered = ack.delivered;
        if let Some(delay) = ack.queue_delay {
            self.recent_delays.rotate_left(1);
            self.recent_delays[RECENT - 1] = delay;
            self.jitter.on_delay(ack.now, delay, self.min_rtt().max(CRUISE_EPOCH));
        }
        let searching = matches!(doing, Doing::Search | Doing::Drain) || ack.now < self.search_until;
        if let (true, Some(sample)) = (searching, ack.rate) {
            self.bandwidth_bps = self.bandwidth_bps.max(sample.rate.as_bps() as f64);
        }
        let length = match doing {
            Doing::Cruise if self.trials.running() == Some(Trial::Half) => self.half_length(),
            Doing::Cruise => self.min_rtt().max(CRUISE_EPOCH),
            Doing::Attempt => self.min_rtt().max(UP_EPOCH),
            _ => self.min_rtt(),
        };
        self.trials.on_ack(ack.now);
        let summary = self.epoch.on_ack(ack, length);
        self.watch_lulls(ack, doing, summary.is_some());
        let summary = summary?;
        if doing != Doing::Search && self.loss.falls(summary.loss, self.packets(&summary)) {
            // What was sent to make up for it arrives.
            self.bandwidth_bps = self.bandwidth_bps.max(summary.arrived_bps);
            self.raise = MAX_RAISE;
        }
        match doing {
            // What a jump into a queue that others keep full loses is no loss of the path, and shows no delay.
            Doing::Search | Doing::Drain | Doing::ProbeRtt => {}
            Doing::Contest { .. } => {
                if !summary.app_limited {
                    self.bandwidth_bps += (summary.mean_bps - self.bandwidth_bps) / 2.0;
                }
            }
            Doing::Attempt => self.bandwidth_bps = self.bandwidth_bps.max(summary.mean_bps),
            Doing::Cruise => {
                let trial = self.judge_trial(ack.now, &summary);

                let lossy = trial.is_none() && self.is_lossier(&summary);
                let risen = lossy && self.loss.has_risen(summary.loss, self.packets(&summary));
                if trial == Some(Trial::Half) {
                    // Half the rate says nothing of the queue.
                    self.cruise_gain = 1.0;
                } else {
                    // Until it is known what it is, the rate stays.
                    self.cruise(&summary, trial.is_some() || risen);
                }
                self.watch_loss(ack, &summary, trial, lossy, risen);
            }
        }
        let has_stepped = summary.delay_min > self.last_delay_min + self.long_queue();
        self.since_step = if has_stepped { 0 } else { self.since_step.saturating_add(1) };
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
        // Near it: a twentieth is jitter.
        if rtt <= min.saturating_add(min / 20) {
            self.min_rtt_at = ack.now;
        }
    }

    /// Whether the rival sends nothing for a moment.
    fn watch_lulls(&mut self, ack: &AckSample, doing: Doing, ends_epoch: bool) {
        self.lull = None;
        let less = match doing {
            Doing::Cruise => 0.0,
            Doing::Contest { less } => less,
            _ => return self.lulls.restart(),
        };
        // The smallest one-way delay is that of the last 10 s, in which the queue may never have been empty.
        if let Some(rtt) = ack.rtt {
            let newest = Moment { now: ack.now, delivered: ack.delivered, delay: rtt.saturating_sub(self.min_rtt()) };
            self.lull = self.lulls.on_ack(newest, less, self.long_queue() / 2, ends_epoch);
        }
    }

    /// A lull of the rival, if it has just ended.
    pub(super) fn lull(&self) -> Option<Lull> {
        self.lull
    }

    pub(super) fn packets(&self, summary: &Summary) -> f64 {
        summary.bytes.as_u64() as f64 / self.packet_bytes()
    }

    fn cruise(&mut self, summary: &Summary, was_trial: bool) {
        self.adopt_delay(summary);
        let standing = summary.delay_min.saturating_sub(self.floor);
        // The samples are bounded by the rate of sending, which is lower than what arrives while a long queue is emptied.
        let is_draining = self.cruise_gain < LESS && standing > summary.length / 2;
        let mean =
            if is_draining || self.jitter() > NO_JITTER { summary.mean_bps.max(summary.arrived_bps) } else { summary.mean_bps };
        let is_empty = standing <= self.standing_threshold();
        // A trial sends less than the path carries.
        if summary.app_limited || is_empty || was_trial {
            self.bandwidth_bps += ((mean - self.bandwidth_bps) / 2.0).max(0.0);
        } else {
            self.bandwidth_bps += (mean - self.bandwidth_bps) / 2.0;
        }
        if summary.app_limited {
            self.settle();
            return;
        }
        let long_queue = self.long_queue() + self.floor;
        self.rivals.on_epoch(summary, self.smoothed_rtt, self.cruise_gain, self.last_delay_min, long_queue, self.bandwidth_bps);
        let wanted = self.wanted_delay();
        if standing > wanted {
            let gain = drain_gain(standing, wanted, summary.length, self.step(wanted, summary.length));
            // Who gives way to a queue that does not fall ends with nothing.
            let least = if self.mode.contests() && self.rivals.resist() { LEAST_HELD_GAIN } else { 0.0 };
            self.cruise_gain = gain.max(least);
        } else if self.trials.running().is_some() {
            // Whether the queue is too short the trial tells that has begun.
            self.cruise_gain = 1.0;
        } else if self.loss.is_exceeded(summary.loss, self.packets(summary)) {
            self.note_overflow();
            self.cruise_gain = 1.0;
        } else {
            // A path that carries more than when its queue overflowed is another path.
            let outgrown = self.bandwidth_bps > self.overflow_bps * OUTGROWN;
            self.raise = if outgrown { MAX_RAISE } else { (self.raise * RAISE_RECOVERY).min(MAX_RAISE) };
            self.cruise_gain = raise_gain(standing, wanted, self.raise.min(self.step(wanted, summary.length)));
        }
        self.empty_epochs = if is_empty { self.empty_epochs + 1 } else { 0 };
    }

    /// The queue is too short for what is wanted.
    fn note_overflow(&mut self) {
        self.raise = (self.raise / 2.0).max(LEAST_RAISE);
        self.overflow_bps = self.bandwidth_bps;
    }

    /// By how much the rate may change in an epoch: news of the last change must have come before the queue is far off.
    fn step(&self, wanted: Duration, epoch: Duration) -> f64 {
        // docs/controllers/fair.md: 1.5 x wanted / (round trip + epoch)
        (1.5 * wanted.as_secs_f64() / (self.min_rtt() + epoch).as_secs_f64()).clamp(LEAST_RAISE, MAX_RAISE)
    }

    fn wanted_delay(&self) -> Duration {
        let (least, most) = self.mode.queue_parts();
        let (least, most) = (self.min_rtt().mul_f64(least), self.min_rtt().mul_f64(most));
        // Half as much again as what counts as empty, or there would be nothing between the two.
        wanted_delay(self.mode, self.whole_bps()).max(least).min(most).max(self.standing_threshold() * 3 / 2)
    }

    /// A delay that comes at once, and then neither rises nor falls although we send less, is the path's and no queue to drain.
    fn adopt_delay(&mut self, summary: &Summary) {
        self.floor = self.floor.min(summary.delay_min);
        // A quarter of the jitter is what is left of it in the smallest delay of an epoch.
        let margin = summary.length.mul_f64(FLAT_SLOPE).max(self.jitter() / 4);
        let is_flat = summary.delay_min.abs_diff(self.last_delay_min) <= margin;
        let stays = is_flat && self.cruise_gain <= LESS && self.since_step <= STEP_EPOCHS;
        self.flat_epochs = if stays { self.flat_epochs + 1 } else { 0 };
        if self.flat_epochs >= FLAT_EPOCHS {
            (self.floor, self.flat_epochs) = (summary.delay_min, 0);
        }
    }

    /// Sending more than arrives builds no queue: there is room.
    pub(super) fn has_room(&self) -> bool {
        self.empty_epochs >= self.room_epochs && !self.overflows()
    }

    /// The queue has overflowed of late before it was as long as wanted: only an attempt tells whether there is room.
    pub(super) fn overflows(&self) -> bool {
        self.raise < MAX_RAISE / 2.0
    }

    pub(super) fn long_queue(&self) -> Duration {
        // Beyond what a few packets make on slow paths, and jitter.
        (self.min_rtt() / 8).max(LONG_QUEUE).max(self.packets_time(4)).max(self.jitter() * 3)
    }

    /// How long so many packets take at the bandwidth.
    fn packets_time(&self, packets: u64) -> Duration {
        BitRate::from_bps(self.bandwidth_bps as u64).time_for(self.packet * packets).min(UNMEASURED_RTT)
    }

    /// The smallest round-trip time of the last 10 s is the path's.
    pub(super) fn renew_min_rtt(&mut self, now: Time, min_rtt: Duration) {
        (self.min_rtt, self.min_rtt_known, self.min_rtt_at) = (Some(min_rtt), true, now);
    }

    /// Back to sending what arrives.
    fn settle(&mut self) {
        self.cruise_gain = 1.0;
        self.empty_epochs = 0;
    }

    /// Cruise begins with what arrives, not made up for loss: for an epoch what is lost then is the path's own.
    pub(super) fn enter_cruise(&mut self, now: Time) {
        self.settle();
        self.rivals.restart();
        self.test_loss(now);
    }

    /// The search is over. A sample is the mean over the round trip before its packet left, in which the rate was three times as much at the
    /// end as at the beginning: only those of the next round trip show all that arrives.
    pub(super) fn end_search(&mut self, now: Time) {
        self.search_until = now + self.min_rtt() + self.queue_delay();
    }

    /// Startup has ended, perhaps for a host that was busy for a moment: the first epoch without a queue is enough for an attempt.
    pub(super) fn expect_room(&mut self) {
        if self.min_rtt() >= LONG_PATH {
            self.room_epochs = 1;
        }
    }

    pub(super) fn enter_up(&mut self, now: Time) {
        self.trials.take();
        self.room_epochs = ROOM_EPOCHS;
        self.before_up_bps = self.bandwidth_bps;
        self.restart_epoch(now);
    }

    /// The last attempt at more bandwidth brought much.
    pub(super) fn has_gained(&self) -> bool {
        // More than the first step of an attempt gives.
        self.bandwidth_bps > self.before_up_bps * 1.2
    }

    pub(super) fn restart_epoch(&mut self, now: Time) {
        self.epoch = Epoch::new(now);
    }

    pub(super) fn on_outage(&mut self) {
        // As CUBIC cuts, RFC 9438 4.6.
        self.bandwidth_bps *= 0.7;
        self.settle();
    }

    /// Marks in cruise: less for the rest of the epoch.
    pub(super) fn hold_back(&mut self) {
        // As much less as makes a queue of ours fall visibly.
        self.cruise_gain = self.cruise_gain.min(0.95);
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

    /// What has been seen to arrive.
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
        self.loss.ratio()
    }

    pub(super) fn cruise_gain(&self) -> f64 {
        self.cruise_gain
    }

    pub(super) fn jitter(&self) -> Duration {
        self.jitter.estimate()
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
        let wanted = wanted_delay(self.mode, self.whole_bps());
        // Two reports of the receiver apart; half as much again as jitter, for it is an estimate.
        (self.min_rtt() / 32).min(wanted / 2).max(LEAST_STANDING).max(self.packets_time(1)).max(self.jitter() * 3 / 2)
    }

    pub(super) fn packet_bytes(&self) -> f64 {
        self.packet.as_u64() as f64
    }

    /// Somebody else keeps the queue long.
    pub(super) fn is_contested(&self) -> bool {
        let pauses = self.lull.is_some_and(|lull| lull.level > self.min_rtt() / 2);
        self.mode.contests() && (self.rivals.are_there() || pauses)
    }

    pub(super) fn rivals(&self) -> &Rivals {
        &self.rivals
    }
}

/// A train of half a millisecond takes that long to arrive.
const LEAST_STANDING: Duration = Duration::from_micros(600);
/// Four times what a flow of 100 Mbit/s wants.
const LONG_QUEUE: Duration = Duration::from_millis(12);
/// Beside a queue that does not fall: less by so little that the part stays.
const LEAST_HELD_GAIN: f64 = 0.99;
/// Of an epoch: a fifth of what a queue of ours falls by at a gain of 0.95.
const FLAT_SLOPE: f64 = 0.01;
/// One epoch may be flat by chance, and a second one.
const FLAT_EPOCHS: u32 = 3;
/// After the delay has risen at once; what stands for longer and falls no more came otherwise.
const STEP_EPOCHS: u32 = 12;
/// Gain at which a queue of ours would fall visibly.
const LESS: f64 = 0.95;
const NO_JITTER: Duration = Duration::from_millis(1);
/// Single late packets are ignored, and up to three in a row.
const RECENT: usize = 4;
/// Before anything is measured; the long paths that this is for have more.
const UNMEASURED_RTT: Duration = Duration::from_millis(100);
/// On short paths: in less, too few samples come for a mean that does not jump.
const CRUISE_EPOCH: Duration = Duration::from_millis(100);
/// Shorter than in cruise, for an attempt is there to be found out about soon.
const UP_EPOCH: Duration = Duration::from_millis(30);
/// One without a queue may be chance.
const ROOM_EPOCHS: u32 = 4;
/// draft-ietf-ccwg-bbr 2.14.1: routes change; a queue may have hidden the smallest for as long.
pub(super) const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// An epoch; faster, and news of the change would come too late.
const MAX_RAISE: f64 = 0.1;
/// An epoch; less would hardly show in what arrives.
const LEAST_RAISE: f64 = 0.01;
/// Twice as much after 70 epochs.
const RAISE_RECOVERY: f64 = 1.01;
/// More than the tenth by which an epoch can raise it.
const OUTGROWN: f64 = 1.125;
