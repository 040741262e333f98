//! The receiving half of an ordered stream: bytes land in chunks at their offset and are read from the front.
//!
//! A packet whose bytes lie in one chunk, none of them there yet, is decrypted straight into the chunk; another one goes through a scratch
//! buffer. Credit bounds what can lie here: a stream's first chunk is no more than twice as long as what has come of it.

use std::collections::VecDeque;

use haul_units::BlockRanges;

use crate::wire::StreamId;

/// Bytes of one reassembly chunk.
pub(crate) const CHUNK: usize = 64 << 10;
/// The shortest first chunk of a stream: a request.
const LEAST_CHUNK: usize = 256;

/// What arrives in a round trip, so many times, is the window: x^2 = 9 for a sender that triples its rate each round trip (the news takes one,
/// `flow.rs` has the same), and once more for what waits a round trip behind a lost packet.
const GROWTH: u64 = 10;

#[derive(Debug)]
struct Chunk {
    data: Box<[u8]>,
    got: BlockRanges,
}

/// Memory of reassembly chunks, for reuse.
#[derive(Debug, Default)]
pub struct ChunkPool {
    free: Vec<Box<[u8]>>,
}

impl ChunkPool {
    /// Chunks kept for reuse, at most (4 MiB).
    const KEEP: usize = 64;

    /// A chunk for so many bytes at least. A whole one takes no more memory than a part of it where it is fresh from the system, but all of it where the allocator clears what others
    /// have used: a peer that opens thousands of streams and writes a byte to each must not have a whole one for each.
    fn take(&mut self, bytes: usize) -> Box<[u8]> {
        let size = bytes.next_power_of_two().clamp(LEAST_CHUNK, CHUNK);
        self.free.pop_if(|_| size == CHUNK).unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    fn give(&mut self, chunk: Box<[u8]>) {
        if chunk.len() == CHUNK && self.free.len() < Self::KEEP {
            self.free.push(chunk);
        }
    }
}

/// Why received stream data is a violation by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamViolation {
    /// More than the credit that was given.
    #[error("{0}: sent beyond its credit")]
    BeyondCredit(StreamId),
    /// Data beyond the end, or two different ends.
    #[error("{0}: contradicts its own end")]
    FinalSize(StreamId),
    /// A stream that only we may open, or write to.
    #[error("{0}: not the peer's to use so")]
    NotYours(StreamId),
    /// More streams than allowed.
    #[error("{0}: beyond the limit of streams")]
    BeyondLimit(StreamId),
}

/// What [`ReceiveHalf::read`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Blocked,
    /// The end.
    End,
    /// The peer gave the stream up.
    Reset(u64),
}

/// The receiving half of one ordered stream.
#[derive(Debug)]
pub struct ReceiveHalf {
    id: StreamId,
    /// Offset of the next byte to read.
    read_at: u64,
    /// The first chunk begins at this multiple of [`CHUNK`].
    base: u64,
    chunks: VecDeque<Option<Chunk>>,
    /// One more than the highest offset received: what credit counts.
    highest: u64,
    max: u64,
    window: u64,
    /// `highest` at the start of the round trip that is being measured.
    round_mark: u64,
    /// Something has arrived in this round trip.
    in_round: bool,
    /// A whole chunk has been read.
    carries_much: bool,
    end: Option<u64>,
    reset: Option<u64>,
    stopped: bool,
    /// The application has been told that there is something to read, and has not found nothing since.
    announced: bool,
    /// The application has read the end, or has learned of the reset.
    end_seen: bool,
}

impl ReceiveHalf {
    /// A stream that lets the peer send `window` bytes ahead of the reader.
    pub fn new(id: StreamId, window: u64) -> Self {
        Self {
            id,
            read_at: 0,
            base: 0,
            chunks: VecDeque::new(),
            highest: 0,
            max: window,
            window,
            round_mark: 0,
            in_round: false,
            carries_much: false,
            end: None,
            reset: None,
            stopped: false,
            announced: false,
            end_seen: false,
        }
    }

