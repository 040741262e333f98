//! The receiving half of a placed stream: counts what comes, and hands it to the sink.

use std::fmt;

use super::receive::StreamViolation;
use super::sink::Sink;
use crate::wire::StreamId;

/// The receiving half of one placed stream.
pub struct PlacedHalf {
    id: StreamId,
    /// Where the bytes go.
    pub(crate) sink: Box<dyn Sink>,
    /// Bytes received, each once.
    received: u64,
    total: Option<u64>,
    given_up: bool,
    /// What the sink had consumed when the connection last counted it.
    counted: u64,
}

impl fmt::Debug for PlacedHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlacedHalf").field("id", &self.id).field("received", &self.received).finish_non_exhaustive()
    }
}

impl PlacedHalf {
    /// A stream with nothing received. The connection's credit bounds it: what repeats uses none, so only stored bytes count.
    pub fn new(id: StreamId, sink: Box<dyn Sink>) -> Self {
        Self { id, sink, received: 0, total: None, given_up: false, counted: 0 }
    }

    /// New bytes have been stored.
    pub fn note(&mut self, new: u64) -> Result<(), StreamViolation> {
        let received = self.received + new;
        if self.total.is_some_and(|total| received > total) {
            return Err(StreamViolation::FinalSize(self.id));
        }
        self.received = received;
        Ok(())
    }

    /// The peer has written, and sent, `total` bytes in all; those that are not here yet use at most `room` of credit. Returns the credit that those which will not be taken use.
    pub fn on_fin(&mut self, total: u64, room: u64) -> Result<u64, StreamViolation> {
        if self.total.is_some_and(|known| known != total) || total < self.received {
            return Err(StreamViolation::FinalSize(self.id));
        }
        if total - self.received > room {
            return Err(StreamViolation::BeyondCredit(self.id));
        }
        if self.total.replace(total).is_none() && !self.given_up {
            self.sink.finish(total);
        }
        Ok(self.pass_over())
    }

    /// The peer gives up after `total` bytes sent. Returns the credit that those which never came use.
    pub fn on_reset(&mut self, code: u64, total: u64) -> Result<u64, StreamViolation> {
        if total < self.received || self.total.is_some_and(|known| total > known) {
            return Err(StreamViolation::FinalSize(self.id));
        }
        let unseen = total - self.received;
        self.received = total;
        self.total = Some(total);
        self.give_up(code);
        Ok(unseen)
    }

    /// Nothing more will be taken. Returns the credit that what is still to come uses, if that is known.
    pub fn give_up(&mut self, code: u64) -> u64 {
        if !self.given_up {
            self.given_up = true;
            self.sink.reset(code);
        }
        self.pass_over()
    }

    /// Of a stream that is given up and whose end is known, what has not come counts as received: it is dropped without being counted, and the peer, who has all of it acknowledged, says no
    /// more of the stream.
    fn pass_over(&mut self) -> u64 {
        let total = self.total.filter(|_| self.given_up).unwrap_or(self.received);
        total - std::mem::replace(&mut self.received, total)
    }

    /// Whether what arrives is dropped.
    pub const fn is_discarding(&self) -> bool {
        self.given_up
    }

    /// All of it has arrived, or will never.
    pub fn is_settled(&self) -> bool {
        self.total == Some(self.received)
    }

    /// Bytes consumed since the last call.
    pub fn newly_consumed(&mut self) -> u64 {
        let consumed = if self.given_up { self.received } else { self.sink.consumed().min(self.received) };
        let new = consumed.saturating_sub(self.counted);
        self.counted += new;
        new
    }

    /// The application is done with all that came.
    pub fn is_drained(&self) -> bool {
        self.given_up || self.counted == self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::sink::tests::Nothing;

    #[test]
    fn bytes_behind_the_end_do_not_count() {
        let mut half = PlacedHalf::new(StreamId(0), Box::new(Nothing));
        assert_eq!(half.note(4), Ok(()));
        assert_eq!(half.on_fin(10, 6), Ok(0));
        assert_eq!(half.note(7), Err(StreamViolation::FinalSize(StreamId(0))));
        assert_eq!(half.give_up(0), 6);
    }
}
