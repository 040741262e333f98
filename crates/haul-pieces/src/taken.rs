//! Which parts of a file are written, counted over all files of a copy: parts that do not touch take memory, and the sender decides how many there are.
//!
//! An honest file has as many as it has holes, which may be millions: so they are not forbidden, but take their part of what a copy may have remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_units::Ranges;

use crate::block::Hash;

/// What a part takes in a tree that is half full: its start and its end, three times over.
const PART_BYTES: usize = 48;

/// What a piece that is remembered takes: offset, length and hash.
const PIECE_BYTES: usize = size_of::<(u64, u32, Hash)>();
/// Parts that every copy may have besides, in 3 MiB: one of files without holes has no more.
const FREE_PARTS: usize = 1 << 16;

/// The parts of all files of a copy that are not complete.
#[derive(Debug, Clone)]
pub struct Parts {
    runs: Arc<AtomicUsize>,
    /// Pieces that are to be read back.
    pieces: Arc<AtomicUsize>,
    /// So many of these are free.
    free_pieces: usize,
    /// The most memory that they took so far.
    most_bytes: Arc<AtomicUsize>,
}

impl Parts {
    /// None yet, of a copy that may remember so many pieces besides.
    pub fn new(free_pieces: usize) -> Self {
        Self { runs: Arc::default(), pieces: Arc::default(), free_pieces, most_bytes: Arc::default() }
    }

    /// Memory that they take, but for what every copy may have.
    pub fn bytes(&self) -> usize {
        let beyond = |count: &AtomicUsize, free| count.load(Ordering::Relaxed).saturating_sub(free);
        let parts = beyond(&self.runs, FREE_PARTS).saturating_mul(PART_BYTES);
        parts.saturating_add(beyond(&self.pieces, self.free_pieces).saturating_mul(PIECE_BYTES))
    }

    /// Whether they take more than ever before; asked again, only when it has become still more. Who takes no more than before is not to suffer by others that come.
    pub fn have_grown(&self) -> bool {
        let bytes = self.bytes();
        self.most_bytes.fetch_max(bytes, Ordering::Relaxed) < bytes
    }
}

/// One file's part of a count.
#[derive(Debug)]
struct Counted {
    own: usize,
    all: Arc<AtomicUsize>,
}

impl Counted {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        Self { own: 0, all: all.clone() }
    }

    fn set(&mut self, own: usize) {
        // Wraps to less where it has become less.
        self.all.fetch_add(own.wrapping_sub(self.own), Ordering::Relaxed);
        self.own = own;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The parts of one file.
#[derive(Debug)]
pub struct Taken {
    ranges: Ranges,
    parts: Counted,
    pieces: Counted,
}

impl Taken {
    /// What of a file is there already, counted among `all`.
    pub fn new(ranges: Ranges, all: &Parts) -> Self {
        let mut parts = Counted::new(&all.runs);
        parts.set(ranges.runs());
        Self { ranges, parts, pieces: Counted::new(&all.pieces) }
    }

    /// Adds `start..end`; false, and no change, where a part of it is there already.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        let is_new = self.ranges.insert_new(start..end);
        self.parts.set(self.ranges.runs());
        is_new
    }

    /// So many of its pieces are remembered until they are read back.
    pub fn remembers(&mut self, pieces: usize) {
        self.pieces.set(pieces);
    }

    /// Bytes in them.
    pub fn total(&self) -> u64 {
        self.ranges.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_over_all_files_until_these_are_over() {
        let all = Parts::new(10);
        let parts = || all.runs.load(Ordering::Relaxed);
        let mut earlier = Ranges::default();
        assert!(earlier.insert_new(0..5) && earlier.insert_new(10..15));
        let resumed = Taken::new(earlier, &all);
        let mut file = Taken::new(Ranges::default(), &all);
        assert!(file.insert(0, 1) && file.insert(2, 3));
        assert_eq!((parts(), resumed.total(), file.total()), (4, 10, 2));
        assert!(!file.insert(2, 3), "it is there");
        assert_eq!(parts(), 4);
        assert!(file.insert(1, 2), "which joins them");
        assert_eq!((parts(), file.total()), (3, 3));
        drop(resumed);
        assert_eq!(parts(), 1);
        drop(file);
        assert_eq!(parts(), 0);
    }

    #[test]
    fn what_every_copy_may_have_is_free_and_growth_is_told_once() {
        let all = Parts::new(10);
        let mut file = Taken::new(Ranges::default(), &all);
        for at in 0..FREE_PARTS as u64 {
            assert!(file.insert(2 * at, 2 * at + 1));
        }
        file.remembers(10);
        assert!(all.bytes() == 0 && !all.have_grown());
        assert!(file.insert(1 << 40, (1 << 40) + 1));
        assert!(all.bytes() == PART_BYTES && all.have_grown() && !all.have_grown());
        file.remembers(12);
        assert!(all.bytes() == PART_BYTES + 2 * PIECE_BYTES && all.have_grown());
        drop(file);
        assert!(all.bytes() == 0 && !all.have_grown());
    }
}
