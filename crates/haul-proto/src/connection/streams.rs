//! The application's calls on streams.

use super::{Connection, Event};
use crate::streams::{BlockData, ReadOutcome, Receiver, StreamId, StreamKind};
use crate::wire::Frame;

/// Buffered for the time after what is away, in bytes: as much again within these bounds, the upper one 25 ms of 10 Gbit/s.
const AHEAD_MIN: u64 = 8 << 20;
const AHEAD_MAX: u64 = 32 << 20;
/// What every ordered stream may have unacknowledged whatever the others have: words of control get through beside bulk data.
const STREAM_RESERVE: u64 = 64 << 10;
/// The code with which streams that nobody here can take are refused.
pub const REFUSED: u64 = 0;

/// Why no stream was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The peer allows no more for now; [`super::Event::Openable`] tells when it does.
    #[error("the peer allows no more streams of this kind for now")]
    LimitReached,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Enough is buffered; [`super::Event::BudgetFree`] tells when there may be room.
    #[error("enough is buffered for now")]
    Blocked,
    /// The peer wants no more, with this code.
    #[error("the peer wants no more of the stream (code {0})")]
    Stopped(u64),
    /// The stream was finished or reset, or the connection is over.
    #[error("the stream is closed")]
    Closed,
    /// No such stream, or not one to write so.
    #[error("no such stream to write to")]
    Unknown,
    /// A block that is empty, or lies below the end of the one before it.
    #[error("a block must have bytes and lie behind the one before it")]
    BadBlock,
}

/// Why nothing was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing there yet; [`super::Event::Readable`] tells when there is.
    #[error("nothing to read yet")]
    Blocked,
    /// The peer gave the stream up, with this code.
    #[error("the peer reset the stream (code {0})")]
    Reset(u64),
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
    /// No such stream, or not one to read so.
    #[error("no such stream to read from")]
    Unknown,
}

impl Connection {
    /// Opens a stream.
    pub fn open(&mut self, kind: StreamKind) -> Result<StreamId, OpenError> {
        if self.is_closed() {
            return Err(OpenError::Closed);
        }
        self.streams.open(kind).ok_or(OpenError::LimitReached)
    }

    /// A stream of this kind that the peer has opened, oldest first.
    pub fn accept(&mut self, kind: StreamKind) -> Option<StreamId> {
        let id = self.streams.accept(kind)?;
        // It may be over already.
        self.reap(id);
        Some(id)
    }

