//! How values are distributed: counts in classes, a little over 3 % wide.
//!
//! Values below 32 have a class each, those above 32 classes an octave. Recording is an addition; memory grows with the largest value seen (a round trip of 100 ms in
//! microseconds: 1.6 KiB) and never beyond 7.5 KiB.

/// Classes an octave.
const CLASSES: u64 = 32;
/// Values from here on share the last class.
const VALUE_MAX: u64 = (1 << 62) - 1;

/// Counts of values in classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution {
    counts: Vec<u32>,
}

impl Distribution {
    /// No values.
    pub const fn new() -> Self {
        Self { counts: Vec::new() }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let class = class_of(value.min(VALUE_MAX));
        if class >= self.counts.len() {
            self.counts.resize(class + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(class) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts what another one has counted too.
    pub fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |class: usize| earlier.counts.get(class).copied().unwrap_or(0);
        Self { counts: self.counts.iter().enumerate().map(|(class, count)| count.saturating_sub(before(class))).collect() }
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// What a part (0 to 1) of the values does not exceed, to the precision of a class: its middle.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = (part.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let class = self.classes().find(|(_, _, count)| {
            seen += count;
            seen >= wanted
        });
        class.map(|(low, high, _)| low + (high - low) / 2)
    }

    /// The classes that have values: the smallest and the largest value of each, and its count.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(class, &count)| (lowest(class), lowest(class + 1) - 1, count.into()))
    }
}

fn class_of(value: u64) -> usize {
    if value < CLASSES {
        return value as usize;
    }
    let shift = u64::from(value.ilog2() - CLASSES.ilog2());
    (shift * CLASSES + (value >> shift)) as usize
}

fn lowest(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * CLASSES {
        return class;
    }
    let shift = class / CLASSES - 1;
    (class - shift * CLASSES) << shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_of_the_values_does_not_exceed_its_quantile() {
        let mut values = Distribution::new();
        assert_eq!((values.count(), values.quantile(0.5)), (0, None));
        for value in [10, 10, 10, 20] {
            values.record(value);
        }
        assert_eq!(values.count(), 4);
        for (part, is) in [(0.0, 10), (0.5, 10), (0.75, 10), (0.76, 20), (1.0, 20), (7.0, 20)] {
            assert_eq!(values.quantile(part), Some(is), "{part}");
        }
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_class(value in prop_oneof![0..200u64, any::<u64>().prop_map(|v| v & VALUE_MAX)]) {
            let class = class_of(value);
            prop_assert!(lowest(class) <= value && value < lowest(class + 1));
            prop_assert!(lowest(class + 1) - lowest(class) <= (value / CLASSES).max(1));
            prop_assert!(class < 1920);
        }

        #[test]
        fn classes_tell_what_was_recorded_since(early in prop::collection::vec(0..5000u64, 0..50), late in prop::collection::vec(0..5000u64, 0..50)) {
            let mut distribution = Distribution::default();
            for &value in &early {
                distribution.record(value);
            }
            let before = distribution.clone();
            for &value in &late {
                distribution.record(value);
            }
            let classes: Vec<_> = distribution.since(&before).classes().collect();
            for (low, high, count) in &classes {
                let expected = late.iter().filter(|value| (*low..=*high).contains(value)).count() as u64;
                prop_assert_eq!(*count, expected);
            }
            prop_assert_eq!(classes.iter().map(|class| class.2).sum::<u64>(), late.len() as u64);
        }
    }

    #[test]
    fn the_largest_value_has_a_place() {
        let mut distribution = Distribution::default();
        distribution.record(u64::MAX);
        assert_eq!(distribution.classes().count(), 1);
        assert!(distribution.counts.len() <= 1920);
    }
}
