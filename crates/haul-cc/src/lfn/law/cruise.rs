//! Cruise: the rate follows what arrives, a little above it while the queue is shorter than the flow wants, a little below while it is longer.

use std::time::Duration;

use haul_units::{BitRate, Time};

use super::Flow;
use super::share::{drain_gain, raise_gain, wanted_delay};
use crate::lfn::cross_traffic::Verdict;
use crate::lfn::measure::Summary;

impl Flow {
    /// An epoch is over; `is_held`: a trial held the rate back, or much is lost and it is not known yet what it is.
    pub(super) fn cruise(&mut self, summary: &Summary, is_held: bool) {
        self.path.adopt_delay(summary, self.cruise_gain <= LESS);
        let standing = self.path.queue.standing(summary);
        // The samples are bounded by the rate of sending, which is lower than what arrives while a long queue is emptied.
        let is_draining = self.cruise_gain < LESS && standing > summary.length / 2;
        let mean = if is_draining || self.path.jitter() > NO_JITTER {
            summary.mean_bps.max(summary.arrived_bps)
        } else {
            summary.mean_bps
        };
        let is_empty = standing <= self.standing_threshold();
        if let Some(bps) = self.room.back_to(summary.arrived_bps).filter(|_| self.path.exceeds_loss(summary)) {
            self.path.bandwidth.limit(bps);
        }
        // A trial sends less than the path carries.
        self.path.bandwidth.follow(mean, summary.app_limited || is_empty || is_held);
        if summary.app_limited {
            self.settle();
            return;
        }
        self.cross.on_epoch(summary, self.cruise_gain, &self.path);
        let wanted = self.wanted_delay();
        if standing > wanted {
            let gain = drain_gain(standing, wanted, summary.length, self.step(wanted, summary.length));
            // Who gives way to a queue that does not fall ends with nothing.
            let least = if self.mode.competes() && self.cross.is_suspected() { LEAST_HELD_GAIN } else { 0.0 };
            self.cruise_gain = gain.max(least);
        } else if self.trials.running().is_some() {
            // Whether the queue is too short the trial tells that has begun.
            self.cruise_gain = 1.0;
        } else if self.path.exceeds_loss(summary) {
            self.note_overflow();
            self.cruise_gain = 1.0;
        } else {
            // A path that carries more than when its queue overflowed is another path.
            let outgrown = self.path.bandwidth_bps() > self.overflow_bps * OUTGROWN;
            self.raise = if outgrown { MAX_RAISE } else { (self.raise * RAISE_RECOVERY).min(MAX_RAISE) };
            self.cruise_gain = raise_gain(standing, wanted, self.raise.min(self.step(wanted, summary.length)));
        }
        self.empty_epochs = if is_empty { self.empty_epochs + 1 } else { 0 };
    }

    /// The queue is too short for what is wanted.
    pub(super) fn note_overflow(&mut self) {
        self.raise = (self.raise / 2.0).max(LEAST_RAISE);
        self.overflow_bps = self.path.bandwidth_bps();
    }

    /// The receiver has made room for a rate.
    pub(in crate::lfn) fn offer_room(&mut self, now: Time, rate: BitRate) {
        self.room.offer(now, rate, self.path.min_rtt());
    }

    /// Room that was made is still to be taken.
    pub(in crate::lfn) const fn is_offered_room(&self) -> bool {
        self.room.is_offered()
    }

    /// The queue is as short as wanted: nobody else's bytes stand where room was made.
    pub(in crate::lfn) fn is_clear(&self) -> bool {
        self.path.queue_delay() <= self.wanted_delay()
    }

    /// Takes of the room that was made what can be had: what overflowed was filled by those who give way now.
    pub(in crate::lfn) fn take_room(&mut self, now: Time) -> Option<f64> {
        let bps = self.room.take(now, self.path.bandwidth_bps(), self.path.min_rtt())?;
        self.path.bandwidth.raise(bps);
        self.raise = MAX_RAISE;
        self.settle();
        Some(bps)
    }

    /// By how much the rate may change in an epoch: news of the last change must have come before the queue is far off.
    fn step(&self, wanted: Duration, epoch: Duration) -> f64 {
        // docs/controllers/fair.md: 1.5 x wanted / (round trip + epoch)
        (1.5 * wanted.as_secs_f64() / (self.path.min_rtt() + epoch).as_secs_f64()).clamp(LEAST_RAISE, MAX_RAISE)
    }

    pub(super) fn wanted_delay(&self) -> Duration {
        let (least, most) = self.mode.queue_parts();
        let (least, most) = (self.path.min_rtt().mul_f64(least), self.path.min_rtt().mul_f64(most));
        // Half as much again as what counts as empty, or there would be nothing between the two.
        wanted_delay(self.mode, self.whole_bps()).max(least).min(most).max(self.standing_threshold() * 3 / 2)
    }

    /// A delay beyond this is a queue that stands.
    pub(in crate::lfn) fn standing_threshold(&self) -> Duration {
        let wanted = wanted_delay(self.mode, self.whole_bps());
        // Two reports of the receiver apart.
        let least = (self.path.min_rtt() / 32).min(wanted / 2).max(LEAST_STANDING);
        // Half as much again as jitter, for it is an estimate.
        least.max(self.path.packets_time(1)).max(self.path.jitter() * 3 / 2)
    }

    /// Sending more than arrives builds no queue: there is room.
    pub(in crate::lfn) fn has_room(&self) -> bool {
        self.empty_epochs >= self.room_epochs && !self.overflows()
    }

    /// The queue has overflowed of late before it was as long as wanted: only an attempt tells whether there is room.
    pub(in crate::lfn) fn overflows(&self) -> bool {
        self.raise < MAX_RAISE / 2.0
    }

    /// Somebody else keeps the queue long, and this mode holds its part.
    pub(in crate::lfn) fn has_competitors(&self) -> bool {
        self.mode.competes() && self.cross.verdict(&self.path) != Verdict::Alone
    }

    /// Back to sending what arrives.
    pub(super) const fn settle(&mut self) {
        self.cruise_gain = 1.0;
        self.empty_epochs = 0;
    }

    /// Marks in cruise: less for the rest of the epoch.
    pub(in crate::lfn) fn hold_back(&mut self) {
        self.cruise_gain = self.cruise_gain.min(LESS);
    }

    pub(in crate::lfn) const fn cruise_gain(&self) -> f64 {
        self.cruise_gain
    }
}

/// A train of half a millisecond takes that long to arrive.
const LEAST_STANDING: Duration = Duration::from_micros(600);
/// Beside a queue that does not fall: less by so little that the part stays.
const LEAST_HELD_GAIN: f64 = 0.99;
/// Gain at which a queue of ours would fall visibly.
const LESS: f64 = 0.95;
const NO_JITTER: Duration = Duration::from_millis(1);
/// An epoch; faster, and news of the change would come too late.
pub(super) const MAX_RAISE: f64 = 0.1;
/// An epoch; less would hardly show in what arrives.
const LEAST_RAISE: f64 = 0.01;
/// Twice as much after 70 epochs.
const RAISE_RECOVERY: f64 = 1.01;
/// More than the tenth by which an epoch can raise it.
const OUTGROWN: f64 = 1.125;
