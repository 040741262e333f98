//! How fast something arrives, over the last seconds.

use std::time::{Duration, Instant};

use haul_units::{BitRate, Bytes};

/// Time that the rate is averaged over.
const RATE_OVER: Duration = Duration::from_secs(5);

/// Arrivals over the last seconds.
#[derive(Debug)]
pub struct Rates {
    begun: Instant,
    samples: std::collections::VecDeque<(Instant, Bytes)>,
}

impl Rates {
    /// Nothing has arrived.
    pub fn start(begun: Instant) -> Self {
        Self { begun, samples: [(begun, Bytes::ZERO)].into() }
    }

    /// When that was.
    pub const fn begun(&self) -> Instant {
        self.begun
    }

    /// So much has arrived in all; the rate over the last seconds.
    pub fn add(&mut self, now: Instant, arrived: Bytes) -> BitRate {
        self.samples.push_back((now, arrived));
        while self.samples.len() > 2 && self.samples.front().is_some_and(|(then, _)| now - *then > RATE_OVER) {
            self.samples.pop_front();
        }
        match self.samples.front() {
            Some(&(then, before)) if now > then => BitRate::of(arrived.saturating_sub(before), now - then),
            _ => BitRate::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rates = Rates::start(now());
        let at = |seconds| rates.begun + Duration::from_secs(seconds);
        let times = [at(1), at(2), at(10), at(11)];
        assert_eq!(rates.add(times[0], Bytes(1_000_000)), BitRate::mbps(8));
        assert_eq!(rates.add(times[1], Bytes(2_000_000)), BitRate::mbps(8));
        rates.add(times[2], Bytes(2_000_000));
        assert_eq!(rates.add(times[3], Bytes(2_000_000)), BitRate::ZERO);
    }
}
