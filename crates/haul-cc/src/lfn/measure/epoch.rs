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
    rates: Rates,
    /// Of samples that the application has limited.
    limited_rates: Rates,
    delay_min: Option<Duration>,
    delay_max: Duration,
}

/// Rate samples, for their mean.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    sum_bps: f64,
    count: u32,
}

/// An epoch that is over.
#[derive(Debug, Clone, Copy)]
pub(in crate::lfn) struct Summary {
    /// How long it was.
    pub length: Duration,
    /// Mean of its rate samples: of those that the path has limited, where these are enough.
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
    /// Too few samples were limited by the path, and by the application the others.
    pub app_limited: bool,
}

impl Epoch {
    /// An epoch that begins at `start`; acknowledgements before do not count.
    pub(in crate::lfn) fn new(start: Time) -> Self {
        Self {
            start,
            totals: None,
            rates: Rates::default(),
            limited_rates: Rates::default(),
            delay_min: None,
            delay_max: Duration::ZERO,
        }
    }

    /// Collects; gives the summary, and starts anew, once the epoch is as long as asked for and has enough samples.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, length: Duration) -> Option<Summary> {
        if ack.now < self.start {
            return None;
        }
        let (delivered, lost) = *self.totals.get_or_insert((ack.delivered.saturating_sub(ack.acked), ack.lost_total));
        if let Some(sample) = ack.rate {
            let rates = if sample.app_limited { &mut self.limited_rates } else { &mut self.rates };
            rates.sum_bps += sample.rate.as_bps() as f64;
            rates.count += 1;
        }
        if let Some(delay) = ack.queue_delay {
            self.delay_min = Some(self.delay_min.map_or(delay, |min| min.min(delay)));
            self.delay_max = self.delay_max.max(delay);
        }
        let passed = ack.now.since(self.start);
        if passed < length || self.rates.count + self.limited_rates.count < MIN_SAMPLES {
            return None;
        }
        let app_limited = self.limited_rates.count > 0 && self.rates.count < MIN_SAMPLES;
        if app_limited {
            self.rates.sum_bps += self.limited_rates.sum_bps;
            self.rates.count += self.limited_rates.count;
        }
        let delivered = ack.delivered.saturating_sub(delivered);
        // Spurious losses are taken off the total again, which may bring it below what it was.
        let lost = ack.lost_total.saturating_sub(lost);
        let bytes = delivered + lost;
        let summary = Summary {
            length: passed,
            mean_bps: self.rates.sum_bps / f64::from(self.rates.count),
            arrived_bps: delivered.as_u64() as f64 * 8.0 / passed.as_secs_f64().max(1e-6),
            delay_min: self.delay_min.unwrap_or_default(),
            delay_max: self.delay_max,
            loss: lost.as_u64() as f64 / (bytes.as_u64() as f64).max(1.0),
            bytes,
            app_limited,
        };
        *self = Self::new(ack.now);
        self.totals = Some((ack.delivered, ack.lost_total));
        Some(summary)
    }
}

/// A mean of fewer is that of a moment.
const MIN_SAMPLES: u32 = 4;

#[cfg(test)]
mod tests {
    use haul_units::BitRate;

    use super::*;
    use crate::RateSample;

    const LENGTH: Duration = Duration::from_millis(100);

    /// An epoch with a sample each millisecond, at 100 Mbit/s, and at 10 Mbit/s where the application limits it.
    fn summary(limited: impl Fn(u64) -> bool) -> Summary {
        let mut epoch = Epoch::new(Time::ZERO);
        for n in 1.. {
            let now = Time::ZERO + Duration::from_millis(n);
            let app_limited = limited(n);
            let rate = Some(RateSample {
                rate: BitRate::mbps(if app_limited { 10 } else { 100 }),
                sent: BitRate::mbps(100),
                interval: Duration::from_millis(1),
                app_limited,
                in_flight_at_send: Bytes::ZERO,
                lost: Bytes::ZERO,
                delivered: Bytes(12_500),
            });
            let ack = AckSample {
                now,
                acked: Bytes(12_500),
                delivered: Bytes(12_500 * n),
                lost_total: Bytes::ZERO,
                in_flight: Bytes::ZERO,
                rtt: None,
                smoothed_rtt: LENGTH / 100,
                min_rtt: LENGTH / 100,
                queue_delay: None,
                rate,
                round: n,
                round_start: true,
            };
            if let Some(summary) = epoch.on_ack(&ack, LENGTH) {
                return summary;
            }
        }
        unreachable!("an epoch ends")
    }

    #[test]
    fn a_pause_in_an_epoch_of_many_round_trips_says_nothing_of_the_others() {
        let summary = summary(|n| n < 10);
        assert!(!summary.app_limited);
        assert!((summary.mean_bps - 1e8).abs() < 1.0, "{}", summary.mean_bps);
    }

    #[test]
    fn an_epoch_with_next_to_nothing_but_pauses_is_a_lower_bound() {
        let summary = summary(|n| n > 3);
        assert!(summary.app_limited);
        assert!((1e7..2e7).contains(&summary.mean_bps), "{}", summary.mean_bps);
    }
}
