//! By how much the delay varies without a queue of ours.
//!
//! A queue fills and empties once in a few epochs, so the way that its delay goes up and down is about twice the distance between the
//! extremes; jitter goes that distance many times over.

use std::time::Duration;

use haul_units::Time;

/// Watches the way of the delay.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct Jitter {
    estimate: Duration,
    period: Option<Period>,
}

/// What was seen since the last estimate.
#[derive(Debug, Clone, Copy)]
struct Period {
    since: Time,
    least: Duration,
    most: Duration,
    /// How far it went up and down, as far as turns were larger than noise.
    way: Duration,
    /// The last turn, and the farthest point since.
    turn: Duration,
    farthest: Duration,
}

impl Jitter {
    /// The estimate, at most 30 ms.
    pub(in crate::lfn) fn estimate(&self) -> Duration {
        self.estimate
    }

    /// A delay was measured; `epoch` is how long a queue takes to change, and `group` how long the bottleneck takes for packets that arrive together.
    pub(in crate::lfn) fn on_delay(&mut self, now: Time, delay: Duration, epoch: Duration, group: Duration) {
        let fresh = Period { since: now, least: delay, most: delay, way: Duration::ZERO, turn: delay, farthest: delay };
        let period = self.period.get_or_insert(fresh);
        period.follow(delay, group);
        if now.since(period.since) < epoch * PERIOD_EPOCHS {
            return;
        }
        let range = period.most.saturating_sub(period.least);
        // Two ups and two downs at the least.
        let sample = (period.way.saturating_sub(range * ONCE) / 4).min(range).min(MOST);
        // Half after two and a half periods without any.
        self.estimate = sample.max(self.estimate * 3 / 4);
        self.period = Some(fresh);
    }
}

impl Period {
    fn follow(&mut self, delay: Duration, group: Duration) {
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
        // Smaller turns than a quarter of the range are noise.
        let noise = (self.most.saturating_sub(self.least) / 4).max(NOISE).max(group);
        if delay.abs_diff(self.turn) >= self.farthest.abs_diff(self.turn) && (delay >= self.turn) == (self.farthest >= self.turn)
        {
            self.farthest = delay;
        } else if delay.abs_diff(self.farthest) > noise {
            self.way += self.farthest.abs_diff(self.turn);
            (self.turn, self.farthest) = (self.farthest, delay);
        }
    }
}

/// In so many a queue of ours goes up and down once.
const PERIOD_EPOCHS: u32 = 4;
/// Up and down, and half as much for what the noise hides.
const ONCE: u32 = 3;
/// What threads that wake up late make of a delay.
const NOISE: Duration = Duration::from_micros(500);
/// A larger estimate would hide queues that are in the way of others.
const MOST: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays in microseconds, one a millisecond, over four epochs of 100 ms.
    fn estimate(delay: impl Fn(u64) -> u64) -> Duration {
        estimate_of(delay, Duration::ZERO)
    }

    /// The same, of packets of which a group takes so long.
    fn estimate_of(delay: impl Fn(u64) -> u64, group: Duration) -> Duration {
        let mut jitter = Jitter::default();
        for n in 0..=400 {
            let (now, delay) = (Time::ZERO + Duration::from_millis(n), Duration::from_micros(delay(n)));
            jitter.on_delay(now, delay, Duration::from_millis(100), group);
        }
        jitter.estimate()
    }

    #[test]
    fn a_queue_that_comes_and_goes_is_none() {
        assert_eq!(estimate(|n| if n < 200 { n * 100 } else { 40_000 - n * 100 }), Duration::ZERO);
        assert_eq!(estimate(|_| 7_000), Duration::ZERO);
    }

    #[test]
    fn a_delay_that_wanders_is() {
        let found = estimate(|n| 1_000 * if n / 20 % 2 == 0 { n % 20 } else { 20 - n % 20 });
        assert!(found >= Duration::from_millis(15), "{found:?}");
    }

    /// A queue that grows, at 20 Mbit/s, where each eighth packet comes behind another one.
    #[test]
    fn packets_that_come_together_are_none() {
        let queue = |n: u64| n + n.saturating_sub(250) * 40 + if n.is_multiple_of(8) { 600 } else { 0 };
        assert!(estimate(queue) > Duration::from_millis(2));
        assert_eq!(estimate_of(queue, Duration::from_micros(1_200)), Duration::ZERO);
    }

    #[test]
    fn noise_is_none() {
        assert_eq!(estimate(|n| n % 2 * 400), Duration::ZERO);
    }
}
