//! The sending half of a stream: what was written, what is in flight, what must be sent again.
//!
//! ```text
//!   chunks:  [ acked ][ partly acked ][ in flight ][ in flight | unsent ][ unsent ]
//!                                                              ^ cursor
//! ```
//! Data lies in chunks: an ordered stream's are filled by copying writes, a placed stream's are blocks taken over whole. A packet never crosses a
//! chunk, so it is encrypted straight from one slice. A chunk's memory goes back as soon as all of it is acknowledged. Lost ranges wait in a queue
//! and leave before new data, as new packets cut to today's packet size.

use std::collections::VecDeque;
use std::ops::Range;

use haul_units::BlockRanges;

use super::data::BlockData;
use crate::wire::{StreamId, StreamKind};

/// Ordered streams cut their data into chunks of this size: small enough to be freed soon, large enough for whole trains.
const ORDERED_CHUNK: usize = 256 << 10;
/// Buffers kept for reuse.
const RELEASED_MAX: usize = 32;

/// One run of bytes to send: a slice of one chunk, cut by the caller into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendRun<'a> {
    /// Which stream.
    pub stream: StreamId,
    /// Offset in the stream.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The stream ends after them (ordered streams).
    pub fin: bool,
    /// A block ends after them (placed streams).
    pub end: bool,
    /// They were sent before.
    pub again: bool,
}

#[derive(Debug)]
struct Chunk {
    offset: u64,
    data: BlockData,
    /// Length, also when `data` has been given back.
    len: u32,
    acked: BlockRanges,
    acked_bytes: u32,
}

/// A run to send, before its bytes are looked up.
#[derive(Debug, Clone, Copy)]
struct Cut {
    chunk: usize,
    start: usize,
    len: usize,
    offset: u64,
    fin: bool,
    end: bool,
    again: bool,
}

/// A range to send again.
#[derive(Debug, Clone, Copy)]
struct Lost {
    offset: u64,
    len: u32,
    /// Further copies to send when there is nothing else to do.
    copies: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    Open,
    /// The application has finished; the end is to be told.
    Wanted,
    InFlight,
    Acknowledged,
}

/// The sending half of one stream.
#[derive(Debug)]
pub struct SendHalf {
    id: StreamId,
    placed: bool,
    /// Higher is sooner; 128 is ordinary.
    pub(crate) priority: u8,
    /// It stands in its connection's schedule of streams with something new to send.
    pub(crate) queued: bool,
    /// It stands in its connection's queue of streams with something to send again.
    pub(crate) queued_again: bool,
    /// A write was refused, and the application waits to hear of room.
    pub(crate) starved: bool,
    chunks: VecDeque<Chunk>,
    /// Chunks before this index have been sent whole.
    cursor_chunk: usize,
    /// Bytes of the chunk at the cursor that have been sent.
    cursor_byte: u32,
    /// Offset at which the next write goes (ordered), or below which no block may lie (placed).
    end: u64,
    /// Bytes written.
    written: u64,
    /// Bytes sent for the first time: what credit counts.
    fresh: u64,
    max_fresh: u64,
    acked: u64,
    lost: VecDeque<Lost>,
    fin: Fin,
    reset: Option<u64>,
    stopped: Option<u64>,
}

impl SendHalf {
    /// A stream with nothing written, and the credit it starts with.
    pub fn new(id: StreamId, credit: u64) -> Self {
        Self {
            id,
            placed: id.kind() == Some(StreamKind::Placed),
            priority: 128,
            queued: false,
            queued_again: false,
            starved: false,
            chunks: VecDeque::new(),
            cursor_chunk: 0,
            cursor_byte: 0,
            end: 0,
            written: 0,
            fresh: 0,
            max_fresh: credit,
            acked: 0,
            lost: VecDeque::new(),
            fin: Fin::Open,
            reset: None,
            stopped: None,
        }
    }

