//! A set of numbers kept as ranges: bytes of a file that are there, packets that have arrived.
//!
//! A peer may decide how many ranges there are, millions in a file with holes: so they lie in a tree, and an operation costs the logarithm of their number,
//! and what it joins. For the few ranges of one block there are [`BlockRanges`](crate::BlockRanges).

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// Ranges, joined where they touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Start to end; apart from each other.
    runs: BTreeMap<u64, u64>,
    /// Sum of the lengths.
    total: u64,
}

impl Ranges {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many ranges there are, joined ones counted once.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How many numbers there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds a range; returns how many of its numbers are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        let before = self.total;
        self.insert_telling(range, |_| {});
        self.total - before
    }

    /// Adds a range that is new as a whole; false, and no change, where a part of it is in the set already.
    pub fn insert_new(&mut self, range: Range<u64>) -> bool {
        let is_new = self.is_disjoint(&range);
        if is_new {
            self.insert(range);
        }
        is_new
    }

    /// Adds a range and tells the parts of it that are new, ascending.
    pub fn insert_telling(&mut self, range: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        if range.is_empty() {
            return;
        }
        let mut tell = |part: Range<u64>| {
            if !part.is_empty() {
                self.total += part.end - part.start;
                fresh(part);
            }
        };
        let (mut start, mut end, mut at) = (range.start, range.end, range.start);
        if let Some((&before, &before_end)) = self.runs.range(..=range.start).next_back()
            && before_end >= range.start
        {
            start = before;
            end = end.max(before_end);
            at = before_end;
        }
        while let Some((&next, &next_end)) = self.runs.range((Bound::Excluded(start), Bound::Included(end))).next() {
            tell(at..next.min(range.end));
            at = next_end;
            end = end.max(next_end);
            self.runs.remove(&next);
        }
        tell(at..range.end);
        self.runs.insert(start, end);
    }

    /// Forgets all below a number.
    pub fn remove_below(&mut self, number: u64) {
        while let Some(entry) = self.runs.first_entry().filter(|entry| *entry.key() < number) {
            let (start, end) = entry.remove_entry();
            self.total -= end.min(number) - start;
            if end > number {
                self.runs.insert(number, end);
            }
        }
    }

    /// Whether all of a range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.around(range.start).is_some_and(|run| range.end <= run.end)
    }

    /// Whether nothing of a range is in the set.
    pub fn is_disjoint(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.runs.range(..range.end).next_back().is_none_or(|(_, &end)| end <= range.start)
    }

    /// What of a range is not in the set, ascending.
    pub fn missing_in(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = range.end;
        let mut at = self.around(range.start).map_or(range.start, |run| run.end);
        let mut inside = self.runs.range(at.min(end)..end);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (stop, next) = inside.next().map_or((end, end), |(&start, &end)| (start, end));
            Some(std::mem::replace(&mut at, next)..stop)
        })
    }

    /// The range that holds a number.
    pub fn around(&self, number: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.runs.range(..=number).next_back()?;
        (number < end).then_some(start..end)
    }

    /// The first range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.runs.first_key_value().map(|(&start, &end)| start..end)
    }

    /// The nth largest number of the set, from 1.
    pub fn nth_largest(&self, n: u64) -> Option<u64> {
        let mut left = n;
        for (&start, &end) in self.runs.iter().rev() {
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

    #[derive(Debug, Clone)]
    enum Step {
        Insert(Range<u64>),
        InsertNew(Range<u64>),
        RemoveBelow(u64),
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0u64..60, 0u64..12).prop_map(|(start, length)| start..start + length)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => range().prop_map(Step::Insert),
            4 => range().prop_map(Step::InsertNew),
            1 => (0u64..20).prop_map(Step::RemoveBelow),
        ]
    }

    /// Does it to both, and compares what is said of it.
    fn take(ranges: &mut Ranges, model: &mut BTreeSet<u64>, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Insert(range) => {
                let mut told = Vec::new();
                let mut other = ranges.clone();
                ranges.insert_telling(range.clone(), |part| told.extend(part));
                let expected: Vec<u64> = range.clone().filter(|number| model.insert(*number)).collect();
                prop_assert_eq!(&told, &expected);
                prop_assert_eq!(other.insert(range), expected.len() as u64);
                prop_assert_eq!(&*ranges, &other);
            }
            Step::InsertNew(range) => {
                let is_new = range.clone().all(|number| !model.contains(&number));
                prop_assert_eq!(ranges.insert_new(range.clone()), is_new);
                if is_new {
                    model.extend(range);
                }
            }
            Step::RemoveBelow(number) => {
                ranges.remove_below(number);
                model.retain(|kept| *kept >= number);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn like_a_set_of_numbers(steps in prop::collection::vec(step(), 1..60), probe in range()) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for step in steps {
                take(&mut ranges, &mut model, step)?;
                let all: Vec<u64> = ranges.runs.iter().flat_map(|(&start, &end)| start..end).collect();
                prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((ranges.total(), ranges.is_empty()), (all.len() as u64, all.is_empty()));
                prop_assert_eq!(ranges.nth_largest(3), all.iter().rev().nth(2).copied());
                let touching = ranges.runs.iter().zip(ranges.runs.iter().skip(1)).any(|((_, end), (start, _))| end >= start);
                prop_assert!(!touching);
                let inside: Vec<bool> = probe.clone().map(|number| model.contains(&number)).collect();
                prop_assert_eq!(ranges.contains(&probe), !inside.contains(&false));
                prop_assert_eq!(ranges.is_disjoint(&probe), !inside.contains(&true));
                let missing: Vec<u64> = ranges.missing_in(probe.clone()).flatten().collect();
                prop_assert_eq!(missing, probe.clone().filter(|number| !model.contains(number)).collect::<Vec<_>>());
                for number in 0..75 {
                    let run = ranges.around(number);
                    prop_assert_eq!(run.is_some(), model.contains(&number));
                    prop_assert!(run.is_none_or(|run| run.contains(&number)));
                }
            }
        }
    }

    #[test]
    fn ranges_are_joined_where_they_touch() {
        let mut ranges = Ranges::default();
        assert_eq!((ranges.insert(0..1), ranges.insert(2..3), ranges.runs()), (1, 1, 2));
        assert_eq!((ranges.insert(0..3), ranges.runs(), ranges.first()), (1, 1, Some(0..3)));
        assert_eq!(ranges.missing_in(Range { start: 5, end: 4 }).next(), None, "of what ends before it begins");
    }
}
