//! One block on its way in: which of its bytes are there.

/// The largest block in bytes.
pub const MAX_BLOCK: usize = 2 << 20;

/// Pieces apart from each other in one block. In the smallest packets a block is 1,800 of them, so half as many gaps are the most there can be.
const MAX_PIECES: usize = 2048;

/// A block in the making.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// At least as long as the farthest byte asked for; bytes beyond what has arrived mean nothing.
    pub(super) buffer: Vec<u8>,
    /// What has arrived: ranges in order, apart from each other. One where packets come in order.
    ranges: Vec<(usize, usize)>,
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
        self.ranges.len() < MAX_PIECES
    }

    /// Memory that it takes.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() + self.ranges.capacity() * size_of::<(usize, usize)>() + size_of::<Self>()
    }

    /// Whether the block may have bytes up to `end`.
    pub(super) fn admits(&self, end: usize) -> bool {
        end <= self.len.unwrap_or(MAX_BLOCK)
    }

    /// Whether none of these bytes has arrived.
    pub(super) fn is_vacant(&self, start: usize, end: usize) -> bool {
        self.missing(start, end).next() == Some((start, end))
    }

    /// What of these bytes has not arrived: ranges in order.
    pub(super) fn missing(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
        let first = self.ranges.partition_point(|&(_, have_end)| have_end <= start);
        let have = self.ranges.get(first..).unwrap_or_default().iter().copied();
        let mut cursor = start;
        have.take_while(move |&(have_start, _)| have_start < end).map(Some).chain([None]).filter_map(move |range| {
            let (gap_end, next) = range.map_or((end, end), |(have_start, have_end)| (have_start.min(end), have_end.min(end)));
            let gap = (cursor, gap_end);
            cursor = cursor.max(next);
            (gap.0 < gap.1).then_some(gap)
        })
    }

    /// These bytes, all of them missing until now, are in the buffer.
    pub(super) fn fill(&mut self, start: usize, end: usize) {
        self.have_bytes += end - start;
        // The usual case: it goes on where it stopped.
        if let Some(last) = self.ranges.last_mut().filter(|last| last.1 == start) {
            last.1 = end;
            return;
        }
        let at = self.ranges.partition_point(|&(have_start, _)| have_start < start);
        let joins_previous = at.checked_sub(1).and_then(|i| self.ranges.get(i)).is_some_and(|previous| previous.1 == start);
        let joins_next = self.ranges.get(at).is_some_and(|next| next.0 == end);
        match (joins_previous, joins_next) {
            (true, true) => {
                let next = self.ranges.remove(at);
                self.ranges[at - 1].1 = next.1;
            }
            (true, false) => self.ranges[at - 1].1 = end,
            (false, true) => self.ranges[at].0 = start,
            (false, false) => self.ranges.insert(at, (start, end)),
        }
    }

    /// The block ends at `len`. A peer that has sent bytes beyond it, or another end, is not believed.
    pub(super) fn end_at(&mut self, len: usize) {
        if self.len.is_none() && self.ranges.last().is_none_or(|last| last.1 <= len) {
            self.len = Some(len);
        }
    }

    /// The length of the block, once all of it is there.
    pub(super) fn complete_len(&self) -> Option<usize> {
        self.len.filter(|&len| len == self.have_bytes)
    }
}
