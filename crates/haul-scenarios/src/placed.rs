//! What transfers carry, and what has arrived of it: each byte is counted once, and looked at where it tells something.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use haul_proto::Sink;

/// What the bytes of a transfer are, so that both ends know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// All zero, and never looked at: for what is about time.
    Zeros,
    /// [`pattern`], and compared: for what is about bytes.
    Pattern,
}

impl Content {
    /// The bytes at an offset of a stream.
    pub(crate) fn of(self, offset: u64, len: usize) -> Vec<u8> {
        match self {
            Self::Zeros => vec![0; len],
            Self::Pattern => (offset..offset + len as u64).map(pattern).collect(),
        }
    }

    /// How many of the bytes do not belong there.
    pub(crate) fn wrong(self, offset: u64, bytes: &[u8]) -> u64 {
        match self {
            Self::Zeros => 0,
            Self::Pattern => (offset..).zip(bytes).filter(|&(at, &byte)| byte != pattern(at)).count() as u64,
        }
    }

    pub(crate) fn sink(self, placed: &Arc<Mutex<Placed>>) -> Counting {
        Counting { content: self, memory: Vec::new(), seen: VecDeque::new(), complete: 0, placed: placed.clone() }
    }
}

/// The byte that belongs at an offset of any stream.
pub fn pattern(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 20).to_le_bytes()[0]
}

/// What has arrived on placed streams, each byte once.
#[derive(Debug, Default)]
pub struct Placed {
    /// Bytes.
    pub bytes: u64,
    /// Ends of blocks.
    pub blocks: u64,
    /// How many bytes there were to be, once the sender has said so.
    pub finished: Option<u64>,
    /// Bytes that do not belong where they came, or were committed twice.
    pub wrong: u64,
}

impl Placed {
    /// Whether all is there.
    pub fn is_complete(&self) -> bool {
        self.finished == Some(self.bytes)
    }
}

/// A sink that counts bytes, compares them with what belongs there, and forgets them.
pub(crate) struct Counting {
    content: Content,
    memory: Vec<u8>,
    /// A bit for each byte, from the first word that is not complete.
    seen: VecDeque<u64>,
    /// Complete words before that.
    complete: u64,
    placed: Arc<Mutex<Placed>>,
}

impl Counting {
    /// The words of the bitmap that hold a range, each with a mask of its part; nothing in place of a word that is complete.
    fn words(complete: u64, offset: u64, len: usize) -> impl Iterator<Item = Option<(usize, u64)>> {
        let (start, end) = (offset, offset + len as u64);
        (start / 64..end.div_ceil(64)).map(move |word| {
            let (from, to) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            Some((word.checked_sub(complete)? as usize, (u64::MAX >> (64 - (to - from))) << from))
        })
    }

    /// Notes a range; gives how many of its bytes are new.
    fn mark(&mut self, offset: u64, len: usize) -> usize {
        let mut fresh = 0;
        for (word, mask) in Self::words(self.complete, offset, len).flatten() {
            if self.seen.len() <= word {
                self.seen.resize(word + 1, 0);
            }
            fresh += (mask & !self.seen[word]).count_ones() as usize;
            self.seen[word] |= mask;
        }
        while self.seen.front() == Some(&u64::MAX) {
            self.seen.pop_front();
            self.complete += 1;
        }
        fresh
    }

    fn placed(&self) -> std::sync::MutexGuard<'_, Placed> {
        self.placed.lock().expect("nobody panics with it")
    }
}

impl Sink for Counting {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let here = |(word, mask): (usize, u64)| self.seen.get(word).is_some_and(|seen| seen & mask != 0);
        if Self::words(self.complete, offset, len).any(|place| place.is_none_or(here)) {
            return None;
        }
        self.memory.resize(len.max(self.memory.len()), 0);
        Some(&mut self.memory[..len])
    }

    fn commit(&mut self, offset: u64, len: usize, end: bool) {
        let fresh = self.mark(offset, len);
        let wrong = self.content.wrong(offset, &self.memory[..len]) + (len - fresh) as u64;
        let mut placed = self.placed();
        placed.wrong += wrong;
        placed.bytes += fresh as u64;
        placed.blocks += u64::from(end);
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], end: bool) -> usize {
        let fresh = self.mark(offset, bytes.len());
        let wrong = self.content.wrong(offset, bytes);
        let mut placed = self.placed();
        placed.wrong += wrong;
        placed.bytes += fresh as u64;
        placed.blocks += u64::from(end && fresh > 0);
        fresh
    }

    fn finish(&mut self, total: u64) {
        self.placed().finished = Some(total);
    }

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.placed().bytes
    }
}
