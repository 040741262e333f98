//! Where slow start ends before anything is lost: hybrid slow start, as Linux has it.
//!
//! Two signs say that the window fills the path. The acknowledgements of one round come without a gap for half the smallest round-trip
//! time: the bottleneck then carries half of what it can. Or the round-trip time rises: the smallest of the first samples of a round is above
//! the smallest of all by an eighth, within 4 and 16 ms.
//! Source: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011), 4; the bounds are those of RFC 9406 4.2.

use std::time::Duration;

use haul_units::Time;

#[derive(Debug)]
pub(super) struct HyStart {
    least: Duration,
    round: Round,
}

#[derive(Debug)]
struct Round {
    start: Time,
    least: Duration,
    samples: u32,
    /// The last acknowledgement of those that came without a gap.
    train_end: Time,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self { least: Duration::MAX, round: Round::new(Time::ZERO) }
    }

    /// A round-trip time of slow start at a window; `round_start`: the first of a round. Whether the path is full.
    pub(super) fn is_full(&mut self, now: Time, rtt: Duration, round_start: bool, window_pkts: f64) -> bool {
        if round_start {
            self.round = Round::new(now);
        }
        self.least = self.least.min(rtt);
        if window_pkts < LEAST_WINDOW_PKTS {
            return false;
        }
        self.round.train(now) > self.least / 2 || self.round.rises(rtt, self.least)
    }
}

impl Round {
    fn new(start: Time) -> Self {
        Self { start, least: Duration::MAX, samples: 0, train_end: start }
    }

    /// How long acknowledgements have been coming without a gap, if this one continues that.
    fn train(&mut self, now: Time) -> Duration {
        if now.since(self.train_end) > LARGEST_GAP {
            return Duration::ZERO;
        }
        self.train_end = now;
        now.since(self.start)
    }

    fn rises(&mut self, rtt: Duration, least: Duration) -> bool {
        self.least = self.least.min(rtt);
        self.samples += 1;
        let margin = (least / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.samples > SAMPLES && self.least > least + margin
    }
}

const LEAST_WINDOW_PKTS: f64 = 16.0;
const SAMPLES: u32 = 8;
const LARGEST_GAP: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    /// The number of the acknowledgement at which slow start ends, of a round of them.
    fn ends(hystart: &mut HyStart, gap: Duration, extra: Duration) -> Option<u32> {
        (0..100).find(|&n| hystart.is_full(Time::ZERO + RTT + gap * n, RTT + extra, n == 0, 100.0))
    }

    #[test]
    fn a_train_as_long_as_half_the_round_trip_fills_the_path() {
        let mut hystart = HyStart::new();
        assert_eq!(ends(&mut hystart, Duration::from_millis(1), Duration::ZERO), Some(21));
        assert_eq!(ends(&mut hystart, Duration::from_micros(199), Duration::ZERO), None);
        // Gaps end the train.
        assert_eq!(ends(&mut hystart, Duration::from_millis(3), Duration::ZERO), None);
    }

    #[test]
    fn a_delay_risen_by_an_eighth_fills_the_path() {
        let mut hystart = HyStart::new();
        let gap = Duration::from_micros(10);
        assert_eq!(ends(&mut hystart, gap, Duration::ZERO), None);
        assert_eq!(ends(&mut hystart, gap, Duration::from_millis(5)), None);
        assert_eq!(ends(&mut hystart, gap, Duration::from_micros(5001)), Some(8));
    }

    #[test]
    fn a_small_window_never_does() {
        let mut hystart = HyStart::new();
        assert!(!(0..100).any(|n| hystart.is_full(Time::ZERO + RTT * n, RTT * (n + 1), n % 10 == 0, 15.0)));
    }
}
