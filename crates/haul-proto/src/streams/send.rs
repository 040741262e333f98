//! The sending half of a stream: what goes next, what must be sent again, and how it ends.
//!
//! What was written lies in [`Chunks`]. Lost ranges wait in a queue and leave before new data, as new packets cut to today's packet size.

use std::collections::VecDeque;

use super::chunks::{Chunks, Piece};
use super::data::{BlockData, Place};
use crate::wire::{StreamId, StreamKind};

/// One run of bytes to send: a slice of one chunk, cut by the caller into packets.
#[derive(Debug, Clone, Copy)]
pub struct SendRun<'a> {
    /// Which stream.
    pub stream: StreamId,
    /// Offset in the stream.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// What they lie in, and where; `None` while that may change.
    pub memory: Option<Place<'a>>,
    /// The stream ends after them (ordered streams).
    pub fin: bool,
    /// A block ends after them (placed streams).
    pub end: bool,
    /// They were sent before.
    pub again: bool,
}

/// A run to send, before its bytes are looked up.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// None of the bare end.
    piece: Option<Piece>,
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
    chunks: Chunks,
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
            chunks: Chunks::default(),
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
    pub fn write(&mut self, data: &[u8], released: &mut Vec<Vec<u8>>) {
        debug_assert!(!self.placed && self.is_writable());
        self.chunks.append(self.end, data, released);
        self.written += data.len() as u64;
        self.end += data.len() as u64;
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
        self.chunks.push(offset, data.into(), len);
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

    /// Bytes to send again, those that have arrived meanwhile included.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.iter().map(|lost| u64::from(lost.len)).sum()
    }

    /// Whether the application has written all it will.
    pub fn is_finished(&self) -> bool {
        self.fin != Fin::Open
    }

    /// Whether new bytes wait, and the stream's own credit lets some go.
    pub fn has_fresh(&self) -> bool {
        self.fresh < self.written.min(self.max_fresh)
    }

    /// Bytes that the stream's own credit lets the application write. What is beyond it would only lie here, and take room from streams
    /// whose peer reads.
    pub const fn credit_left(&self) -> u64 {
        self.max_fresh.saturating_sub(self.written)
    }

    /// An ordered stream whose bytes have all been sent and whose end has not: that needs no credit.
    pub fn wants_bare_fin(&self) -> bool {
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
        let (bytes, memory) = match cut.piece {
            None => (&[][..], None),
            Some(piece) => self.chunks.bytes(piece)?,
        };
        Some(SendRun { stream: self.id, offset: cut.offset, bytes, memory, fin: cut.fin, end: cut.end, again: cut.again })
    }

    fn cut_lost(&mut self, room: usize, tail: bool) -> Option<Cut> {
        loop {
            let entry = self.lost.pop_front()?;
            let cut = if entry.len == 0 { self.cut_lost_end() } else { self.cut_lost_bytes(entry, room) };
            let Some(cut) = cut else { continue };
            if tail && entry.copies > 0 {
                let len = cut.piece.map_or(0, |piece| piece.len);
                self.lost.push_back(Lost { offset: cut.offset, len, copies: entry.copies - 1 });
            }
            return Some(cut);
        }
    }

    /// The bare end of an ordered stream, unless it has arrived.
    fn cut_lost_end(&self) -> Option<Cut> {
        let cut = Cut { piece: None, offset: self.end, fin: true, end: false, again: true };
        (self.fin != Fin::Acknowledged).then_some(cut)
    }

    /// The first part of a lost range that has not arrived meanwhile; what lies behind it waits its turn.
    fn cut_lost_bytes(&mut self, entry: Lost, room: usize) -> Option<Cut> {
        let piece = self.chunks.first_missing(entry.offset, entry.len)?.at_most(room);
        let (offset, beyond) = (self.chunks.offset(piece), self.chunks.offset(piece) + u64::from(piece.len));
        // A range may reach into the next chunk.
        let rest = (entry.offset + u64::from(entry.len)).saturating_sub(beyond) as u32;
        if rest > 0 {
            self.lost.push_front(Lost { offset: beyond, len: rest, copies: entry.copies });
        }
        let fin = !self.placed && beyond == self.end && self.fin == Fin::InFlight;
        Some(Cut { piece: Some(piece), offset, fin, end: self.placed && piece.ends_chunk, again: true })
    }

    fn cut_fresh(&mut self, room: usize, credit: usize) -> Option<Cut> {
        if self.wants_bare_fin() {
            self.fin = Fin::InFlight;
            return Some(Cut { piece: None, offset: self.end, fin: true, end: false, again: false });
        }
        let own_credit = usize::try_from(self.max_fresh.saturating_sub(self.fresh)).unwrap_or(usize::MAX);
        let piece = self.chunks.unsent()?.at_most(room.min(credit).min(own_credit));
        if piece.len == 0 {
            return None;
        }
        self.chunks.sent(piece.len);
        self.fresh += u64::from(piece.len);
        let fin = !self.placed && self.fin == Fin::Wanted && self.fresh == self.written;
        if fin {
            self.fin = Fin::InFlight;
        }
        let (offset, end) = (self.chunks.offset(piece), self.placed && piece.ends_chunk);
        Some(Cut { piece: Some(piece), offset, fin, end, again: false })
    }

    /// `len` bytes at `offset` (and the end, if `fin`) have arrived. Buffers that are done with go to `released`. Returns bytes newly acknowledged.
    pub fn on_acked(&mut self, offset: u64, len: u64, fin: bool, released: &mut Vec<Vec<u8>>) -> u64 {
        let newly = self.chunks.acknowledge(offset, len, released);
        self.acked += newly;
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
        self.chunks.first_missing(offset, len as u32).is_some()
    }

    fn settle_fin(&mut self, placed: bool) {
        if self.fin == Fin::InFlight && self.placed == placed {
            self.fin = Fin::Acknowledged;
        }
    }
}

#[cfg(test)]
mod tests;