    /// Copies `data` behind what was written; the caller has bounded it. Memory comes from `released` where there is some.
    pub fn write(&mut self, mut data: &[u8], released: &mut Vec<Vec<u8>>) {
        debug_assert!(!self.placed && self.is_writable());
        self.written += data.len() as u64;
        while !data.is_empty() {
            // A chunk whose memory has been given back has ended, whatever its length.
            let tail = self.chunks.back().filter(|chunk| chunk.data.len() == chunk.len as usize && chunk.data.is_owned());
            let room = tail.map_or(0, |chunk| ORDERED_CHUNK.saturating_sub(chunk.data.len()));
            if room == 0 {
                self.chunks.push_back(Chunk {
                    offset: self.end,
                    data: BlockData::Owned(chunk_memory(data.len(), released)),
                    len: 0,
                    acked: BlockRanges::default(),
                    acked_bytes: 0,
                });
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            if let Some(chunk) = self.chunks.back_mut() {
                chunk.data.extend(now);
                chunk.len = chunk.data.len() as u32;
            }
            self.end += now.len() as u64;
            data = later;
        }
    }

    /// Takes over a block of a placed stream; false if `offset` lies below the end of the last one or the block is empty or too large.
    pub fn write_block(&mut self, offset: u64, data: BlockData) -> Result<(), BlockData> {
        let Ok(len) = u32::try_from(data.len()) else { return Err(data) };
        let Some(end) = offset.checked_add(u64::from(len)) else { return Err(data) };
        if len == 0 || offset < self.end {
            return Err(data);
        }
        self.end = end;
        self.written += u64::from(len);
        self.chunks.push_back(Chunk { offset, data, len, acked: BlockRanges::default(), acked_bytes: 0 });
        Ok(())
    }

    /// Nothing more will be written.
    pub fn finish(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
        }
    }

    /// Gives the stream up: what is buffered is dropped.
    pub fn reset(&mut self, code: u64) {
        self.reset.get_or_insert(code);
        self.chunks.clear();
        self.lost.clear();
        self.cursor_chunk = 0;
        self.cursor_byte = 0;
        self.acked = self.written;
        self.fin = Fin::Acknowledged;
    }

    /// The peer wants no more.
    pub fn stop(&mut self, code: u64) {
        self.stopped.get_or_insert(code);
    }

    /// The peer's reason to want no more.
    pub const fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// Whether the application may write.
    pub const fn is_writable(&self) -> bool {
        matches!(self.fin, Fin::Open) && self.reset.is_none() && self.stopped.is_none()
    }

    /// Everything has been acknowledged, the end included, or the stream was reset.
    pub const fn is_done(&self) -> bool {
        matches!(self.fin, Fin::Acknowledged) && self.acked >= self.written
    }

    /// Bytes written and not yet acknowledged; the end counts one.
    pub const fn unacknowledged(&self) -> u64 {
        self.written - self.acked + !self.is_done() as u64
    }

    /// Bytes written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Bytes sent for the first time.
    pub const fn fresh(&self) -> u64 {
        self.fresh
    }

    /// New credit; true if it is more than before.
    pub fn raise_credit(&mut self, max: u64) -> bool {
        let more = max > self.max_fresh;
        self.max_fresh = self.max_fresh.max(max);
        more
    }

    /// Whether there is something to send again.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether new bytes wait, and the stream's own credit lets some go.
    pub fn has_fresh(&self) -> bool {
        self.fresh < self.written.min(self.max_fresh) || self.wants_bare_fin()
    }

    /// Bytes that the stream's own credit lets the application write. What is beyond it would only lie here, and take room from streams
    /// whose peer reads.
    pub const fn credit_left(&self) -> u64 {
        self.max_fresh.saturating_sub(self.written)
    }

    /// An ordered stream whose bytes have all been sent and whose end has not.
    fn wants_bare_fin(&self) -> bool {
        !self.placed && self.fin == Fin::Wanted && self.fresh == self.written
    }

    /// A placed stream that has finished and whose end has not been told: the total to tell.
    pub fn take_placed_fin(&mut self) -> Option<u64> {
        let ready = self.placed && self.fin == Fin::Wanted && self.fresh == self.written;
        if ready {
            self.fin = Fin::InFlight;
        }
        ready.then_some(self.written)
    }

    /// The end of a placed stream has been acknowledged.
    pub fn on_placed_fin_acked(&mut self) {
        self.settle_fin(true);
    }