    /// Checks a packet against credit and end, before anything is stored. Returns how many bytes of credit it uses.
    pub fn admit(&self, offset: u64, len: usize, fin: bool) -> Result<u64, StreamViolation> {
        let stop = offset.checked_add(len as u64).ok_or(StreamViolation::FinalSize(self.id))?;
        if self.end.is_some_and(|end| stop > end || (fin && stop != end)) || (fin && stop < self.highest) {
            return Err(StreamViolation::FinalSize(self.id));
        }
        if stop > self.max {
            return Err(StreamViolation::BeyondCredit(self.id));
        }
        Ok(stop.saturating_sub(self.highest))
    }

    /// Where to decrypt the bytes to, if they lie in one chunk that is there already and none of them is there yet. It takes no memory: a packet that is forged must not.
    #[inline]
    pub fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        if len == 0 || offset < self.read_at || self.is_discarding() {
            return None;
        }
        let start = (offset % CHUNK as u64) as usize;
        let at = usize::try_from((offset / CHUNK as u64).checked_sub(self.base)?).ok()?;
        let chunk = self.chunks.get_mut(at)?.as_mut()?;
        // Longer than a chunk ever is, or than this one is yet.
        let slot = chunk.data.get_mut(start..start + len)?;
        chunk.got.is_disjoint(&(start as u32..(start + len) as u32)).then_some(slot)
    }

    /// The bytes in that slot are authentic. Returns whether there is now something to read that was not.
    #[inline]
    pub fn commit(&mut self, offset: u64, len: usize, fin: bool) -> bool {
        let start = (offset % CHUNK as u64) as u32;
        let index = (offset / CHUNK as u64).checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        if let Some(Some(chunk)) = index.and_then(|index| self.chunks.get_mut(index)) {
            chunk.got.insert(start..start + len as u32);
        }
        self.note(offset, len, fin)
    }

    /// Authentic bytes that had no slot: takes what is new of them.
    pub fn deliver(&mut self, offset: u64, bytes: &[u8], fin: bool, pool: &mut ChunkPool) -> bool {
        let skip = self.read_at.saturating_sub(offset).min(bytes.len() as u64);
        let (mut at, mut rest) = (offset + skip, &bytes[skip as usize..]);
        while !rest.is_empty() && !self.is_discarding() {
            let start = (at % CHUNK as u64) as usize;
            let (now, later) = rest.split_at(rest.len().min(CHUNK - start));
            let Some(chunk) = self.chunk(at / CHUNK as u64, start + now.len(), pool) else { break };
            let range = start as u32..(start + now.len()) as u32;
            let holes: Vec<_> = chunk.got.missing_in(range.clone()).collect();
            for hole in holes {
                let (from, to) = (hole.start as usize, hole.end as usize);
                chunk.data[from..to].copy_from_slice(&now[from - start..to - start]);
            }
            chunk.got.insert(range);
            at += now.len() as u64;
            rest = later;
        }
        self.note(offset, bytes.len(), fin)
    }

    /// The peer gives up after `total` bytes. Returns the credit that the rest of them uses.
    pub fn on_reset(&mut self, code: u64, total: u64) -> Result<u64, StreamViolation> {
        if total < self.highest || self.end.is_some_and(|end| end != total) {
            return Err(StreamViolation::FinalSize(self.id));
        }
        if total > self.max {
            return Err(StreamViolation::BeyondCredit(self.id));
        }
        let unseen = total - self.highest;
        self.highest = total;
        if !self.is_finished() {
            self.reset = Some(code);
            self.end = Some(total);
            self.chunks.clear();
            self.read_at = total;
        }
        Ok(unseen)
    }

    /// The application wants no more: drops what is here. Returns the bytes that will never be read, for the connection's credit.
    pub fn stop(&mut self) -> u64 {
        let dropped = self.highest - self.read_at;
        self.stopped = true;
        self.chunks.clear();
        self.read_at = self.highest;
        dropped
    }

    /// The application has gone before it saw that the stream was given up or was at its end.
    pub fn disregard(&mut self) {
        self.stopped = true;
    }

    /// Bytes received, or given up, and not yet read.
    pub const fn held(&self) -> u64 {
        self.highest - self.read_at
    }

    /// Copies what is in order into `out`.
    pub fn read(&mut self, out: &mut [u8], pool: &mut ChunkPool) -> ReadOutcome {
        let mut filled = 0;
        while filled < out.len() {
            let start = (self.read_at % CHUNK as u64) as usize;
            let Some(Some(chunk)) = self.chunks.front().filter(|_| self.read_at / CHUNK as u64 == self.base) else { break };
            let ready = (chunk.got.prefix() as usize).saturating_sub(start).min(out.len() - filled);
            if ready == 0 {
                break;
            }
            out[filled..filled + ready].copy_from_slice(&chunk.data[start..start + ready]);
            filled += ready;
            self.read_at += ready as u64;
            // A chunk that has been read to its end goes back.
            if start + ready == CHUNK {
                if let Some(Some(chunk)) = self.chunks.pop_front() {
                    pool.give(chunk.data);
                }
                self.base += 1;
            }
        }
        if filled > 0 && self.read_at == self.highest {
            // A stream that rests costs no memory.
            self.chunks.drain(..).flatten().for_each(|chunk| pool.give(chunk.data));
        }
        match (filled, self.reset) {
            (0, Some(code)) => {
                self.end_seen = true;
                ReadOutcome::Reset(code)
            }
            (0, None) if self.end == Some(self.read_at) => {
                self.end_seen = true;
                ReadOutcome::End
            }
            (0, None) if !out.is_empty() => {
                self.announced = false;
                ReadOutcome::Blocked
            }
            (filled, _) => ReadOutcome::Bytes(filled),
        }
    }

    /// Whether `read` would not block.
    pub fn is_readable(&self) -> bool {
        let start = (self.read_at % CHUNK as u64) as u32;
        self.reset.is_some()
            || self.end == Some(self.read_at)
            || (self.read_at / CHUNK as u64 == self.base
                && matches!(self.chunks.front(), Some(Some(chunk)) if chunk.got.prefix() > start))
    }

    /// Everything has been read, or given up.
    pub fn is_finished(&self) -> bool {
        self.end == Some(self.read_at) && self.reset.is_none()
    }

    /// Whether what arrives is dropped.
    pub const fn is_discarding(&self) -> bool {
        self.stopped || self.reset.is_some()
    }

    /// Neither the peer nor the application has anything more to do with it.
    pub fn is_over(&self) -> bool {
        self.end_seen || (self.stopped && (self.reset.is_some() || self.is_finished()))
    }

    /// New credit worth telling: once a quarter of the window, which is at most `bound`, has been read since the last time.
    pub fn renew_credit(&mut self, bound: u64) -> Option<u64> {
        if self.end.is_some() || self.stopped {
            return None;
        }
        self.window = self.window.min(bound.max(CHUNK as u64));
        let max = self.read_at + self.window;
        (max >= self.max + self.window / 4).then(|| {
            self.max = max;
            max
        })
    }

    /// True once, when the reader has taken the first whole chunk: this is more than a request or an answer.
    pub fn begins_to_carry_much(&mut self) -> bool {
        self.read_at >= CHUNK as u64 && !std::mem::replace(&mut self.carries_much, true)
    }

    /// Makes the window at least so large.
    pub fn widen(&mut self, window: u64) {
        self.window = self.window.max(window);
    }

    /// Something has arrived. True for the first time in a round trip: [`Self::on_round`] is to end it.
    pub fn begins_round(&mut self) -> bool {
        !std::mem::replace(&mut self.in_round, true)
    }

    /// A round trip has passed: the window grows to ten times what arrived in it, within `bound`.
    pub fn on_round(&mut self, bound: u64) {
        self.in_round = false;
        let arrived = self.highest - self.round_mark;
        self.round_mark = self.highest;
        self.window = self.window.max(arrived.saturating_mul(GROWTH)).min(bound.max(CHUNK as u64));
    }

    fn note(&mut self, offset: u64, len: usize, fin: bool) -> bool {
        let stop = offset + len as u64;
        self.highest = self.highest.max(stop);
        if fin {
            self.end = Some(stop);
        }
        if self.stopped {
            self.read_at = self.highest;
        }
        let news = !self.announced && offset <= self.read_at && self.is_readable();
        self.announced |= news;
        news
    }

    /// The chunk with this number, so long that it holds its first `bytes`. What carries much gets it whole at once.
    fn chunk(&mut self, index: u64, bytes: usize, pool: &mut ChunkPool) -> Option<&mut Chunk> {
        let at = usize::try_from(index.checked_sub(self.base)?).ok()?;
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        // What was read of the first chunk before it went back counts as there.
        let read = if at == 0 { self.read_at.saturating_sub(index * CHUNK as u64) as u32 } else { 0 };
        let bytes = if index > 0 || self.carries_much { CHUNK } else { bytes };
        let chunk = self.chunks[at].get_or_insert_with(|| {
            let mut got = BlockRanges::default();
            got.insert(0..read);
            Chunk { data: pool.take(bytes), got }
        });
        if chunk.data.len() < bytes {
            let longer = pool.take(bytes);
            let shorter = std::mem::replace(&mut chunk.data, longer);
            chunk.data[..shorter.len()].copy_from_slice(&shorter);
        }
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn byte_at(offset: u64) -> u8 {
        (offset % 251) as u8
    }

    /// A packet through the slot if there is one, through the scratch way otherwise.
    fn receive(stream: &mut ReceiveHalf, pool: &mut ChunkPool, offset: u64, len: usize, fin: bool) {
        let bytes: Vec<u8> = (offset..offset + len as u64).map(byte_at).collect();
        stream.admit(offset, len, fin).unwrap();
        if let Some(slot) = stream.slot(offset, len) {
            slot.copy_from_slice(&bytes);
            stream.commit(offset, len, fin);
        } else {
            stream.deliver(offset, &bytes, fin, pool);
        }
    }

    #[test]
    fn a_byte_of_a_stream_takes_little_memory_and_the_rest_no_more_than_twice_what_has_come() {
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1 << 30), ChunkPool::default());
        let held = |stream: &ReceiveHalf| stream.chunks.iter().flatten().map(|chunk| chunk.data.len()).sum::<usize>();
        receive(&mut stream, &mut pool, 0, 1, false);
        assert_eq!(held(&stream), LEAST_CHUNK);
        for offset in (1..200_000).step_by(1000) {
            receive(&mut stream, &mut pool, offset, 1000, false);
            // A chunk more is under way.
            let most = if stream.highest <= CHUNK as u64 { 0 } else { CHUNK };
            assert!(held(&stream) <= stream.highest as usize * 2 + most, "{} for {}", held(&stream), stream.highest);
        }
    }

    proptest! {
        /// Packets of any cut, in any order, some twice: the reader gets the stream once, in order, then its end.
        #[test]
        fn reassembles(seed in prop::collection::vec((0..200u64, 1..3000usize), 1..120), order: u64) {
            let mut packets = Vec::new();
            let mut offset = 0;
            for (twice, len) in seed {
                packets.push((offset, len));
                if twice < 20 {
                    // The same bytes again, cut elsewhere.
                    packets.push((offset / 2, (len / 2).max(1)));
                }
                offset += len as u64;
            }
            let total = offset;
            let mut state = order | 1;
            packets.sort_by_cached_key(|_| { state = state.wrapping_mul(6364136223846793005).wrapping_add(1); state >> 33 });
            let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1 << 30), ChunkPool::default());
            let (mut read, mut out) = (0u64, [0; 5000]);
            for (offset, len) in packets {
                receive(&mut stream, &mut pool, offset, len, offset + len as u64 == total);
                while let ReadOutcome::Bytes(n) = stream.read(&mut out, &mut pool) {
                    for &byte in &out[..n] {
                        prop_assert_eq!(byte, byte_at(read));
                        read += 1;
                    }
                }
            }
            prop_assert_eq!(read, total);
            prop_assert_eq!(stream.read(&mut out, &mut pool), ReadOutcome::End);
            prop_assert!(stream.is_finished());
        }
    }

    #[test]
    fn refuses_what_breaks_credit_or_end() {
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1000), ChunkPool::default());
        assert_eq!(stream.admit(900, 101, false), Err(StreamViolation::BeyondCredit(StreamId(0))));
        assert_eq!(stream.admit(u64::MAX, 2, false), Err(StreamViolation::FinalSize(StreamId(0))));
        receive(&mut stream, &mut pool, 0, 500, false);
        assert_eq!(stream.admit(0, 400, true), Err(StreamViolation::FinalSize(StreamId(0))));
        assert_eq!((stream.admit(500, 0, true), stream.held()), (Ok(0), 500), "an end that comes by itself");
        receive(&mut stream, &mut pool, 500, 100, true);
        assert_eq!(stream.admit(600, 1, false), Err(StreamViolation::FinalSize(StreamId(0))));
        assert_eq!(stream.on_reset(7, 700), Err(StreamViolation::FinalSize(StreamId(0))));
    }

    #[test]
    fn a_packet_has_a_slot_where_its_bytes_are_new_and_lie_in_one_chunk_that_is_there() {
        const END: u64 = CHUNK as u64;
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1 << 20), ChunkPool::default());
        for offset in [0, END - 1400, END + 7, 10 * END] {
            assert!(stream.slot(offset, 1400).is_none(), "{offset}: nothing has come there yet");
        }
        assert_eq!(stream.chunks.len(), 0, "what may be forged takes no memory");
        receive(&mut stream, &mut pool, 0, 1400, false);
        receive(&mut stream, &mut pool, END, 7, false);
        for (offset, len, has_one) in [(1400, 600, true), (END - 1399, 1400, false), (END + 7, 1400, true), (1500, 0, false)] {
            assert_eq!(stream.slot(offset, len).map(|slot| slot.len()), has_one.then_some(len), "{offset}");
        }
        assert!(stream.slot(1399, 10).is_none() && stream.slot(1400, 10).is_some());
        assert_eq!(stream.read(&mut [0; 1000], &mut pool), ReadOutcome::Bytes(1000));
        assert!(stream.slot(900, 10).is_none(), "it has been read");
        assert_eq!((stream.held(), stream.stop()), (END + 7 - 1000, END + 7 - 1000));
        assert!(stream.slot(1400, 10).is_none(), "nobody wants it");
    }

    #[test]
    fn a_reset_shows_to_the_reader_and_accounts_for_what_never_came() {
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1000), ChunkPool::default());
        receive(&mut stream, &mut pool, 0, 10, false);
        assert_eq!(stream.on_reset(7, 700), Ok(690));
        assert_eq!(stream.read(&mut [0; 10], &mut pool), ReadOutcome::Reset(7));
    }

    #[test]
    fn a_stream_that_rests_holds_no_memory() {
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 1 << 20), ChunkPool::default());
        for (offset, len) in [(0, 100), (100, 1), (101, CHUNK - 101), (CHUNK as u64, 300)] {
            receive(&mut stream, &mut pool, offset, len, false);
            let mut out = vec![0; len];
            assert_eq!(stream.read(&mut out, &mut pool), ReadOutcome::Bytes(len));
            assert!(out.iter().zip(offset..).all(|(&byte, at)| byte == byte_at(at)));
            // Only whole ones are kept.
            assert!(stream.chunks.is_empty() && pool.free.len() == usize::from(offset as usize + len >= CHUNK));
        }
        // Behind a hole something waits.
        receive(&mut stream, &mut pool, CHUNK as u64 + 310, 5, false);
        assert_eq!(stream.read(&mut [0; 10], &mut pool), ReadOutcome::Blocked);
        assert_eq!(stream.chunks.len(), 1);
    }

    #[test]
    fn credit_follows_the_reader_and_the_rate() {
        let (mut stream, mut pool) = (ReceiveHalf::new(StreamId(0), 100_000), ChunkPool::default());
        receive(&mut stream, &mut pool, 0, 1400, false);
        stream.read(&mut [0; 1400], &mut pool);
        assert_eq!(stream.renew_credit(1 << 30), None, "not worth a frame yet");
        for packet in 1..40 {
            receive(&mut stream, &mut pool, packet * 1400, 1400, false);
            stream.read(&mut [0; 1400], &mut pool);
        }
        assert_eq!(stream.renew_credit(1 << 30), Some(156_000));
        stream.on_round(1 << 30);
        assert_eq!(stream.renew_credit(1 << 30), Some(56_000 + 10 * 56_000));
        for packet in 40..168 {
            receive(&mut stream, &mut pool, packet * 1400, 1400, false);
            stream.read(&mut [0; 1400], &mut pool);
        }
        stream.on_round(1 << 30);
        assert_eq!(stream.renew_credit(1 << 30), Some(168 * 1400 + 10 * 128 * 1400));
    }
}
