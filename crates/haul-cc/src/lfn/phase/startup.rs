//! Startup: three times as much each round trip, until a queue forms.
//!
//! The rate sample of an acknowledgement is the mean over the round trip before the packet left, so a growth of x a round trip takes a
//! pacing gain of x^2 ln(x) / (x - 1), and keeps x times the product of that rate and the round trip in flight. When a queue has formed
//! for the first time its news takes a round trip, in which (x - 1) / ln(x) - 1 = 0.8 of the path's product of bandwidth and delay queue up.

use std::time::Duration;

use haul_units::Bytes;

use crate::AckSample;
use crate::lfn::law::Flow;
use crate::lfn::measure::{Buildup, Summary};

/// The search for the bandwidth.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Startup {
    /// Bandwidth at the last round that grew.
    best_bps: f64,
    flat_rounds: u32,
    /// Largest lasting delay in the rounds before the last, and in the last: noise, for the rate still grew.
    noise: Duration,
    round_delay: Duration,
    /// Bytes delivered or lost when the first packet of the search is the next to be.
    from: Bytes,
    buildup: Buildup,
    /// It ended for a delay, and this was it.
    ended_by: Option<Duration>,
}

impl Startup {
    pub(in crate::lfn) fn new() -> Self {
        Self {
            best_bps: 0.0,
            flat_rounds: 0,
            noise: Duration::ZERO,
            round_delay: Duration::ZERO,
            from: Bytes::ZERO,
            buildup: Buildup::default(),
            ended_by: None,
        }
    }

    /// Trains have gone before it: they queued up behind each other, which is neither a path that is full nor noise.
    pub(in crate::lfn) fn note_trains(&mut self, ack: &AckSample) {
        self.from = ack.delivered + ack.lost_total + ack.in_flight;
    }

    /// True when the path is full.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, summary: Option<&Summary>, flow: &Flow) -> bool {
        let is_own = ack.delivered + ack.lost_total > self.from;
        let delay = if is_own { flow.path.queue_delay() } else { Duration::ZERO };
        // The least that is seen of a queue, and twice what is noise.
        let threshold = flow.path.queue_threshold(32).max(self.noise.max(flow.path.jitter()) * 2);
        if self.buildup.on_delay(ack.now, delay, threshold, flow.path.min_rtt()) {
            self.ended_by = Some(delay);
            return true;
        }
        let mut grew = true;
        if ack.round_start && !ack.rate.is_some_and(|sample| sample.app_limited) {
            grew = flow.path.bandwidth_bps() >= self.best_bps * FULL_GROWTH;
            if grew {
                self.best_bps = flow.path.bandwidth_bps();
                self.flat_rounds = 0;
                self.noise = self.noise.max(self.round_delay);
            } else {
                self.flat_rounds += 1;
            }
            self.round_delay = Duration::ZERO;
        }
        self.round_delay = self.round_delay.max(delay);
        // Much is lost and nothing gained: a queue too short to show as delay has overflowed. More than half is lost: gained or not.
        let excess = summary.map_or(0.0, |s| s.loss - flow.path.base_loss());
        let flood = excess > FLOOD_LOSS && summary.is_some_and(|s| flow.path.packets(s) >= FLOOD_PKTS);
        let overflow = excess > OVERFLOW_LOSS && !grew || flood;
        self.flat_rounds >= FULL_ROUNDS || overflow
    }

    /// A delay has ended it, and no loss nor a rate that no longer grew.
    pub(in crate::lfn) fn has_seen_delay(&self) -> bool {
        self.ended_by.is_some()
    }

    /// The delay was no queue: on with the search, and such delays do not end it again.
    pub(in crate::lfn) fn after_stall(self, flow: &Flow) -> Self {
        let stall = self.ended_by.unwrap_or_default().min(flow.path.min_rtt() / LARGEST_NOISE);
        Self { noise: self.noise.max(stall), buildup: Buildup::default(), ended_by: None, ..self }
    }
}

/// x = 3
pub(in crate::lfn) const STARTUP_GAIN: f64 = 4.94;
/// draft-ietf-ccwg-bbr 5.3.1.2: the pipe is full after three rounds that grew by less than a quarter.
const FULL_GROWTH: f64 = 1.25;
/// draft-ietf-ccwg-bbr 5.3.1.2
const FULL_ROUNDS: u32 = 3;
/// Part of the round trip: a queue of twice that is one, whatever stalls were seen.
const LARGEST_NOISE: u32 = 8;
/// As much as is taken for the path's own without a test.
const OVERFLOW_LOSS: f64 = 0.15;
const FLOOD_LOSS: f64 = 0.5;
/// More than a burst of losses.
const FLOOD_PKTS: f64 = 128.0;
