//! How a measured quantity is spread: percentiles, and histograms that people and programs read.

use haul::Distribution;
use serde::{Deserialize, Serialize};

/// Values in classes: the smallest and the largest value of each, and how many; in rising order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spread(Vec<(u64, u64, u64)>);

/// A class of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// The smallest value that belongs to it.
    pub from: u64,
    /// The largest.
    pub to: u64,
    /// How many do.
    pub count: u64,
}

/// What the two ends of a flow over haul know of its packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spreads {
    /// From the sender: round-trip times, in microseconds.
    pub rtt_us: Spread,
    /// From the sender: queueing delay towards the receiver, in microseconds.
    pub queue_delay_us: Spread,
    /// From the receiver: lengths of gaps in packet numbers, in packets.
    pub gaps_pkts: Spread,
    /// From the receiver: how far behind packets came that were late, in packets.
    pub late_pkts: Spread,
}

impl From<&Distribution> for Spread {
    fn from(distribution: &Distribution) -> Self {
        Self(distribution.classes().collect())
    }
}

impl FromIterator<u64> for Spread {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut distribution = Distribution::default();
        for value in values {
            distribution.record(value);
        }
        Self::from(&distribution)
    }
}

impl Spread {
    /// How many values.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, class| sum.saturating_add(class.2))
    }

    /// The value that this part of all values does not exceed, to the width of a class; `None` without values.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = (part * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let class = self.0.iter().find(|class| {
            seen = seen.saturating_add(class.2);
            seen >= wanted
        });
        class.or(self.0.last()).map(|class| class.0 / 2 + class.1 / 2 + (class.0 & class.1 & 1))
    }

    /// Classes that double, for programs.
    pub fn histogram(&self) -> Vec<Class> {
        self.doubled()
    }

    /// Percentiles for people, each printed by `show`; `None` without values.
    pub fn percentiles(&self, show: impl Fn(u64) -> String) -> Option<String> {
        let at = |part| self.quantile(part).map(&show);
        Some(format!("p50 {}, p90 {}, p99 {}, max {}", at(0.5)?, at(0.9)?, at(0.99)?, at(1.0)?))
    }

    /// Classes that double, for people: `1: 300, 2-3: 12`.
    pub fn classes(&self) -> String {
        let name = |from: u64, to: u64| if from == to { from.to_string() } else { format!("{from}-{to}") };
        let class = |Class { from, to, count }| format!("{}: {count}", name(from, to));
        self.doubled().into_iter().map(class).collect::<Vec<_>>().join(", ")
    }

    /// 0, 1, 2 to 3, 4 to 7, ..: those that have values.
    fn doubled(&self) -> Vec<Class> {
        let mut doubled: Vec<Class> = Vec::new();
        for &(low, _, count) in &self.0 {
            let (from, to) = if low == 0 { (0, 0) } else { (1_u64 << low.ilog2(), u64::MAX >> (63 - low.ilog2())) };
            match doubled.last_mut() {
                Some(last) if last.from == from => last.count = last.count.saturating_add(count),
                _ => doubled.push(Class { from, to, count }),
            }
        }
        doubled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_what_was_counted() {
        let spread: Spread = (1..=20).collect();
        assert_eq!(
            (spread.count(), spread.quantile(0.5), spread.quantile(0.95), spread.quantile(1.0)),
            (20, Some(10), Some(19), Some(20))
        );
        assert_eq!(spread.percentiles(|value| value.to_string()).unwrap(), "p50 10, p90 18, p99 20, max 20");
        assert_eq!(spread.classes(), "1: 1, 2-3: 2, 4-7: 4, 8-15: 8, 16-31: 5");
        assert_eq!((Spread::default().quantile(0.5), Spread::default().percentiles(|v| v.to_string())), (None, None));
    }

    #[test]
    fn what_a_peer_makes_up_does_no_harm() {
        let spread: Spread =
            serde_json::from_str("[[5,1,18446744073709551615],[18446744073709551615,18446744073709551615,9]]").unwrap();
        assert_eq!(spread.count(), u64::MAX);
        assert!(spread.quantile(0.5).is_some());
        assert!(spread.classes().starts_with("4-7"));
    }
}
