//! Whether somebody else keeps the queue long, and what was ours before.
//!
//! Flows of this kind make queues that are short, and drain longer ones together. A long queue that does not fall although we send less,
//! for longer than the news of it takes, is kept up by a flow that sends until packets drop.

use std::time::Duration;

use super::epoch::Summary;

/// What is known of others on the path.
#[derive(Debug, Clone, Default)]
pub(super) struct Rivals {
    /// For how long the queue has been long without falling.
    held: Duration,
    /// The longest round trip in that time: news of what we do takes as long.
    round_trip: Duration,
    /// Bandwidth before that.
    before_bps: f64,
    /// Most bandwidth of late without a long queue.
    alone_bps: f64,
}

impl Rivals {
    /// An epoch of cruise is over, at this gain; `delay_before` is the shortest queue of the epoch before.
    pub(super) fn on_epoch(
        &mut self,
        summary: &Summary,
        round_trip: Duration,
        gain: f64,
        delay_before: Duration,
        long_queue: Duration,
        bandwidth_bps: f64,
    ) {
        if summary.delay_min <= long_queue || summary.delay_min < delay_before / 2 {
            self.held = Duration::ZERO;
            if summary.delay_min <= long_queue {
                self.alone_bps = (self.alone_bps * ALONE_MEMORY).max(bandwidth_bps);
            }
            return;
        }
        if self.held.is_zero() {
            (self.before_bps, self.round_trip) = (bandwidth_bps, Duration::ZERO);
        }
        self.round_trip = self.round_trip.max(round_trip);
        // What we alone would shorten it by.
        let ours = summary.length.mul_f64((1.0 - gain).max(0.0));
        let fall = delay_before.saturating_sub(summary.delay_min);
        // Nobody who sends on lets it fall so fast.
        if fall >= summary.length / 4 {
            self.held = Duration::ZERO;
        } else if !ours.is_zero() && fall >= ours / 2 {
            self.held = self.held.saturating_sub(summary.length * 2);
        } else {
            self.held += summary.length;
        }
    }

    /// A new cruise, a new look.
    pub(super) fn restart(&mut self) {
        self.held = Duration::ZERO;
    }

    /// The queue ought to have fallen.
    pub(super) fn resist(&self) -> bool {
        // Two of the four round trips and of the nine epochs, that is four of these.
        self.held > (self.round_trip * 2).max(LEAST_HELD * 2 / 5)
    }

    /// It will not fall.
    pub(super) fn are_there(&self) -> bool {
        // docs/controllers/fair.md: four of the longest round trips meanwhile, and 0.9 s.
        self.held > (self.round_trip * 4).max(LEAST_HELD)
    }

    /// What arrived before we began to give way, and whether that is known to be an equal part: of what we had alone, half is.
    pub(super) fn part(&self, bandwidth_bps: f64) -> (f64, bool) {
        let before = self.before_bps.max(bandwidth_bps);
        // A tenth more is no other rate.
        if self.alone_bps > bandwidth_bps * 1.1 { (before.min(self.alone_bps / 2.0), true) } else { (before, false) }
    }
}

/// Nine epochs of cruise, on short paths.
const LEAST_HELD: Duration = Duration::from_millis(900);
/// An epoch: half after 700.
const ALONE_MEMORY: f64 = 0.999;
