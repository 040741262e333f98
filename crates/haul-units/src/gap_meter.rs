//! How evenly packets come.

use std::time::Duration;

use crate::{Distribution, Time};

/// The times between packets that follow each other: a histogram in nanoseconds, in classes a little over 3 % wide.
#[derive(Debug, Clone, Default)]
pub struct GapMeter {
    gaps: Distribution,
    newest: Option<Time>,
}

impl GapMeter {
    /// Nothing has come.
    pub const fn new() -> Self {
        Self { gaps: Distribution::new(), newest: None }
    }

    /// A packet has come. Packets that share an instant have no time between them.
    pub fn record(&mut self, at: Time) {
        if let Some(newest) = self.newest.replace(at) {
            self.gaps.record(u64::try_from(at.since(newest).as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// How many gaps there were.
    pub fn count(&self) -> u64 {
        self.gaps.count()
    }

    /// The time that a part (0 to 1) of the gaps does not exceed, to the precision of a class: its middle.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        self.gaps.quantile(part).map(Duration::from_nanos)
    }

    /// The histogram.
    pub const fn histogram(&self) -> &Distribution {
        &self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_between_packets() {
        let mut meter = GapMeter::new();
        assert_eq!((meter.count(), meter.quantile(0.5)), (0, None));
        for micros in [0, 10, 20, 30, 130] {
            meter.record(Time::ZERO + Duration::from_micros(micros));
        }
        assert_eq!(meter.count(), 4);
        let near = |found: Option<Duration>, micros: u64| {
            found.unwrap().abs_diff(Duration::from_micros(micros)) < Duration::from_micros(micros) / 25
        };
        let classes = meter.histogram().classes();
        let tenths: u64 = classes.filter(|(low, high, _)| *low >= 9_000 && *high <= 11_000).map(|(_, _, count)| count).sum();
        assert_eq!(tenths, 3, "three of four are 10 us");
        assert!(near(meter.quantile(0.75), 10) && near(meter.quantile(0.76), 100), "{meter:?}");
    }
}
