//! Means and extremes over an epoch: about one round trip, long enough to say something.

use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::AckSample;

/// What is collected while an epoch lasts.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Epoch {
    start: Time,
    /// Totals at the start; unknown until the first acknowledgement.
    totals: Option<(Bytes, Bytes)>,
    rate_sum: f64,
    rate_samples: u32,
    delay_min: Option<Duration>,
    delay_max: Duration,
    app_limited: bool,
}

/// An epoch that is over.
#[derive(Debug, Clone, Copy)]
pub(in crate::lfn) struct Summary {
    /// How long it was.
    pub length: Duration,
    /// Mean of its rate samples.
    pub mean_bps: f64,
    /// Delivered over its length by our clock: a measure without bias, where the samples' is towards less.
    pub arrived_bps: f64,
    /// Smallest and largest queueing delay.
    pub delay_min: Duration,
    pub delay_max: Duration,
    /// Lost, as a part of lost and delivered.
    pub loss: f64,
    /// Lost and delivered.
    pub bytes: Bytes,
    /// At least one sample was limited by the application.
    pub app_limited: bool,
}

impl Epoch {
    /// An epoch that begins at `start`; acknowledgements before do not count.
    pub(in crate::lfn) fn new(start: Time) -> Self {
        Self {
            start,
            totals: None,
            rate_sum: 0.0,
            rate_samples: 0,
            delay_min: None,
            delay_max: Duration::ZERO,
            app_limited: false,
        }
    }

    /// Collects; gives the summary, and starts anew, once the epoch is as long as asked for and has enough samples.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, length: Duration) -> Option<Summary> {
        if ack.now < self.start {
            return None;
        }
        let (delivered, lost) = *self.totals.get_or_insert((ack.delivered.saturating_sub(ack.acked), ack.lost_total));
        if let Some(sample) = ack.rate {
            self.rate_sum += sample.rate.as_bps() as f64;
            self.rate_samples += 1;
            self.app_limited |= sample.app_limited;
        }
        if let Some(delay) = ack.queue_delay {
            self.delay_min = Some(self.delay_min.map_or(delay, |min| min.min(delay)));
            self.delay_max = self.delay_max.max(delay);
        }
        let passed = ack.now.since(self.start);
        if passed < length || self.rate_samples < MIN_SAMPLES {
            return None;
        }
        let delivered = ack.delivered.saturating_sub(delivered);
        // Spurious losses are taken off the total again, which may bring it below what it was.
        let lost = ack.lost_total.saturating_sub(lost);
        let bytes = delivered + lost;
        let summary = Summary {
            length: passed,
            mean_bps: self.rate_sum / f64::from(self.rate_samples),
            arrived_bps: delivered.as_u64() as f64 * 8.0 / passed.as_secs_f64().max(1e-6),
            delay_min: self.delay_min.unwrap_or_default(),
            delay_max: self.delay_max,
            loss: lost.as_u64() as f64 / (bytes.as_u64() as f64).max(1.0),
            bytes,
            app_limited: self.app_limited,
        };
        *self = Self::new(ack.now);
        self.totals = Some((ack.delivered, ack.lost_total));
        Some(summary)
    }
}

/// A mean of fewer is that of a moment.
const MIN_SAMPLES: u32 = 4;