    /// Copies bytes of an ordered stream to send, as many as [`Self::send_budget`] leaves room for.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let room = self.writable(id)?;
        if id.kind() == Some(StreamKind::Placed) {
            return Err(WriteError::Unknown);
        }
        let len = data.len().min(room);
        let Some((send, released)) = self.streams.sender_and_released(id) else { return Err(WriteError::Unknown) };
        send.write(&data[..len], released);
        self.note_written(id, len as u64);
        Ok(len)
    }

    /// Takes over a block of a placed stream, whole; `offset` is not below the end of the block before it. On an error the block comes back.
    pub fn write_block(&mut self, id: StreamId, offset: u64, data: impl Into<BlockData>) -> Result<(), (WriteError, BlockData)> {
        let data = data.into();
        if let Err(error) = self.writable(id) {
            return Err((error, data));
        }
        let len = data.len() as u64;
        let send = self.streams.sender(id).filter(|_| id.kind() == Some(StreamKind::Placed));
        let Some(send) = send else { return Err((WriteError::Unknown, data)) };
        send.write_block(offset, data).map_err(|data| (WriteError::BadBlock, data))?;
        self.note_written(id, len);
        Ok(())
    }

    /// Room to write to a stream, or why there is none.
    pub fn writable(&mut self, id: StreamId) -> Result<usize, WriteError> {
        if self.is_closed() {
            return Err(WriteError::Closed);
        }
        let budget = self.send_budget();
        let buffered = self.streams.unacknowledged;
        let send = self.streams.sender(id).ok_or(WriteError::Unknown)?;
        if let Some(code) = send.stopped() {
            return Err(WriteError::Stopped(code));
        }
        if !send.is_writable() {
            return Err(WriteError::Closed);
        }
        let placed = id.kind() == Some(StreamKind::Placed);
        let (reserve, credit) =
            if placed { (0, u64::MAX) } else { (STREAM_RESERVE.saturating_sub(send.unacknowledged()), send.credit_left()) };
        let room = budget.saturating_sub(buffered).max(reserve);
        if room.min(credit) == 0 {
            send.starved = !placed;
            self.starved |= room == 0;
            return Err(WriteError::Blocked);
        }
        Ok(usize::try_from(room.min(credit)).unwrap_or(usize::MAX))
    }

    fn note_written(&mut self, id: StreamId, len: u64) {
        self.streams.unsent += len;
        self.streams.unacknowledged += len;
        self.streams.schedule(id);
    }

    /// Unacknowledged bytes worth having, within the memory that the user allows: what is in flight or was and must be sent again, and as much
    /// again to send next, from 8 to 32 MiB. A sender that grows keeps that far ahead, for the budget grows with each train that leaves.
    pub fn send_budget(&self) -> u64 {
        let away = self.streams.unacknowledged.saturating_sub(self.streams.unsent);
        (away + away.clamp(AHEAD_MIN, AHEAD_MAX)).min(self.config.memory.as_u64().max(1))
    }

    /// Writers that found no room hear of it once it is worth their while: waking them for each acknowledgement costs more than sending does.
    pub(super) fn feed_the_starved(&mut self) {
        if !self.starved {
            return;
        }
        let budget = self.send_budget();
        let worthwhile = AHEAD_MIN.min(budget) / 4;
        if self.streams.unacknowledged + worthwhile <= budget {
            self.starved = false;
            self.events.push_back(Event::BudgetFree);
        }
    }

    /// An ordered stream whose writer waits hears when a good part of its reserve is free, whatever the others have.
    pub(super) fn feed_from_reserve(&mut self, id: StreamId) {
        if let Some(send) = self.streams.sender(id)
            && send.starved
            && send.credit_left() > 0
            && send.unacknowledged() <= STREAM_RESERVE - STREAM_RESERVE / 4
        {
            send.starved = false;
            self.events.push_back(Event::Writable(id));
        }
    }

    /// Bytes written and not yet acknowledged, on all streams.
    pub const fn buffered(&self) -> u64 {
        self.streams.unacknowledged
    }

    /// Buffer of a block that has been acknowledged, for reuse.
    pub fn take_released(&mut self) -> Option<Vec<u8>> {
        self.streams.released.pop()
    }

    /// Reads from an ordered stream; 0 is its end.
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<usize, ReadError> {
        let closed = self.is_closed();
        let streams = self.streams.count();
        let Some((stream, pool)) = self.streams.with_pool(id) else {
            return Err(if closed { ReadError::Closed } else { ReadError::Unknown });
        };
        let Some(Receiver::Ordered(half)) = stream.receive.as_mut() else { return Err(ReadError::Unknown) };
        let outcome = half.read(out, pool);
        if let ReadOutcome::Bytes(len) = outcome {
            self.credit.on_read(len as u64);
        }
        if half.begins_to_carry_much() {
            half.widen(self.credit.early_window(streams));
        }
        let credit = half.renew_credit(self.credit.stream_bound(half.held()));
        if let Some(max) = credit
            && !closed
        {
            self.control.push_back(Frame::MaxStreamData { stream: id, max });
        }
        match outcome {
            ReadOutcome::Bytes(len) => {
                self.renew_credit();
                Ok(len)
            }
            ReadOutcome::Blocked if closed => Err(ReadError::Closed),
            ReadOutcome::Blocked => Err(ReadError::Blocked),
            ReadOutcome::End => {
                self.reap(id);
                Ok(0)
            }
            ReadOutcome::Reset(code) => {
                self.reap(id);
                Err(ReadError::Reset(code))
            }
        }
    }

    /// Nothing more will be written to a stream.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        if self.is_closed() {
            return Err(WriteError::Closed);
        }
        let send = self.streams.sender(id).ok_or(WriteError::Unknown)?;
        if let Some(code) = send.stopped() {
            return Err(WriteError::Stopped(code));
        }
        send.finish();
        if let Some(total) = send.take_placed_fin() {
            self.control.push_back(Frame::PlacedFin { stream: id, total });
        }
        self.streams.schedule(id);
        Ok(())
    }

    /// Gives up a stream that we send; what is buffered is dropped and the peer is told `code`.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(send) = self.streams.sender(id)
            && !send.is_done()
        {
            let (written, fresh, acked_left) = (send.written(), send.fresh(), send.unacknowledged() - 1);
            send.reset(code);
            self.streams.unsent = self.streams.unsent.saturating_sub(written - fresh);
            self.streams.unacknowledged = self.streams.unacknowledged.saturating_sub(acked_left);
            self.control.push_back(Frame::ResetStream { stream: id, code, total: fresh });
            self.reap(id);
        }
    }

    /// Wants no more of a stream that we receive: what is here is dropped and the peer is told `code`.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        match self.streams.get_mut(id).and_then(|stream| stream.receive.as_mut()) {
            Some(Receiver::Ordered(half)) if !half.is_discarding() => self.credit.on_read(half.stop()),
            Some(Receiver::Ordered(half)) => {
                // The peer gave it up before, and nobody has read that: there is nothing to tell it.
                half.disregard();
                return self.reap(id);
            }
            Some(Receiver::Placed(half)) if !half.is_discarding() => {
                // Within the credit: it was looked at when the end was told.
                self.credit.on_received(half.give_up(code));
                self.credit.on_consumed(half.newly_consumed());
            }
            _ => return,
        }
        if !self.is_closed() {
            self.control.push_back(Frame::StopSending { stream: id, code });
        }
        self.reap(id);
    }

    /// Which streams go first: higher before lower; 128 is ordinary.
    pub fn set_priority(&mut self, id: StreamId, priority: u8) {
        if let Some(send) = self.streams.sender(id) {
            send.priority = priority;
        }
    }

    /// Bytes of a stream written and not yet acknowledged, its end counting one; `None` once all is, or for no such stream.
    pub fn unacknowledged(&mut self, id: StreamId) -> Option<u64> {
        self.streams.sender(id).map(|send| send.unacknowledged())
    }

    /// Bytes of a stream that have left, each counted once however often it left; `None` once all of it is acknowledged, or for no such stream.
    pub fn sent(&mut self, id: StreamId) -> Option<u64> {
        self.streams.sender(id).map(|send| send.fresh())
    }

    /// Drops what is over of a stream, and lets the peer open another one.
    pub(super) fn reap(&mut self, id: StreamId) {
        if let Some(frame) = self.streams.reap(id) {
            self.control.push_back(frame);
        }
    }

    /// A placed stream of the peer's that nobody here takes is refused.
    pub(super) fn refuse_placed_without_sink(&mut self, id: StreamId) {
        if id.kind() == Some(StreamKind::Placed)
            && id.opener() != self.side
            && !self.streams.takes_placed()
            && self.streams.get_mut(id).is_some_and(|stream| stream.receive.is_none())
        {
            self.control.push_back(Frame::StopSending { stream: id, code: REFUSED });
        }
    }
}
