//! Holding a window beside a flow that does not give way to loss.
//!
//! BBR keeps twice what its part of the bottleneck is over the smallest round-trip time in flight. With windows in products of bandwidth and
//! that time, ours w up to one and its part b, a full queue means 1 - b = w / (w + 2 b), so w + 2 b = 2: our part is w / 2 whatever else
//! happens, and cutting the window for loss only hands it over. With w = 1 each has half; a larger window lengthens the round trip that
//! BBR measures in its silences, and so what it keeps in flight. A queue of less than one product has room for half of path and queue.
//!
//! The window goes there in some round trips. It becomes smaller only while much is lost, for the other finds its new part after ten of
//! its rounds, and ends once no silence has been seen for longer than two intervals between them.

use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::AckSample;
use crate::lfn::cross_traffic::Silence;
use crate::lfn::measure::Path;

/// A window that is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// When the rival's last silence ended.
    seen: Time,
    carries_bps: f64,
    /// The window to be held.
    goal: f64,
    /// Totals of what was delivered and lost when loss was last looked at.
    looked: Time,
    delivered: Bytes,
    lost: Bytes,
}

impl Hold {
    /// After a silence, if the queue is long enough to be shared and there is something to gain; `longest` is the longest queue of late.
    pub(super) fn new(ack: &AckSample, silence: &Silence, window: f64, longest: Duration, path: &Path) -> Option<Self> {
        let min_rtt = path.min_rtt();
        if silence.level < min_rtt.mul_f64(LEAST_LEVEL) || longest < min_rtt.mul_f64(LEAST_QUEUE) {
            return None;
        }
        let mut hold =
            Self { seen: ack.now, carries_bps: 0.0, goal: 0.0, looked: ack.now, delivered: ack.delivered, lost: ack.lost_total };
        hold.on_silence(ack.now, silence, window, longest, path);
        (hold.goal > window).then_some(hold)
    }

    /// Another silence, another measurement.
    pub(super) fn on_silence(&mut self, now: Time, silence: &Silence, window: f64, longest: Duration, path: &Path) {
        self.seen = now;
        // Packets of ours that were dropped just before make it low.
        self.carries_bps = silence.carries_bps.max(self.carries_bps * FORGET);
        let half = path.min_rtt().min((path.min_rtt() + longest) / 2);
        self.goal = (self.carries_bps / 8.0 * half.as_secs_f64()).min(window * MOST_LEAP);
    }

    /// The window after so many round trips more; `None` when the rival is there no longer.
    pub(super) fn on_ack(&mut self, ack: &AckSample, window: f64, rounds: f64, path: &Path) -> Option<f64> {
        if ack.now.since(self.seen) > TWO_INTERVALS {
            return None;
        }
        if ack.now.since(self.looked) > ack.smoothed_rtt * LOOK_ROUNDS {
            self.look(ack, window, path);
        }
        let growth = (rounds / GROWTH_ROUNDS).exp();
        Some(if window < self.goal { (window * growth).min(self.goal) } else { (window / growth).max(self.goal) })
    }

    /// Less, while much is lost.
    fn look(&mut self, ack: &AckSample, window: f64, path: &Path) {
        let lost = ack.lost_total.saturating_sub(self.lost).as_u64() as f64;
        let all = ack.delivered.saturating_sub(self.delivered).as_u64() as f64 + lost;
        if lost > all * (2.0 * path.base_loss() + MUCH_LOSS) + 2.0 * path.packet_bytes() {
            self.goal = self.goal.min(window) * LESS;
        }
        (self.looked, self.delivered, self.lost) = (ack.now, ack.delivered, ack.lost_total);
    }
}

/// Of the smallest round-trip time: queues that are shorter BBR fills alone, whatever is lost.
const LEAST_LEVEL: f64 = 0.4;
/// Of the smallest round-trip time: to hold half of a shorter queue, of half a product, cost 15 to 20 % of all packets in simulation.
const LEAST_QUEUE: f64 = 0.7;
/// A silence.
const FORGET: f64 = 0.9;
/// A first measurement, of few packets, may be wrong.
const MOST_LEAP: f64 = 4.0;
/// BBR has its silences 10 s apart, and one may be hidden.
const TWO_INTERVALS: Duration = Duration::from_secs(22);
const LOOK_ROUNDS: u32 = 8;
/// Beyond what is lost by chance; two BBR flows beside each other drop less than a quarter of it.
const MUCH_LOSS: f64 = 0.15;
/// A tenth at a time: what is cut is handed over, and the other finds its new part after ten of its rounds.
const LESS: f64 = 0.9;
/// By e.
const GROWTH_ROUNDS: f64 = 16.0;
