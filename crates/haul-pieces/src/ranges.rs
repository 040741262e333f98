//! A set of byte ranges: which parts of a file have arrived.

use std::collections::BTreeMap;

/// Ranges of a file, joined where they touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Start to end; apart from each other.
    runs: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `start..end`; false, and no change, where a part of it is in the set already.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        debug_assert!(start < end);
        let before = self.runs.range(..end).next_back().map(|(&s, &e)| (s, e));
        let mut joined = (start, end);
        if let Some((s, e)) = before {
            if e > start {
                return false;
            }
            if e == start {
                joined.0 = s;
            }
        }
        if let Some(e) = self.runs.remove(&end) {
            joined.1 = e;
        }
        self.runs.insert(joined.0, joined.1);
        true
    }

    /// How many ranges there are, joined ones counted once.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Sum of the lengths.
    pub fn total(&self) -> u64 {
        self.runs.iter().map(|(start, end)| end - start).sum()
    }

    /// What of `0..size` is not in the set.
    pub fn missing(&self, size: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for (&start, &end) in &self.runs {
            if start > at {
                gaps.push((at, start.min(size)));
            }
            at = end;
        }
        if at < size {
            gaps.push((at, size));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(operations in proptest::collection::vec((0u64..60, 1u64..8), 0..40)) {
            let mut ranges = Ranges::default();
            let mut bitmap = [false; 70];
            for (start, length) in operations {
                let span = start as usize..(start + length) as usize;
                let free = !bitmap[span.clone()].contains(&true);
                prop_assert_eq!(ranges.insert(start, start + length), free);
                bitmap[span].fill(true);
                if !free {
                    return Ok(());
                }
                prop_assert_eq!(ranges.total(), bitmap.iter().filter(|&&bit| bit).count() as u64);
                let mut missing = [true; 70];
                for (start, end) in ranges.missing(70) {
                    missing[start as usize..end as usize].fill(false);
                }
                prop_assert_eq!(missing, bitmap);
            }
        }
    }
}
