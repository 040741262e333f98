//! What was written to a stream and is not yet acknowledged: where its bytes lie, which have been sent, which have arrived.
//!
//! ```text
//!   chunks:  [ acked ][ partly acked ][ in flight ][ in flight | unsent ][ unsent ]
//!                                                              ^ cursor
//! ```
//! An ordered stream's chunks are filled by copying writes, a placed stream's are blocks taken over whole. A packet never crosses a chunk, so it is
//! encrypted straight from one slice. A chunk's memory goes back as soon as all of it is acknowledged.

use std::collections::VecDeque;

use haul_units::BlockRanges;

use super::data::{Memory, Place};

/// Ordered streams cut their data into chunks of this size: small enough to be freed soon, large enough for whole trains.
pub(super) const ORDERED_CHUNK: usize = 256 << 10;
/// Buffers kept for reuse.
pub(super) const RELEASED_MAX: usize = 32;

#[derive(Debug)]
struct Chunk {
    offset: u64,
    data: Memory,
    /// Length, also when `data` has been given back.
    len: u32,
    acked: BlockRanges,
    acked_bytes: u32,
}

/// Bytes of one chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    chunk: usize,
    start: u32,
    pub(super) len: u32,
    /// They are its last.
    pub(super) ends_chunk: bool,
}

impl Piece {
    /// Its first bytes, so many of them at most.
    #[inline]
    pub(super) fn at_most(self, room: usize) -> Self {
        let is_whole = self.len as usize <= room;
        Self { len: (self.len as usize).min(room) as u32, ends_chunk: self.ends_chunk && is_whole, ..self }
    }
}

/// Chunks, in the order of their offsets.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    all: VecDeque<Chunk>,
    /// Chunks before this index have been sent whole.
    cursor_chunk: usize,
    /// Bytes of the chunk at the cursor that have been sent.
    cursor_byte: u32,
}

impl Chunks {
    /// Copies `data`, which belongs at `offset`, where the last chunk ends. Memory comes from `released` where there is some.
    pub(super) fn append(&mut self, mut offset: u64, mut data: &[u8], released: &mut Vec<Vec<u8>>) {
        while !data.is_empty() {
            // A chunk whose memory has been given back has ended, whatever its length.
            let tail = self.all.back_mut().filter(|chunk| chunk.data.len() == chunk.len as usize);
            let Some((Memory::Growing(memory), len)) = tail.map(|chunk| (&mut chunk.data, &mut chunk.len)) else {
                self.push(offset, Memory::Growing(chunk_memory(data.len(), released)), 0);
                continue;
            };
            let (now, later) = data.split_at(ORDERED_CHUNK.saturating_sub(memory.len()).min(data.len()));
            memory.extend_from_slice(now);
            *len = memory.len() as u32;
            offset += now.len() as u64;
            data = later;
            self.fix_full();
        }
    }

    /// A chunk that is full is no longer written to.
    fn fix_full(&mut self) {
        if let Some(chunk) = self.all.back_mut().filter(|chunk| chunk.len as usize >= ORDERED_CHUNK) {
            chunk.data.fix();
        }
    }

