//! The two byte streams of an encryption level: what is to be sent until it is acknowledged, what has arrived in whatever order.

use std::ops::Range;

use haul_units::BlockRanges;

/// Longest stream of one level: certificate chains fit, hostile ones do not fill memory.
pub(super) const MAX_STREAM_BYTES: usize = 64 << 10;

/// Pieces that may wait for what is missing before them.
const MAX_PIECES: usize = 64;

/// This side's bytes of one level.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    acknowledged: usize,
    /// What comes into the next packet starts here.
    next: usize,
}

impl Outgoing {
    pub(super) fn is_settled(&self) -> bool {
        self.acknowledged == self.bytes.len()
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.next < self.bytes.len()
    }

    /// The next at most `max` bytes to send, and where they belong.
    pub(super) fn peek(&self, max: usize) -> (u32, &[u8]) {
        let rest = &self.bytes[self.next..];
        (self.next as u32, &rest[..rest.len().min(max)])
    }

    pub(super) fn advance(&mut self, sent: usize) {
        self.next += sent;
    }

    /// All that is not acknowledged is to be sent again.
    pub(super) fn rewind(&mut self) {
        self.next = self.acknowledged;
    }

    /// The peer has all before `offset`. True if that is news.
    pub(super) fn on_acknowledged(&mut self, offset: u32) -> bool {
        let offset = (offset as usize).min(self.bytes.len());
        let news = offset > self.acknowledged;
        if news {
            self.acknowledged = offset;
            self.next = self.next.max(offset);
        }
        news
    }

    pub(super) fn settle(&mut self) {
        self.acknowledged = self.bytes.len();
        self.next = self.bytes.len();
    }
}

/// The peer's bytes of one level.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    present: BlockRanges,
    read: usize,
}

/// More bytes, or more pieces, than any handshake has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Incoming {
    /// Takes `bytes` that belong at `offset`. True if any of them is new.
    pub(super) fn insert(&mut self, offset: u32, bytes: &[u8]) -> Result<bool, TooLong> {
        let start = offset as usize;
        let end = start.saturating_add(bytes.len());
        if end > MAX_STREAM_BYTES {
            return Err(TooLong);
        }
        // Bytes that TLS may have read stay as they are: what was accepted first counts.
        let holes: Vec<Range<u32>> = self.present.missing_in(offset..end as u32).collect();
        if holes.is_empty() {
            return Ok(false);
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        for hole in holes {
            let (from, to) = (hole.start as usize, hole.end as usize);
            self.bytes[from..to].copy_from_slice(&bytes[from - start..to - start]);
        }
        self.present.insert(offset..end as u32);
        if self.present.runs() > MAX_PIECES { Err(TooLong) } else { Ok(true) }
    }

    /// Bytes that have arrived without a gap.
    pub(super) fn contiguous(&self) -> u32 {
        self.present.prefix()
    }

    /// What TLS has not read yet of the contiguous bytes.
    pub(super) fn take_readable(&mut self) -> Option<&[u8]> {
        let end = self.contiguous() as usize;
        let start = std::mem::replace(&mut self.read, end);
        self.bytes.get(start..end).filter(|bytes| !bytes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_make_the_stream(
            stream in prop::collection::vec(any::<u8>(), 1..2000),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..600), 0..40),
        ) {
            let mut incoming = Incoming::default();
            let mut have = vec![false; stream.len()];
            let mut read = Vec::new();
            let whole = (0..stream.len()).step_by(500).map(|start| (start, 500));
            let pieces = cuts.iter().map(|(start, length)| (start.index(stream.len()), *length)).chain(whole);
            for (start, length) in pieces {
                let end = (start + length).min(stream.len());
                let news = have[start..end].iter().any(|have| !have);
                prop_assert_eq!(incoming.insert(start as u32, &stream[start..end]), Ok(news));
                have[start..end].fill(true);
                prop_assert_eq!(incoming.contiguous() as usize, have.iter().take_while(|have| **have).count());
                read.extend_from_slice(incoming.take_readable().unwrap_or_default());
            }
            prop_assert_eq!(read, stream);
        }
    }

    #[test]
    fn hostile_offsets_are_refused() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.insert(u32::MAX, &[1]), Err(TooLong));
        assert_eq!(incoming.insert(MAX_STREAM_BYTES as u32, &[1]), Err(TooLong));
        let mut many = (0..).map(|n| incoming.insert(n * 2 + 1, &[1]));
        assert!(many.by_ref().take(MAX_PIECES).all(|piece| piece == Ok(true)));
        assert_eq!(many.next(), Some(Err(TooLong)));
    }

    #[test]
    fn outgoing_bytes_come_again_until_acknowledged() {
        let mut outgoing = Outgoing { bytes: (0..10).collect(), ..Outgoing::default() };
        assert_eq!(outgoing.peek(6), (0, &[0, 1, 2, 3, 4, 5][..]));
        outgoing.advance(6);
        assert!(outgoing.on_acknowledged(4) && !outgoing.on_acknowledged(4));
        assert_eq!(outgoing.peek(6).0, 6);
        outgoing.rewind();
        assert_eq!(outgoing.peek(100), (4, &[4, 5, 6, 7, 8, 9][..]));
        assert!(outgoing.on_acknowledged(u32::MAX) && outgoing.is_settled() && !outgoing.has_unsent());
    }
}
