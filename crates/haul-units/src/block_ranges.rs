//! A small set of byte ranges inside one block: sorted, disjoint, not adjacent.
//!
//! A block holds at most a few hundred packets, and what arrives mostly extends the last range, so a sorted vector beats any tree. Each packet of data passes here, at both ends:
//! what is here is inlined. Where there may be any number of ranges, [`Ranges`](crate::Ranges) are for it.

use std::ops::Range;

/// Byte ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockRanges {
    ranges: Vec<Range<u32>>,
}

impl BlockRanges {
    /// How many ranges there are, joined ones counted once.
    #[inline]
    pub fn runs(&self) -> usize {
        self.ranges.len()
    }

    /// Memory that they take besides the set itself.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u32>>()
    }

    /// Adds `range`; returns how many of its bytes were not in the set.
    #[inline]
    pub fn insert(&mut self, range: Range<u32>) -> u32 {
        if range.is_empty() {
            return 0;
        }
        if let Some(last) = self.ranges.last_mut()
            && range.start == last.end
        {
            last.end = range.end;
            return range.len() as u32;
        }
        self.join(range)
    }

    /// Adds what does not go on where the last range ends.
    fn join(&mut self, range: Range<u32>) -> u32 {
        // Ranges touched: those that end at or after our start, and start at or before our end.
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let after = first + self.ranges[first..].partition_point(|r| r.start <= range.end);
        let covered: u32 = self.ranges[first..after].iter().map(|r| overlap(r, &range)).sum();
        let new = range.len() as u32 - covered;
        if first == after {
            self.ranges.insert(first, range);
        } else {
            let merged = self.ranges[first].start.min(range.start)..self.ranges[after - 1].end.max(range.end);
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
        new
    }

    /// Whether no byte of `range` is in the set.
    #[inline]
    pub fn is_disjoint(&self, range: &Range<u32>) -> bool {
        // What is new usually lies behind everything that is there.
        match self.ranges.last() {
            None => true,
            _ if range.is_empty() => true,
            Some(last) if range.start >= last.end => true,
            _ => {
                let first = self.ranges.partition_point(|r| r.end <= range.start);
                self.ranges.get(first).is_none_or(|r| r.start >= range.end)
            }
        }
    }

    /// Whether all of `range` is in the set.
    #[cfg(test)]
    fn contains(&self, range: &Range<u32>) -> bool {
        let first = self.ranges.partition_point(|r| r.end <= range.start);
        range.is_empty() || self.ranges.get(first).is_some_and(|r| r.start <= range.start && r.end >= range.end)
    }

    /// The parts of `range` that are not in the set, in order.
    #[inline]
    pub fn missing_in(&self, range: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let first = self.ranges.partition_point(|r| r.end <= range.start);
        let mut at = range.start;
        let mut inside = self.ranges[first..].iter();
        std::iter::from_fn(move || {
            while at < range.end {
                let next = inside.next().cloned().unwrap_or(range.end..range.end);
                let hole = at..next.start.min(range.end);
                at = next.end.max(at);
                if !hole.is_empty() {
                    return Some(hole);
                }
            }
            None
        })
    }

    /// End of the range that begins at zero: how far the set is complete.
    #[inline]
    pub fn prefix(&self) -> u32 {
        self.ranges.first().filter(|r| r.start == 0).map_or(0, |r| r.end)
    }

    /// End of the last range: nothing lies beyond.
    #[inline]
    pub fn end(&self) -> u32 {
        self.ranges.last().map_or(0, |r| r.end)
    }

    /// Bytes in the set.
    #[cfg(test)]
    fn bytes(&self) -> u32 {
        self.ranges.iter().map(|r| r.len() as u32).sum()
    }
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> u32 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_row_of_flags(steps in prop::collection::vec((0..100u32, 0..30u32), 1..60), probe in (0..100u32, 0..30u32)) {
            let (mut set, mut flags) = (BlockRanges::default(), [false; 160]);
            for (start, len) in steps {
                let new = (start..start + len).filter(|&i| !std::mem::replace(&mut flags[i as usize], true)).count() as u32;
                prop_assert_eq!(set.insert(start..start + len), new);
                prop_assert!(set.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            let probe = probe.0..probe.0 + probe.1;
            let inside: Vec<bool> = probe.clone().map(|i| flags[i as usize]).collect();
            prop_assert_eq!(set.is_disjoint(&probe), !inside.contains(&true));
            prop_assert_eq!(set.contains(&probe), !inside.contains(&false));
            let missing: Vec<u32> = set.missing_in(probe.clone()).flatten().collect();
            prop_assert_eq!(missing, probe.filter(|&i| !flags[i as usize]).collect::<Vec<_>>());
            prop_assert_eq!(set.end() as usize, flags.iter().rposition(|&f| f).map_or(0, |last| last + 1));
            let begins = (0..160).filter(|&i| flags[i] && (i == 0 || !flags[i - 1])).count();
            prop_assert_eq!(set.runs(), begins);
            prop_assert_eq!(set.prefix() as usize, flags.iter().take_while(|&&f| f).count());
            prop_assert_eq!(set.bytes() as usize, flags.iter().filter(|&&f| f).count());
        }
    }
}
