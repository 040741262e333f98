//! When cruise tries for more.

use std::time::Duration;

use haul_units::Time;

/// The clock of the attempts.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    /// State of the generator that spreads those of flows that share a path.
    seed: u64,
    next: Time,
}

impl Attempts {
    pub(super) const fn new(seed: u64, now: Time) -> Self {
        Self { seed, next: now }
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// Where much was gained there may be more: after an epoch or two.
    pub(super) fn soon(&mut self, now: Time, min_rtt: Duration) {
        self.next = now + min_rtt * 2 + SOON;
    }

    pub(super) fn later(&mut self, now: Time, min_rtt: Duration) {
        self.next = now + self.interval(min_rtt);
    }

    /// 2 to 3 s, on long paths eight round trips, or four, on short ones, where trying costs little, 200, with a chance part so that flows do not try in step.
    fn interval(&mut self, min_rtt: Duration) -> Duration {
        // Knuth's MMIX generator; the high bits are the good ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chance = (self.seed >> 40) as f64 / (1u64 << 24) as f64;
        let least = (min_rtt * 200).clamp(INTERVAL_SHORT, INTERVAL);
        // No attempt begins a new epoch before one has ended: a round trip after it has begun, which is one after what began it.
        (min_rtt * 8).clamp(least, INTERVAL_MAX.max(min_rtt * 4)).mul_f64(1.0 + chance / 2.0)
    }
}

/// Time for an epoch of cruise.
const SOON: Duration = Duration::from_millis(100);
/// Two epochs of cruise.
const INTERVAL_SHORT: Duration = Duration::from_millis(200);
/// draft-ietf-ccwg-bbr 5.3.3.5.3: BBR tries for more as often.
const INTERVAL: Duration = Duration::from_secs(2);
/// Reached at round trips of 1.25 s, eight of which are otherwise waited for.
const INTERVAL_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_do_not_try_in_step_and_the_round_trip_bounds_how_often() {
        let intervals = |rtt_ms: u64| {
            let mut attempts = Attempts::new(7, Time::ZERO);
            (0..100).map(move |_| attempts.interval(Duration::from_millis(rtt_ms))).collect::<Vec<_>>()
        };
        for (rtt_ms, least, most) in [
            (0, 200, 300),
            (5, 1_000, 1_500),
            (100, 2_000, 3_000),
            (500, 4_000, 6_000),
            (2_000, 10_000, 15_000),
            (9_000, 36_000, 54_000),
        ] {
            let all = intervals(rtt_ms);
            let within = |interval: &Duration| (least..=most).contains(&(interval.as_millis() as u64));
            assert!(all.iter().all(within), "{rtt_ms} ms: {all:?}");
            assert!(all.iter().max() > all.iter().min());
        }
    }
}
