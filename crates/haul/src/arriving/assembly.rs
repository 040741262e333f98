//! One block on its way in: which of its bytes are there.

use std::ops::Range;

use haul_units::BlockRanges;

/// The largest block in bytes.
pub const MAX_BLOCK: usize = 2 << 20;

/// Pieces apart from each other in one block. In the smallest packets a block is 1,800 of them, so half as many gaps are the most there can be.
const MAX_PIECES: usize = 2048;

/// A block in the making.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// At least as long as the farthest byte asked for; bytes beyond what has arrived mean nothing.
    pub(super) buffer: Vec<u8>,
    /// What has arrived. One range where packets come in order.
    ranges: BlockRanges,
    have_bytes: usize,
    len: Option<usize>,
}

impl Assembly {
    /// One that fills `buffer`.
    pub(super) fn new(buffer: Vec<u8>) -> Self {
        Self { buffer, ..Self::default() }
    }

    /// Whether more pieces can be told apart; an honest peer's are packets, and there are fewer of them in a block.
    pub(super) fn takes_pieces(&self) -> bool {
        self.ranges.runs() < MAX_PIECES
    }

    /// Memory that it takes.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() + self.ranges.heap_bytes() + size_of::<Self>()
    }

    /// Whether the block may have bytes up to `end`.
    pub(super) fn admits(&self, end: usize) -> bool {
        end <= self.len.unwrap_or(MAX_BLOCK)
    }

    /// Whether none of these bytes has arrived.
    pub(super) fn is_vacant(&self, start: usize, end: usize) -> bool {
        self.ranges.is_disjoint(&range(start, end))
    }

    /// What of these bytes has not arrived: ranges in order.
    pub(super) fn missing(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
        self.ranges.missing_in(range(start, end)).map(|gap| (gap.start as usize, gap.end as usize))
    }

    /// These bytes, all of them missing until now, are in the buffer.
    pub(super) fn fill(&mut self, start: usize, end: usize) {
        self.have_bytes += self.ranges.insert(range(start, end)) as usize;
    }

    /// The block ends at `len`. A peer that has sent bytes beyond it, or another end, is not believed.
    pub(super) fn end_at(&mut self, len: usize) {
        if self.len.is_none() && self.ranges.end() as usize <= len {
            self.len = Some(len);
        }
    }

    /// The length of the block, once all of it is there.
    pub(super) fn complete_len(&self) -> Option<usize> {
        self.len.filter(|&len| len == self.have_bytes)
    }
}

/// What lies in a block, which is far smaller than 4 GiB.
fn range(start: usize, end: usize) -> Range<u32> {
    start as u32..end as u32
}