    /// Takes over `len` bytes that belong at `offset`, behind all others.
    pub(super) fn push(&mut self, offset: u64, data: Memory, len: u32) {
        self.all.push_back(Chunk { offset, data, len, acked: BlockRanges::default(), acked_bytes: 0 });
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The bytes of a piece, and the memory that they lie in, and where, if it is no longer written to; nothing, once it has been given back.
    #[inline]
    pub(super) fn bytes(&self, piece: Piece) -> Option<(&[u8], Option<Place<'_>>)> {
        let (start, memory) = (piece.start as usize, &self.all.get(piece.chunk)?.data);
        let fixed = if let Memory::Fixed(fixed) = memory { Some((fixed, start)) } else { None };
        Some((memory.get(start..start + piece.len as usize)?, fixed))
    }

    /// Where in the stream a piece begins.
    #[inline]
    pub(super) fn offset(&self, piece: Piece) -> u64 {
        self.all.get(piece.chunk).map_or(0, |chunk| chunk.offset) + u64::from(piece.start)
    }

    /// What of the first chunk that has not been sent whole is unsent.
    #[inline]
    pub(super) fn unsent(&mut self) -> Option<Piece> {
        while self.all.get(self.cursor_chunk).is_some_and(|chunk| self.cursor_byte == chunk.len)
            && self.cursor_chunk + 1 < self.all.len()
        {
            self.cursor_chunk += 1;
            self.cursor_byte = 0;
        }
        let chunk = self.all.get(self.cursor_chunk)?;
        let (start, len) = (self.cursor_byte, chunk.len - self.cursor_byte);
        Some(Piece { chunk: self.cursor_chunk, start, len, ends_chunk: true })
    }

    /// So many bytes of that have been sent.
    #[inline]
    pub(super) fn sent(&mut self, len: u32) {
        self.cursor_byte += len;
    }

    /// `len` bytes at `offset` have arrived. Memory that is done with goes to `released`. Returns bytes newly acknowledged.
    pub(super) fn acknowledge(&mut self, offset: u64, len: u64, released: &mut Vec<Vec<u8>>) -> u64 {
        let mut newly = 0;
        let (mut at, stop) = (offset, offset + len);
        while at < stop {
            let Some(index) = self.index(at) else { break };
            let chunk = &mut self.all[index];
            let start = (at - chunk.offset) as u32;
            let upto = (stop - chunk.offset).min(u64::from(chunk.len)) as u32;
            let new = chunk.acked.insert(start..upto);
            chunk.acked_bytes += new;
            newly += u64::from(new);
            at = chunk.offset + u64::from(upto);
            if chunk.acked_bytes == chunk.len && new > 0 {
                release(std::mem::take(&mut chunk.data), released);
            }
        }
        self.drop_front(released);
        newly
    }

    /// The first part of a range that has not been acknowledged, as far as the range lies in the chunk where it begins.
    pub(super) fn first_missing(&self, offset: u64, len: u32) -> Option<Piece> {
        let index = self.index(offset)?;
        let chunk = &self.all[index];
        let start = (offset - chunk.offset) as u32;
        let stop = start.saturating_add(len).min(chunk.len);
        let missing = chunk.acked.missing_in(start..stop).next()?;
        let (len, ends_chunk) = (missing.end - missing.start, missing.end == chunk.len);
        Some(Piece { chunk: index, start: missing.start, len, ends_chunk })
    }

    /// The chunk that holds the byte at `offset`.
    #[inline]
    fn index(&self, offset: u64) -> Option<usize> {
        let index = self.all.partition_point(|chunk| chunk.offset + u64::from(chunk.len) <= offset);
        self.all.get(index).filter(|chunk| chunk.offset <= offset).map(|_| index)
    }

    /// Forgets chunks that were sent whole and have arrived.
    fn drop_front(&mut self, released: &mut Vec<Vec<u8>>) {
        while let Some(chunk) = self.all.front() {
            let sent_whole = self.cursor_chunk > 0 || self.cursor_byte == chunk.len;
            if chunk.acked_bytes != chunk.len || !sent_whole {
                return;
            }
            if let Some(chunk) = self.all.pop_front() {
                release(chunk.data, released);
            }
            if self.cursor_chunk > 0 {
                self.cursor_chunk -= 1;
            } else {
                self.cursor_byte = 0;
            }
        }
    }
}

/// Memory for a chunk of an ordered stream: small for small writes, else one that comes back.
fn chunk_memory(wanted: usize, released: &mut Vec<Vec<u8>>) -> Vec<u8> {
    while wanted >= ORDERED_CHUNK / 4
        && let Some(mut memory) = released.pop()
    {
        // What is too small for a chunk only stands in the way of what is not.
        if memory.capacity() >= ORDERED_CHUNK {
            memory.clear();
            return memory;
        }
    }
    // Twice as much as asked for, so that a stream of middling writes gets whole chunks soon.
    Vec::with_capacity((wanted * 2).clamp(4096, ORDERED_CHUNK))
}

/// Keeps memory that is done with for reuse, within bounds.
fn release(memory: Memory, released: &mut Vec<Vec<u8>>) {
    if let Some(memory) = memory.into_vec()
        && memory.capacity() > 0
        && released.len() < RELEASED_MAX
    {
        released.push(memory);
    }
}