    /// The next run to send, at most `room` bytes of one chunk: lost bytes first, then new ones as far as `credit`, the connection's, goes.
    /// `tail`: nothing new waits anywhere, so that further copies of lost ranges may go.
    pub fn next_run(&mut self, room: usize, credit: usize, tail: bool) -> Option<SendRun<'_>> {
        let cut = self.cut_lost(room, tail).or_else(|| self.cut_fresh(room, credit))?;
        let bytes = match cut.len {
            0 => &[],
            len => self.chunks.get(cut.chunk)?.data.get(cut.start..cut.start + len)?,
        };
        Some(SendRun { stream: self.id, offset: cut.offset, bytes, fin: cut.fin, end: cut.end, again: cut.again })
    }

    fn cut_lost(&mut self, room: usize, tail: bool) -> Option<Cut> {
        loop {
            let entry = self.lost.pop_front()?;
            let cut = if entry.len == 0 { self.cut_lost_end() } else { self.cut_lost_bytes(entry, room) };
            let Some(cut) = cut else { continue };
            if tail && entry.copies > 0 {
                self.lost.push_back(Lost { offset: cut.offset, len: cut.len as u32, copies: entry.copies - 1 });
            }
            return Some(cut);
        }
    }

    /// The bare end of an ordered stream, unless it has arrived.
    fn cut_lost_end(&self) -> Option<Cut> {
        let cut = Cut { chunk: 0, start: 0, len: 0, offset: self.end, fin: true, end: false, again: true };
        (self.fin != Fin::Acknowledged).then_some(cut)
    }

    /// The first part of a lost range that has not arrived meanwhile; what lies behind it waits its turn.
    fn cut_lost_bytes(&mut self, entry: Lost, room: usize) -> Option<Cut> {
        let (index, missing) = self.first_missing(entry.offset, entry.len)?;
        let chunk = &self.chunks[index];
        let len = missing.len().min(room);
        let cut_stop = missing.start + len as u32;
        let offset = chunk.offset + u64::from(missing.start);
        // A range may reach into the next chunk.
        let beyond = chunk.offset + u64::from(cut_stop);
        let rest = (entry.offset + u64::from(entry.len)).saturating_sub(beyond) as u32;
        let block_end = self.placed && cut_stop == chunk.len;
        if rest > 0 {
            self.lost.push_front(Lost { offset: beyond, len: rest, copies: entry.copies });
        }
        let fin = !self.placed && beyond == self.end && self.fin == Fin::InFlight;
        Some(Cut { chunk: index, start: missing.start as usize, len, offset, fin, end: block_end, again: true })
    }

    fn cut_fresh(&mut self, room: usize, credit: usize) -> Option<Cut> {
        if self.wants_bare_fin() {
            self.fin = Fin::InFlight;
            return Some(Cut { chunk: 0, start: 0, len: 0, offset: self.end, fin: true, end: false, again: false });
        }
        while self.chunks.get(self.cursor_chunk).is_some_and(|chunk| self.cursor_byte == chunk.len)
            && self.cursor_chunk + 1 < self.chunks.len()
        {
            self.cursor_chunk += 1;
            self.cursor_byte = 0;
        }
        let own_credit = usize::try_from(self.max_fresh.saturating_sub(self.fresh)).unwrap_or(usize::MAX);
        let chunk = self.chunks.get(self.cursor_chunk)?;
        let start = self.cursor_byte as usize;
        let len = (chunk.len as usize - start).min(room).min(credit).min(own_credit);
        if len == 0 {
            return None;
        }
        let offset = chunk.offset + start as u64;
        let end = self.placed && start + len == chunk.len as usize;
        self.cursor_byte += len as u32;
        self.fresh += len as u64;
        let fin = !self.placed && self.fin == Fin::Wanted && self.fresh == self.written;
        if fin {
            self.fin = Fin::InFlight;
        }
        Some(Cut { chunk: self.cursor_chunk, start, len, offset, fin, end, again: false })
    }

    /// `len` bytes at `offset` (and the end, if `fin`) have arrived. Buffers that are done with go to `released`. Returns bytes newly acknowledged.
    pub fn on_acked(&mut self, offset: u64, len: u64, fin: bool, released: &mut Vec<Vec<u8>>) -> u64 {
        let mut newly = 0;
        let (mut at, stop) = (offset, offset + len);
        while at < stop {
            let Some(index) = self.chunk_index(at) else { break };
            let chunk = &mut self.chunks[index];
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
        self.acked += newly;
        self.drop_front(released);
        if fin {
            self.settle_fin(false);
        }
        newly
    }

    /// `len` bytes at `offset` (and the end, if `fin`) are lost.
    pub fn on_lost(&mut self, offset: u64, len: u64, fin: bool, copies: u8) {
        if self.reset.is_some() {
            return;
        }
        if len > 0 {
            self.lost.push_back(Lost { offset, len: len as u32, copies });
        } else if fin && self.fin == Fin::InFlight {
            self.lost.push_back(Lost { offset, len: 0, copies });
        }
    }

    /// Whether any of `len` bytes at `offset`, which lie in one chunk, has not been acknowledged; of no bytes, the end.
    pub fn lacks(&self, offset: u64, len: u64, fin: bool) -> bool {
        if len == 0 {
            return fin && self.fin == Fin::InFlight;
        }
        self.first_missing(offset, len as u32).is_some()
    }

    fn settle_fin(&mut self, placed: bool) {
        if self.fin == Fin::InFlight && self.placed == placed {
            self.fin = Fin::Acknowledged;
        }
    }

    fn drop_front(&mut self, released: &mut Vec<Vec<u8>>) {
        while let Some(chunk) = self.chunks.front() {
            let sent_whole = self.cursor_chunk > 0 || self.cursor_byte == chunk.len;
            if chunk.acked_bytes != chunk.len || !sent_whole {
                return;
            }
            if let Some(chunk) = self.chunks.pop_front() {
                release(chunk.data, released);
            }
            if self.cursor_chunk > 0 {
                self.cursor_chunk -= 1;
            } else {
                self.cursor_byte = 0;
            }
        }
    }

    /// The chunk that holds the byte at `offset`.
    /// The first part of a range that has not been acknowledged, as far as the range lies in the chunk where it begins: which chunk, and where in it.
    fn first_missing(&self, offset: u64, len: u32) -> Option<(usize, Range<u32>)> {
        let index = self.chunk_index(offset)?;
        let chunk = &self.chunks[index];
        let start = (offset - chunk.offset) as u32;
        let stop = start.saturating_add(len).min(chunk.len);
        chunk.acked.missing_in(start..stop).next().map(|missing| (index, missing))
    }

    fn chunk_index(&self, offset: u64) -> Option<usize> {
        let index = self.chunks.partition_point(|chunk| chunk.offset + u64::from(chunk.len) <= offset);
        self.chunks.get(index).filter(|chunk| chunk.offset <= offset).map(|_| index)
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

/// Keeps memory that is done with for reuse, within bounds. What is shared is let go.
fn release(memory: BlockData, released: &mut Vec<Vec<u8>>) {
    if let BlockData::Owned(memory) = memory
        && memory.capacity() > 0
        && released.len() < RELEASED_MAX
    {
        released.push(memory);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::streams::Side;

    fn ordered() -> SendHalf {
        SendHalf::new(StreamId::new(Side::Client, StreamKind::Bidirectional, 0), 1 << 30)
    }

    fn placed() -> SendHalf {
        SendHalf::new(StreamId::new(Side::Client, StreamKind::Placed, 0), 1 << 30)
    }

    fn sent(stream: &mut SendHalf, room: usize) -> Option<(u64, usize, bool, bool)> {
        stream.next_run(room, usize::MAX, false).map(|run| (run.offset, run.bytes.len(), run.fin, run.end))
    }

    #[test]
    fn the_end_goes_with_the_last_byte_or_alone() {
        let mut stream = ordered();
        stream.write(&[1; 1000], &mut Vec::new());
        stream.finish();
        assert_eq!(sent(&mut stream, 600), Some((0, 600, false, false)));
        assert_eq!(sent(&mut stream, 600), Some((600, 400, true, false)));
        assert_eq!(sent(&mut stream, 600), None);
        let mut stream = ordered();
        stream.write(&[1; 10], &mut Vec::new());
        assert_eq!(sent(&mut stream, 600), Some((0, 10, false, false)));
        stream.finish();
        assert!(stream.has_fresh());
        assert_eq!(sent(&mut stream, 600), Some((10, 0, true, false)));
        stream.on_lost(10, 0, true, 0);
        assert_eq!(stream.next_run(600, 0, false).map(|run| (run.offset, run.fin)), Some((10, true)));
        let mut released = Vec::new();
        assert_eq!(stream.on_acked(0, 10, false, &mut released), 10);
        assert!(!stream.is_done());
        stream.on_acked(10, 0, true, &mut released);
        assert!(stream.is_done());
    }

    #[test]
    fn the_end_may_arrive_before_the_rest() {
        let mut stream = ordered();
        stream.write(&[1; 1000], &mut Vec::new());
        stream.finish();
        while stream.next_run(500, usize::MAX, false).is_some() {}
        stream.on_acked(500, 500, true, &mut Vec::new());
        assert!(!stream.is_done());
        stream.on_acked(0, 500, false, &mut Vec::new());
        assert!(stream.is_done());
    }

    #[test]
    fn blocks_go_back_when_acknowledged_in_any_order() {
        let mut stream = placed();
        for index in 0..3u64 {
            stream.write_block(index << 20, vec![index as u8; 3000].into()).unwrap();
        }
        assert!(stream.write_block(5, vec![1].into()).is_err(), "below the last block");
        while stream.next_run(1000, usize::MAX, false).is_some() {}
        let mut released = Vec::new();
        assert_eq!(stream.on_acked(1 << 20, 3000, false, &mut released), 3000);
        assert_eq!(released.len(), 1);
        assert_eq!(stream.on_acked(1 << 20, 3000, false, &mut released), 0, "twice acknowledged counts once");
        assert_eq!(stream.on_acked(0, 2000, false, &mut released), 2000);
        stream.on_lost(1000, 2000, false, 0);
        let again = stream.next_run(65536, 0, false).map(|run| (run.offset, run.bytes.len(), run.end));
        assert_eq!(again, Some((2000, 1000, true)), "only what is missing");
        stream.on_acked(2000, 1000, false, &mut released);
        stream.on_acked(2 << 20, 3000, false, &mut released);
        stream.finish();
        assert_eq!(stream.take_placed_fin(), Some(9000));
        stream.on_placed_fin_acked();
        assert!(stream.is_done());
        assert_eq!(released.iter().filter(|buffer| buffer.capacity() > 0).count(), 3);
    }

    #[test]
    fn shared_memory_is_sent_from_where_it_lies_and_let_go() {
        let mut stream = placed();
        let memory = Bytes::from(vec![3; 5000]);
        for index in 0..4u64 {
            stream.write_block(index << 20, memory.slice(..4000).into()).unwrap();
        }
        while let Some(run) = stream.next_run(1000, usize::MAX, false) {
            assert_eq!(run.bytes.as_ptr() as usize - memory.as_ptr() as usize, (run.offset % (1 << 20)) as usize);
        }
        let mut released = Vec::new();
        for index in 0..4u64 {
            assert!(!memory.is_unique());
            assert_eq!(stream.on_acked(index << 20, 4000, false, &mut released), 4000);
        }
        assert!(memory.is_unique() && released.is_empty(), "nothing keeps it, and it is nobody else's to write to");
    }

    #[test]
    fn in_the_tail_copies_follow() {
        let mut stream = placed();
        stream.write_block(0, vec![7; 1000].into()).unwrap();
        while stream.next_run(1000, usize::MAX, false).is_some() {}
        stream.on_lost(0, 1000, false, 2);
        let mut count = 0;
        while stream.next_run(1000, 0, true).is_some() {
            count += 1;
        }
        assert_eq!(count, 3);
    }

    #[test]
    fn credit_bounds_what_is_new() {
        let mut stream = SendHalf::new(StreamId(0), 100);
        stream.write(&[0; 300], &mut Vec::new());
        assert_eq!(sent(&mut stream, 1000), Some((0, 100, false, false)));
        assert!(!stream.has_fresh() && stream.credit_left() == 0);
        assert!(stream.raise_credit(250));
        assert_eq!(sent(&mut stream, 1000), Some((100, 150, false, false)));
    }

    #[test]
    fn a_long_stream_keeps_only_what_is_in_flight() {
        let mut stream = ordered();
        let mut released = Vec::new();
        let mut offset = 0;
        for _ in 0..200 {
            stream.write(&vec![9; 50_000], &mut Vec::new());
            while let Some((at, len, ..)) = sent(&mut stream, 1400) {
                assert_eq!(at, offset);
                offset += len as u64;
                stream.on_acked(at, len as u64, false, &mut released);
            }
            assert!(stream.chunks.is_empty());
        }
        assert_eq!(offset, 10_000_000);
        assert_eq!(stream.unacknowledged(), 1);
    }

    #[test]
    fn acknowledged_memory_is_kept_within_bounds_and_used_again() {
        let mut stream = SendHalf::new(StreamId(0), u64::MAX);
        let mut released = Vec::new();
        let chunk = vec![1; ORDERED_CHUNK];
        for _ in 0..3 * RELEASED_MAX {
            stream.write(&chunk, &mut Vec::new());
        }
        while stream.next_run(ORDERED_CHUNK, usize::MAX, false).is_some() {}
        stream.on_acked(0, (3 * RELEASED_MAX * ORDERED_CHUNK) as u64, false, &mut released);
        assert_eq!(released.len(), RELEASED_MAX);
        stream.write(&chunk, &mut released);
        assert_eq!(released.len(), RELEASED_MAX - 1);
    }
}
