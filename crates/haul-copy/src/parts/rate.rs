//! When a copy had come to its rate, from what had arrived when.
//!
//! Its rate is the mean between a half and nine tenths of the bytes: by then a start is over in all but the shortest copies, and the last tenth has the repetitions of what was lost at the end. It is reached
//! when 80 % of it came for a round trip, as a bench says when a start is over.

use std::time::{Duration, Instant};

/// Between two samples: several in the shortest round trip that a WAN has.
pub(crate) const EVERY: Duration = Duration::from_millis(20);
/// Of the rate.
const REACHED: f64 = 0.8;
/// A mean over less would be that of a few trains.
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
/// Samples that are kept; then every other one goes.
const MOST: usize = 1 << 12;

/// What had arrived, in bytes, at which time; rising.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    samples: Vec<(Instant, u64)>,
    /// Of so many samples one is kept: each time that there were too many, twice as many.
    each: usize,
    passed: usize,
}

impl Series {
    /// So much had arrived by now.
    pub(crate) fn push(&mut self, now: Instant, bytes: u64) {
        self.passed += 1;
        if self.passed < self.each {
            return;
        }
        self.passed = 0;
        if self.samples.len() == MOST {
            // The first one stays.
            let mut n = 0;
            self.samples.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.each = (self.each * 2).max(2);
        }
        self.samples.push((now, bytes));
    }

    /// When 80 % of the rate was reached; none where nothing came.
    pub(crate) fn reached(&self, rtt: Duration) -> Option<Instant> {
        let all = self.samples.last()?.1 as f64;
        let when = |bytes: f64| self.samples.iter().find(|(_, sum)| *sum as f64 >= bytes).filter(|(_, sum)| *sum > 0);
        let (half, most) = (when(all * 0.5)?, when(all * 0.9)?);
        let passed = (most.0 - half.0).as_secs_f64();
        if passed <= 0.0 {
            return Some(half.0);
        }
        let window = rtt.max(SHORTEST_WINDOW);
        let wanted = (most.1.saturating_sub(half.1)) as f64 / passed * REACHED;
        let mut before = 0;
        for &(now, bytes) in &self.samples {
            while self.samples.get(before + 1).is_some_and(|(next, _)| now - *next >= window) {
                before += 1;
            }
            let (since, had) = self.samples[before];
            // In the first round trip nothing had come before the first sample. Samples of a long copy, or of a busy host, are further apart.
            let (had, over) = if now - since >= window { (had, now - since) } else { (0, window) };
            if bytes.saturating_sub(had) as f64 >= wanted * over.as_secs_f64() {
                return Some(now.min(half.0));
            }
        }
        Some(half.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A sample each 20 ms of what comes at a rate for each of these times.
    fn series(stretches: &[(u64, u64)]) -> (Instant, Series) {
        let begin = clock::now();
        let (mut series, mut at, mut bytes) = (Series::default(), Duration::ZERO, 0);
        for &(time_ms, bytes_per_ms) in stretches {
            for _ in 0..time_ms / 20 {
                at += EVERY;
                bytes += bytes_per_ms * 20;
                series.push(begin + at, bytes);
            }
        }
        (begin, series)
    }

    #[test]
    fn the_start_is_over_when_most_of_the_rate_came_for_a_round_trip() {
        // Silence, a slow start, the rate, and a tail in which a few acknowledgements come.
        let (begin, series) = series(&[(200, 0), (400, 100), (2000, 1000), (1000, 1)]);
        let reached = series.reached(ms(100)).expect("something came") - begin;
        assert!((ms(660)..=ms(700)).contains(&reached), "{reached:?}");
        // Over a longer round trip it takes longer until it was there for one.
        let later = series.reached(ms(400)).expect("something came") - begin;
        assert!((ms(880)..=ms(960)).contains(&later), "{later:?}");
    }

    #[test]
    fn who_came_at_once_has_started_at_once_and_nothing_has_no_start() {
        let (begin, at_once) = series(&[(20, 1_000_000), (500, 0)]);
        assert_eq!(at_once.reached(ms(100)), Some(begin + EVERY));
        assert_eq!(series(&[(500, 0)]).1.reached(ms(100)), None);
        assert_eq!(Series::default().reached(ms(100)), None);
    }

    #[test]
    fn a_long_copy_keeps_few_samples_and_its_start() {
        let (begin, long) = series(&[(10_000, 500), (1_000_000, 1000)]);
        assert!(long.samples.len() <= MOST, "{}", long.samples.len());
        let reached = long.reached(ms(100)).expect("something came") - begin;
        assert!((ms(10_000)..=ms(11_000)).contains(&reached), "{reached:?}");
    }
}
