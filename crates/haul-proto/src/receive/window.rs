//! Which packet numbers of a path have been received: a ring bitmap.
//!
//! One bit a packet, never a tree. The ring covers the numbers `base .. base + capacity`; it starts small and doubles up to 2^21 bits
//! (256 KiB, 2.1 M packets) while the packets between the oldest one still wanted and the newest do not fit. A number below `base` counts as received.

use std::ops::RangeInclusive;

/// Capacity to start with, in packets.
const START_BITS: u64 = 1 << 12;
/// Capacity at most, in packets: twice the design point of 1,000,000 in flight.
const MAX_BITS: u64 = 1 << 21;

/// Ring bitmap over packet numbers.
#[derive(Debug)]
pub struct PacketWindow {
    /// Bit `n % bits` stands for packet number `n`; the length is a power of two.
    words: Vec<u64>,
    /// Lowest number that the ring covers; a multiple of 64.
    base: u64,
    /// One more than the largest number received; 0 before the first.
    end: u64,
    /// Numbers below need not be remembered: reported, and the report confirmed.
    floor: u64,
}

impl Default for PacketWindow {
    fn default() -> Self {
        Self { words: vec![0; (START_BITS / 64) as usize], base: 0, end: 0, floor: 0 }
    }
}

impl PacketWindow {
    /// The largest number received.
    pub fn largest(&self) -> Option<u64> {
        self.end.checked_sub(1)
    }

    /// Lowest number worth reporting.
    pub fn floor(&self) -> u64 {
        self.floor.max(self.base)
    }

    /// Whether `number` has been received, or lies so far back that it counts as received.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        number < self.base || (number < self.end && self.bit(number))
    }

    /// Notes `number`; false if it had been received before.
    #[inline]
    pub fn insert(&mut self, number: u64) -> bool {
        if number < self.base {
            return false;
        }
        if number >= self.base + self.bits() {
            self.make_room(number);
        }
        let (word, mask) = self.locate(number);
        let new = self.words[word] & mask == 0;
        self.words[word] |= mask;
        self.end = self.end.max(number + 1);
        new
    }

    /// Nothing below `floor` need be reported again.
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor.min(self.end));
    }

    /// Runs of received numbers from the largest down to `lowest`, highest first.
    pub fn runs_down_to(&self, lowest: u64) -> Runs<'_> {
        Runs { window: self, lowest: lowest.max(self.base), next: self.end }
    }

    fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    fn locate(&self, number: u64) -> (usize, u64) {
        let bit = number & (self.bits() - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn bit(&self, number: u64) -> bool {
        let (word, mask) = self.locate(number);
        self.words[word] & mask != 0
    }

    fn make_room(&mut self, number: u64) {
        // What lies below the floor can go without a loss; growing keeps the rest.
        let wanted = number.saturating_sub(self.floor()) + 1;
        if wanted > self.bits() && self.bits() < MAX_BITS {
            self.grow(wanted.next_power_of_two().clamp(self.bits(), MAX_BITS));
        }
        if number >= self.base + self.bits() {
            self.slide(number);
        }
    }

    fn grow(&mut self, bits: u64) {
        let mut words = vec![0; (bits / 64) as usize];
        let mask = bits / 64 - 1;
        for word in self.base / 64..self.end.div_ceil(64) {
            words[(word & mask) as usize] = self.words[(word & (self.bits() / 64 - 1)) as usize];
        }
        self.words = words;
    }

    /// Moves the ring up until it covers `number`, clearing the words that change their meaning.
    fn slide(&mut self, number: u64) {
        let base = (number / 64 + 1) * 64 - self.bits();
        let old_words = self.base / 64;
        let count = (base / 64 - old_words).min(self.words.len() as u64);
        let mask = self.words.len() as u64 - 1;
        for word in old_words..old_words + count {
            self.words[(word & mask) as usize] = 0;
        }
        self.base = base;
    }

    /// The number of the topmost bit below `from` whose value is `value`, not below `lowest`.
    fn find_down(&self, from: u64, lowest: u64, value: bool) -> Option<u64> {
        let mut from = from;
        while from > lowest {
            let number = from - 1;
            let (word, _) = self.locate(number);
            let bits = if value { self.words[word] } else { !self.words[word] };
            // Keep the bits of this word at and below `number`.
            let bits = bits << (63 - number % 64);
            if bits != 0 {
                let found = number - u64::from(bits.leading_zeros());
                return (found >= lowest).then_some(found);
            }
            from = number / 64 * 64;
        }
        None
    }
}

/// Runs of received packet numbers, highest first.
#[derive(Debug)]
pub struct Runs<'a> {
    window: &'a PacketWindow,
    lowest: u64,
    /// One more than the next number to look at.
    next: u64,
}

impl Iterator for Runs<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let top = self.window.find_down(self.next, self.lowest, true)?;
        let below = self.window.find_down(top, self.lowest, false);
        let low = below.map_or(self.lowest, |number| number + 1);
        self.next = low;
        Some(low..=top)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn naive_runs(set: &BTreeSet<u64>, lowest: u64) -> Vec<RangeInclusive<u64>> {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for &number in set.range(lowest..).rev() {
            match runs.last_mut() {
                Some(run) if *run.start() == number + 1 => *run = number..=*run.end(),
                _ => runs.push(number..=number),
            }
        }
        runs
    }

    proptest! {
        /// Against a set that remembers everything, over steps that reorder, repeat and leap.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0..400u64, any::<bool>()), 1..600), leap in 0..20_000u64) {
            let (mut window, mut set) = (PacketWindow::default(), BTreeSet::new());
            let mut front = 500;
            for (index, (back, advance)) in steps.into_iter().enumerate() {
                front += u64::from(advance) * (1 + if index == 300 { leap } else { 0 });
                let number = front - back;
                prop_assert_eq!(window.contains(number), set.contains(&number));
                prop_assert_eq!(window.insert(number), set.insert(number));
            }
            prop_assert_eq!(window.largest(), set.last().copied());
            let lowest = front.saturating_sub(2000);
            prop_assert_eq!(window.runs_down_to(lowest).collect::<Vec<_>>(), naive_runs(&set, lowest));
        }
    }

    #[test]
    fn far_beyond_the_ring_the_past_counts_as_received() {
        let mut window = PacketWindow::default();
        assert!(window.insert(3));
        assert!(window.insert(u64::MAX / 2));
        assert!(window.contains(3) && window.contains(4));
        assert!(!window.insert(4));
        assert!(!window.contains(u64::MAX / 2 - 1));
    }

    #[test]
    fn a_million_packets_in_flight_fit() {
        let mut window = PacketWindow::default();
        for number in (0..2_000_000).filter(|n| n % 100 != 0) {
            assert!(window.insert(number));
        }
        assert!(!window.contains(1_000_000) && window.contains(1_000_001));
        assert!(window.insert(0), "nothing is forgotten while the floor stays");
    }
}
