//! How many TCP connections carry one connection.
//!
//! Some at once, then twice as many as long as that made it faster, or all of them have become slower meanwhile: where packets get lost on the way, connections begin much faster than they go on, and
//! a rate of their beginning says nothing about how many are enough.

use std::time::{Duration, Instant};

/// TCP connections at first, and at most.
pub(super) const FIRST_LANES: usize = 4;
/// Over 100 ms, losing one packet in a thousand, each of them carries 6 Mbit/s by TCP's own rules.
const MAX_LANES: usize = 32;
/// Over what time a rate is taken before more of them are tried.
const GROW: Duration = Duration::from_secs(2);
/// So much faster is faster: three times in twenty.
const FASTER: f64 = 1.15;
/// Below this rate nobody waits for more connections, in bytes a second.
const WORTH_IT: f64 = 250_000.0;

/// Finds the number of TCP connections.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    first: usize,
    max: usize,
    /// Since when is measured, and what had been moved then.
    from: Option<(Instant, u64)>,
    best: f64,
    /// New ones are still finding their rate.
    starting: bool,
    settled: bool,
}

impl Default for Growth {
    fn default() -> Self {
        Self::beyond(0.0, FIRST_LANES, MAX_LANES)
    }
}

impl Growth {
    /// `first` of them at once, and at most `max` where that is faster than `best`, in bytes a second.
    pub(super) const fn beyond(best: f64, first: usize, max: usize) -> Self {
        Self { first, max, from: None, best, starting: false, settled: false }
    }

    /// How many there are to be at once.
    pub(super) const fn first(&self) -> usize {
        self.first
    }

    /// So many are wanted, if more are.
    pub(super) fn wanted(&mut self, now: Instant, moved_bytes: u64, lanes: usize) -> Option<usize> {
        let Some((since, before)) = self.from else {
            (self.from, self.starting) = (Some((now, moved_bytes)), true);
            return (lanes < self.first).then_some(self.first);
        };
        let seconds = (now - since).as_secs_f64();
        if self.settled || seconds < GROW.as_secs_f64() {
            return None;
        }
        let rate = moved_bytes.saturating_sub(before) as f64 / seconds;
        self.from = Some((now, moved_bytes));
        if std::mem::take(&mut self.starting) || rate < WORTH_IT {
            return None;
        }
        let is_alike = self.best / FASTER < rate && rate < self.best * FASTER;
        if is_alike || lanes >= self.max {
            self.settled = true;
            return None;
        }
        (self.best, self.starting) = (rate, true);
        Some((lanes * 2).clamp(self.first, self.max))
    }
}

/// The rate, in bytes a second, if it is one at which somebody waits for more.
pub(super) fn rate_worth_more(time: Duration, moved_bytes: u64) -> Option<f64> {
    let rate = moved_bytes as f64 / time.as_secs_f64();
    (rate >= WORTH_IT).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// How many lanes there are in the end where so many bytes go through each in a second, and so many through all.
    fn found(each: u64, all: u64) -> usize {
        let (mut growth, mut now, mut moved, mut lanes) = (Growth::default(), clock::now(), 0, 1);
        for _ in 0..30 {
            lanes = growth.wanted(now, moved, lanes).unwrap_or(lanes);
            now += Duration::from_millis(2100);
            moved += (each * lanes as u64).min(all) * 21 / 10;
        }
        lanes
    }

    #[test]
    fn a_fast_beginning_hides_nothing() {
        // Each begins twelve times as fast as it goes on, and loses a third of that in each second.
        let (mut growth, mut now, mut moved, mut ages) = (Growth::default(), clock::now(), 0.0, vec![0.0; 1]);
        for _ in 0..30 {
            let lanes = growth.wanted(now, moved as u64, ages.len()).unwrap_or(ages.len());
            ages.resize(lanes, 0.0);
            now += Duration::from_millis(2100);
            for age in &mut ages {
                moved += 2.1 * 800_000.0 * (1.0 + 11.0 * f64::exp(-*age / 2.5));
                *age += 2.1;
            }
        }
        assert_eq!(ages.len(), MAX_LANES);
    }

    #[test]
    fn what_is_no_faster_than_it_was_by_one_alone_is_left_at_that() {
        let rate = 6_000_000.0;
        let (mut growth, mut now, mut lanes) = (Growth::beyond(rate, FIRST_LANES, 8), clock::now(), 1);
        for turn in 0..10u32 {
            lanes = growth.wanted(now, (rate * 2.1 * f64::from(turn)) as u64, lanes).unwrap_or(lanes);
            now += Duration::from_millis(2100);
        }
        assert_eq!(lanes, FIRST_LANES);
        assert_eq!(rate_worth_more(GROW, 4 << 20), Some(f64::from(2 << 20)));
        assert_eq!(rate_worth_more(GROW, 1000), None, "a shell waits for nothing");
    }

    #[test]
    fn there_are_as_many_as_make_it_faster() {
        assert_eq!(found(1_000_000, 1_000_000_000), MAX_LANES, "each is slowed down by loss");
        assert_eq!(found(100_000_000, 100_000_000), 8, "four fill the link, eight are no faster");
        assert_eq!(found(10_000, 1_000_000_000), FIRST_LANES, "there is little to send");
    }
}
