//! Which blocks of a stream are complete.

use std::collections::VecDeque;

/// All below a number, and some above it: a bit for each, up to [`MAX_AHEAD`] of them.
#[derive(Debug, Default)]
pub(super) struct Completed {
    /// All blocks below this multiple of 64 are complete.
    base: u64,
    /// Bits of those from there on.
    words: VecDeque<u64>,
}

impl Completed {
    pub(super) fn contains(&self, index: u64) -> bool {
        let Some(ahead) = index.checked_sub(self.base) else { return true };
        let word = usize::try_from(ahead / 64).ok().and_then(|at| self.words.get(at));
        word.is_some_and(|word| word & (1 << (ahead % 64)) != 0)
    }

    /// Whether the block may be begun: blocks far ahead of one that is missing are not noted.
    pub(super) fn reaches(&self, index: u64) -> bool {
        index.saturating_sub(self.base) < MAX_AHEAD
    }

    pub(super) fn insert(&mut self, index: u64) {
        let Some(ahead) = index.checked_sub(self.base).filter(|&ahead| ahead < MAX_AHEAD) else { return };
        let at = (ahead / 64) as usize;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        if let Some(word) = self.words.get_mut(at) {
            *word |= 1 << (ahead % 64);
        }
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.base += 64;
        }
    }

    /// Memory that it takes.
    pub(super) fn held(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// How far complete blocks may be ahead of the first incomplete one: 1 GiB of blocks of 4 KiB, 32 KiB of bits.
const MAX_AHEAD: u64 = 1 << 18;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_set(indices in prop::collection::vec(0u64..600, 0..400)) {
            let (mut completed, mut set) = (Completed::default(), BTreeSet::new());
            for index in indices {
                prop_assert_eq!(completed.contains(index), set.contains(&index));
                completed.insert(index);
                set.insert(index);
            }
            prop_assert!((0..700).all(|index| completed.contains(index) == set.contains(&index)));
        }
    }

    #[test]
    fn what_is_far_ahead_costs_nothing() {
        let mut completed = Completed::default();
        completed.insert(u64::MAX);
        completed.insert(MAX_AHEAD);
        assert_eq!((completed.held(), completed.reaches(MAX_AHEAD), completed.reaches(MAX_AHEAD - 1)), (0, false, true));
        (0..MAX_AHEAD).for_each(|index| completed.insert(index));
        assert!(completed.contains(MAX_AHEAD - 1) && completed.reaches(MAX_AHEAD) && completed.words.is_empty());
    }
}
