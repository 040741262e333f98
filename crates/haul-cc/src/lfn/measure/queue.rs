//! The queue: delay by the receiver's clock beyond the smallest, without what belongs to the path.
//!
//! A delay that comes at once, and then neither rises nor falls although we send less, is no queue to drain: a route has changed, or a host
//! has become slower. It becomes the *persistent delay*, and only what exceeds it is a queue.

use std::time::Duration;

use super::epoch::Summary;

/// What is known of the queueing delay.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Queue {
    /// The last ones: their minimum ignores single late packets.
    recent: [Duration; RECENT],
    /// The smallest of the last epoch.
    last_min: Duration,
    persistent: Duration,
    /// Epochs in a row that say that the delay is the path's.
    flat_epochs: u32,
    /// Epochs since the delay has risen at once.
    since_step: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            recent: [Duration::ZERO; RECENT],
            last_min: Duration::ZERO,
            persistent: Duration::ZERO,
            flat_epochs: 0,
            since_step: u32::MAX,
        }
    }
}

impl Queue {
    /// Acknowledgements that [`Queue::delay`] looks at.
    pub(in crate::lfn) const MEMORY: u32 = RECENT as u32;

    pub(super) fn on_delay(&mut self, delay: Duration) {
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = delay;
    }

    /// Queueing delay that has lasted for some acknowledgements.
    pub(super) fn delay(&self) -> Duration {
        self.recent.iter().min().copied().unwrap_or_default().saturating_sub(self.persistent)
    }

    /// The queue that stood for a whole epoch.
    pub(in crate::lfn) fn standing(&self, summary: &Summary) -> Duration {
        summary.delay_min.saturating_sub(self.persistent)
    }

    pub(in crate::lfn) const fn persistent_delay(&self) -> Duration {
        self.persistent
    }

    /// The smallest delay of the epoch before this one.
    pub(in crate::lfn) const fn last_min(&self) -> Duration {
        self.last_min
    }

    /// Whether the delay of an epoch is the path's; `is_less`: less was sent than arrives, by so much that a queue of ours would have fallen visibly.
    pub(super) fn adopt(&mut self, summary: &Summary, is_less: bool, jitter: Duration) {
        self.persistent = self.persistent.min(summary.delay_min);
        // A quarter of the jitter is what is left of it in the smallest delay of an epoch.
        let margin = summary.length.mul_f64(FLAT_SLOPE).max(jitter / 4);
        let is_flat = summary.delay_min.abs_diff(self.last_min) <= margin;
        let stays = is_flat && is_less && self.since_step <= STEP_EPOCHS;
        self.flat_epochs = if stays { self.flat_epochs + 1 } else { 0 };
        if self.flat_epochs >= FLAT_EPOCHS {
            (self.persistent, self.flat_epochs) = (summary.delay_min, 0);
        }
    }

    /// An epoch is over; a rise by more than `long` at once is a step.
    pub(super) fn end_epoch(&mut self, summary: &Summary, long: Duration) {
        let has_stepped = summary.delay_min > self.last_min + long;
        self.since_step = if has_stepped { 0 } else { self.since_step.saturating_add(1) };
        self.last_min = summary.delay_min;
    }
}

/// Single late packets are ignored, and up to three in a row.
const RECENT: usize = 4;
/// Of an epoch: a fifth of what a queue of ours falls by at a gain of 0.95.
const FLAT_SLOPE: f64 = 0.01;
/// One epoch may be flat by chance, and a second one.
const FLAT_EPOCHS: u32 = 3;
/// After the delay has risen at once; what stands for longer and falls no more came otherwise.
const STEP_EPOCHS: u32 = 12;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn epoch(delay_ms: u64) -> Summary {
        Summary {
            length: ms(100),
            mean_bps: 1e8,
            arrived_bps: 1e8,
            delay_min: ms(delay_ms),
            delay_max: ms(delay_ms),
            loss: 0.0,
            bytes: Bytes(1_250_000),
            app_limited: false,
        }
    }

    /// What is adopted after epochs of these delays, in which less is sent than arrives.
    fn persistent(delays_ms: impl IntoIterator<Item = u64>, is_less: bool) -> Duration {
        let mut queue = Queue::default();
        for delay in delays_ms {
            let summary = epoch(delay);
            queue.adopt(&summary, is_less, Duration::ZERO);
            queue.end_epoch(&summary, ms(12));
        }
        queue.persistent_delay()
    }

    #[test]
    fn a_step_that_stays_is_the_paths() {
        assert_eq!(persistent([0, 0, 40, 40, 40, 40, 40], true), ms(40));
        assert_eq!(persistent([0, 0, 40, 40, 40, 40, 40, 15], true), ms(15), "no longer, once it falls");
    }

    #[test]
    fn a_queue_that_falls_or_that_we_feed_is_none() {
        assert_eq!(persistent([0, 0, 40, 35, 30, 25, 20, 15, 10], true), ms(0));
        assert_eq!(persistent([0, 0, 40, 40, 40, 40, 40], false), ms(0), "nothing was tried");
        assert_eq!(persistent((0..20).map(|n| n * 2).chain([40; 10]), true), ms(0), "it came slowly, as queues do");
    }

    #[test]
    fn late_packets_alone_are_no_queue() {
        let mut queue = Queue::default();
        for delay in [0, 30, 30, 30, 0, 30, 30] {
            queue.on_delay(ms(delay));
        }
        assert_eq!(queue.delay(), Duration::ZERO);
        queue.on_delay(ms(30));
        queue.on_delay(ms(20));
        assert_eq!(queue.delay(), ms(20));
    }
}
