//! Round-trip time of one path.
//!
//! Each acknowledgement gives at most one sample: an average smooths it, a windowed minimum remembers the empty queue.
//! Invariant: `min <= latest` after each sample. Source: RFC 9002 5.

use std::time::Duration;

use haul_units::Time;

use crate::windowed::WindowedMin;

/// Estimates the round-trip time of a path.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    var: Duration,
    min: WindowedMin<Duration>,
    samples: u64,
}

impl RttEstimator {
    /// An estimator that knows nothing yet: `initial` (RFC 9002 6.2.2: 333 ms) stands in until the first sample.
    pub fn new(initial: Duration) -> Self {
        Self { latest: initial, smoothed: initial, var: initial / 2, min: WindowedMin::new(MIN_WINDOW), samples: 0 }
    }

    /// A packet was acknowledged `latest` after it left; the receiver says it held the acknowledgement back for `ack_delay`.
    ///
    /// Returns the sample with that delay taken off. A delay that would bring it below the minimum is not believed.
    pub fn on_sample(&mut self, now: Time, latest: Duration, ack_delay: Duration) -> Duration {
        self.min.insert(now, latest);
        let min = self.min();
        // RFC 9002 5.3: adjusted_rtt = latest_rtt - ack_delay if that is not less than min_rtt
        let adjusted = latest.checked_sub(ack_delay).filter(|rtt| *rtt >= min).unwrap_or(latest);
        if self.samples == 0 {
            self.smoothed = adjusted;
            self.var = adjusted / 2;
        } else {
            // DEVIATION: RFC 9002 5.3 believes each sample whole. One across a pause of a minute would have the next loss wait for as long.
            let believed = adjusted.min(self.probe_timeout(Duration::ZERO) * BELIEVED_TIMEOUTS);
            // RFC 9002 5.3: var = 3/4 var + 1/4 |smoothed - adjusted|, smoothed = 7/8 smoothed + 1/8 adjusted
            self.var = self.var * 3 / 4 + self.smoothed.abs_diff(believed) / 4;
            // As above.
            self.smoothed = self.smoothed * 7 / 8 + believed / 8;
        }
        self.latest = adjusted;
        self.samples += 1;
        adjusted
    }

    /// The newest sample, the receiver's delay taken off.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smoothed round-trip time.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation.
    pub fn var(&self) -> Duration {
        self.var
    }

    /// The smallest sample of the last 10 s; the smoothed value before the first one.
    pub fn min(&self) -> Duration {
        self.min.get().unwrap_or(self.smoothed)
    }

    /// Whether there has been a sample.
    pub fn is_measured(&self) -> bool {
        self.samples > 0
    }

    /// When to probe if nothing is heard: RFC 9002 6.2.1, smoothed + max(4 var, 1 ms) + `max_ack_delay`.
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        self.smoothed + (self.var * 4).max(GRANULARITY) + max_ack_delay
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

/// RFC 9002 6.2.2
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// A sample counts for no more than so many probe timeouts, so that each one can make them about five times as long: a path that has become a thousand times as long is believed after
/// five of them, and one packet that somebody held back says little.
const BELIEVED_TIMEOUTS: u32 = 4;
/// As long as the congestion controllers remember the smallest.
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// RFC 9002 6.1.2
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn first_sample_replaces_the_guess() {
        let mut rtt = RttEstimator::default();
        assert!(!rtt.is_measured());
        assert_eq!(rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO), ms(100));
        assert_eq!((rtt.smoothed(), rtt.var(), rtt.min()), (ms(100), ms(50), ms(100)));
        assert_eq!(rtt.probe_timeout(ms(5)), ms(305));
    }

    #[test]
    fn delay_is_taken_off_but_not_below_the_minimum() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::ZERO, ms(100), Duration::ZERO);
        assert_eq!(rtt.on_sample(Time::ZERO, ms(130), ms(20)), ms(110));
        assert_eq!(rtt.on_sample(Time::ZERO, ms(130), ms(90)), ms(130));
        assert_eq!(rtt.on_sample(Time::ZERO, ms(130), Duration::MAX), ms(130));
    }

    #[test]
    fn a_pause_is_not_taken_for_the_path_but_a_path_that_has_become_long_is() {
        let steady = || {
            let mut rtt = RttEstimator::default();
            for _ in 0..100 {
                rtt.on_sample(Time::ZERO, ms(50), Duration::ZERO);
            }
            rtt
        };
        let mut paused = steady();
        assert_eq!(paused.on_sample(Time::ZERO, ms(85_000), Duration::ZERO), ms(85_000));
        assert!(paused.probe_timeout(ms(5)) < ms(300), "{paused:?}");
        let mut long = steady();
        for _ in 0..5 {
            long.on_sample(Time::ZERO, ms(50_000), Duration::ZERO);
        }
        assert!(long.probe_timeout(ms(5)) > ms(50_000), "{long:?}");
    }

    #[test]
    fn minimum_is_forgotten_after_ten_seconds() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::ZERO, ms(10), Duration::ZERO);
        rtt.on_sample(Time::ZERO + ms(5_000), ms(50), Duration::ZERO);
        assert_eq!(rtt.min(), ms(10));
        rtt.on_sample(Time::ZERO + ms(11_000), ms(60), Duration::ZERO);
        assert_eq!(rtt.min(), ms(50));
    }
}
