//! A set of packet numbers, kept as ranges.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// Disjoint ranges that do not touch, by their start. An operation costs the logarithm of their number, and what it merges.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    ends: BTreeMap<u32, u32>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a range and reports the parts of it that are new.
    pub(super) fn insert(&mut self, range: Range<u32>, mut fresh: impl FnMut(Range<u32>)) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end, mut at) = (range.start, range.end, range.start);
        if let Some((&before, &before_end)) = self.ends.range(..=range.start).next_back()
            && before_end >= range.start
        {
            start = before;
            end = end.max(before_end);
            at = before_end;
        }
        while let Some((&next, &next_end)) = self.ends.range((Bound::Excluded(start), Bound::Included(end))).next() {
            if at < next.min(range.end) {
                fresh(at..next.min(range.end));
            }
            at = next_end;
            end = end.max(next_end);
            self.ends.remove(&next);
        }
        if at < range.end {
            fresh(at..range.end);
        }
        self.ends.insert(start, end);
    }

    /// Forgets all below a number.
    pub(super) fn remove_below(&mut self, number: u32) {
        while let Some(entry) = self.ends.first_entry() {
            if *entry.key() >= number {
                return;
            }
            let end = entry.remove();
            if end > number {
                self.ends.insert(number, end);
            }
        }
    }

    /// The range that holds a number.
    pub(super) fn around(&self, number: u32) -> Option<Range<u32>> {
        let (&start, &end) = self.ends.range(..=number).next_back()?;
        (number < end).then_some(start..end)
    }

    /// The first range.
    pub(super) fn first(&self) -> Option<Range<u32>> {
        self.ends.first_key_value().map(|(&start, &end)| start..end)
    }

    /// The nth largest number of the set, from 1.
    pub(super) fn nth_largest(&self, n: u32) -> Option<u32> {
        let mut left = n;
        for (&start, &end) in self.ends.iter().rev() {
            if end - start >= left {
                return Some(end - left);
            }
            left -= end - start;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn like_a_set_of_numbers(steps in prop::collection::vec((0u32..60, 0u32..12, any::<bool>()), 1..60)) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (start, len, remove) in steps {
                if remove {
                    ranges.remove_below(start / 3);
                    model.retain(|number| *number >= start / 3);
                    continue;
                }
                let mut fresh = Vec::new();
                ranges.insert(start..start + len, |range| fresh.extend(range));
                let expected: Vec<u32> = (start..start + len).filter(|number| model.insert(*number)).collect();
                prop_assert_eq!(fresh, expected);
                let all: Vec<u32> = ranges.ends.iter().flat_map(|(&start, &end)| start..end).collect();
                prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.nth_largest(3), all.iter().rev().nth(2).copied());
                for number in 0..75 {
                    prop_assert_eq!(ranges.around(number).is_some(), model.contains(&number));
                }
                let touching = ranges.ends.iter().zip(ranges.ends.iter().skip(1)).any(|((_, end), (start, _))| end >= start);
                prop_assert!(!touching);
            }
        }
    }
}
