//! Which bytes of a file have arrived, counted once however often they come.

use std::ops::Range;

/// Ranges apart from each other, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    runs: Vec<Range<u64>>,
    total: u64,
}

impl Coverage {
    /// Adds a range; returns how many of its bytes were not there.
    pub(crate) fn add(&mut self, range: &Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let first = self.runs.partition_point(|run| run.end < range.start);
        let after = self.runs.partition_point(|run| run.start <= range.end);
        let touched = &self.runs[first..after];
        let before: u64 = touched.iter().map(|run| run.end - run.start).sum();
        let start = touched.first().map_or(range.start, |run| run.start.min(range.start));
        let end = touched.last().map_or(range.end, |run| run.end.max(range.end));
        self.runs.splice(first..after, std::iter::once(start..end));
        let fresh = (end - start) - before;
        self.total += fresh;
        fresh
    }

    /// How many bytes there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What of a range is not there, ascending.
    pub(crate) fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        let first = self.runs.partition_point(|run| run.end <= range.start);
        for run in self.runs[first..].iter().take_while(|run| run.start < range.end) {
            if run.start > at {
                gaps.push(at..run.start);
            }
            at = run.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Whether all of a range is there.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        let at = self.runs.partition_point(|run| run.end <= range.start);
        range.is_empty() || self.runs.get(at).is_some_and(|run| run.start <= range.start && range.end <= run.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(added in proptest::collection::vec((0u64..60, 0u64..12), 0..40), asked in (0u64..60, 0u64..12)) {
            let (mut coverage, mut bitmap) = (Coverage::default(), [false; 80]);
            for (start, length) in added {
                let span = start as usize..(start + length) as usize;
                let fresh = bitmap[span.clone()].iter().filter(|bit| !**bit).count() as u64;
                prop_assert_eq!(coverage.add(&(start..start + length)), fresh);
                bitmap[span].fill(true);
            }
            prop_assert_eq!(coverage.total(), bitmap.iter().filter(|bit| **bit).count() as u64);
            let asked = asked.0..asked.0 + asked.1;
            let mut gaps = [false; 80];
            for gap in coverage.missing(&asked) {
                gaps[gap.start as usize..gap.end as usize].fill(true);
            }
            for at in 0..80 {
                prop_assert_eq!(gaps[at], asked.contains(&(at as u64)) && !bitmap[at]);
            }
            prop_assert_eq!(coverage.has(&asked), !gaps.contains(&true));
        }
    }
}
