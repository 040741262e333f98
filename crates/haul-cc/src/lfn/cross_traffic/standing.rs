//! Elastic cross traffic: whether somebody else keeps the queue standing, and what was ours before.
//!
//! Flows of this kind make queues that are short, and drain longer ones together. A long queue that does not fall although we send less,
//! for longer than the news of it takes, is kept up by a flow that sends until packets drop.

use std::time::Duration;

use crate::lfn::measure::{Path, Summary};

/// A queue that stands although we send less.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct StandingQueue {
    /// For how long the queue has been long without falling.
    held: Duration,
    /// The longest round trip in that time: news of what we do takes as long.
    round_trip: Duration,
    /// Bandwidth before that.
    before_bps: f64,
    /// Most bandwidth of late without a long queue.
    alone_bps: f64,
}

impl StandingQueue {
    /// An epoch of cruise is over, in which this part of what arrives was sent.
    pub(super) fn on_epoch(&mut self, summary: &Summary, gain: f64, path: &Path) {
        let delay_before = path.queue.last_min();
        let long_queue = path.long_queue() + path.queue.persistent_delay();
        if summary.delay_min <= long_queue || summary.delay_min < delay_before / 2 {
            self.held = Duration::ZERO;
            if summary.delay_min <= long_queue {
                self.alone_bps = (self.alone_bps * ALONE_MEMORY).max(path.bandwidth_bps());
            }
            return;
        }
        if self.held.is_zero() {
            (self.before_bps, self.round_trip) = (path.bandwidth_bps(), Duration::ZERO);
        }
        self.round_trip = self.round_trip.max(path.smoothed_rtt());
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
    pub(in crate::lfn) fn resists(&self) -> bool {
        // Two of the four round trips and of the nine epochs, that is four of these.
        self.held > (self.round_trip * 2).max(LEAST_HELD * 2 / 5)
    }

    /// It will not fall.
    pub(super) fn is_kept_up(&self) -> bool {
        // docs/controllers/fair.md: four of the longest round trips meanwhile, and 0.9 s.
        self.held > (self.round_trip * 4).max(LEAST_HELD)
    }

    /// What arrived before we began to give way, and whether that is known to be an equal part: of what we had alone, half is.
    pub(in crate::lfn) fn part(&self, bandwidth_bps: f64) -> (f64, bool) {
        let before = self.before_bps.max(bandwidth_bps);
        // A tenth more is no other rate.
        if self.alone_bps > bandwidth_bps * 1.1 { (before.min(self.alone_bps / 2.0), true) } else { (before, false) }
    }
}

/// Nine epochs of cruise, on short paths.
const LEAST_HELD: Duration = Duration::from_millis(900);
/// An epoch: half after 700.
const ALONE_MEMORY: f64 = 0.999;
