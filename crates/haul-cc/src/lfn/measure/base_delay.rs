//! Base delay: the round-trip time of the path without a queue.

use std::time::Duration;

use haul_units::Time;

/// The smallest round-trip time of late.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct BaseDelay {
    min_rtt: Option<Duration>,
    /// False while a new minimum is sought; the old one stands in.
    is_known: bool,
    /// When a round-trip time near the minimum was seen.
    near_at: Time,
}

impl BaseDelay {
    /// What another connection had seen.
    pub(super) const fn remembered(now: Time, min_rtt: Duration) -> Self {
        Self { min_rtt: Some(min_rtt), is_known: true, near_at: now }
    }

    /// What has been measured; nothing before the first round trip.
    pub(super) const fn measured(&self) -> Option<Duration> {
        self.min_rtt
    }

    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let min = self.min_rtt.filter(|_| self.is_known).unwrap_or(Duration::MAX);
        if rtt <= min {
            self.min_rtt = Some(rtt);
            self.is_known = true;
        }
        // A twentieth is jitter.
        if rtt <= min.saturating_add(min / 20) {
            self.near_at = now;
        }
    }

    /// No round-trip time near it for so long that the route may have changed, or a queue may hide it.
    pub(in crate::lfn) fn is_stale(&self, now: Time) -> bool {
        now.since(self.near_at) > MIN_RTT_LIFETIME
    }

    /// The next samples, with hardly a queue, set it anew.
    pub(in crate::lfn) const fn forget(&mut self) {
        self.is_known = false;
    }

    /// The smallest round-trip time of the last 10 s is the path's.
    pub(in crate::lfn) const fn renew(&mut self, now: Time, min_rtt: Duration) {
        *self = Self::remembered(now, min_rtt);
    }
}

/// draft-ietf-ccwg-bbr 2.14.1: routes change; a queue may have hidden the smallest for as long.
pub(in crate::lfn) const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_smallest_counts_and_what_is_near_it_keeps_it_fresh() {
        let mut base = BaseDelay::default();
        assert_eq!(base.measured(), None);
        for (time, rtt) in [(0, 120), (10, 100), (20, 180)] {
            base.on_rtt(at(time), ms(rtt));
        }
        assert_eq!(base.measured(), Some(ms(100)));
        assert!(!base.is_stale(at(10_010)) && base.is_stale(at(10_011)), "the last near the minimum came at 10 ms");
        base.on_rtt(at(9_000), ms(105));
        assert!(!base.is_stale(at(19_000)) && base.is_stale(at(19_001)), "5 % above is near");
    }

    #[test]
    fn a_forgotten_one_stands_in_until_the_next_sample() {
        let mut base = BaseDelay::remembered(at(0), ms(50));
        base.forget();
        assert_eq!(base.measured(), Some(ms(50)));
        base.on_rtt(at(1), ms(80));
        assert_eq!(base.measured(), Some(ms(80)), "a longer path is believed after that");
    }
}
