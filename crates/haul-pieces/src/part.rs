//! A part file that is being written: what of it has come, and when that is all.

use crate::Taken;
use crate::block::{PieceSum, Sent};

/// One file's.
#[derive(Debug)]
pub struct Part {
    /// Its number in the stage.
    pub number: u64,
    /// What is written or being written.
    pub taken: Taken,
    /// Bytes that were written in an earlier run.
    pub kept: u64,
    /// Bytes that were written in this run.
    pub bytes: u64,
    /// Of the pieces of this run.
    pub sum: PieceSum,
    /// What is to be read back.
    pub pieces: Vec<Sent>,
    /// Whoever reads some of it back at this moment, before its end.
    pub readers: u32,
    /// The sender's word, once it is there.
    pub end: Option<End>,
}

/// The sender's word on a file: its length, and what it sent in this run.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Length in bytes.
    pub size: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// [`PieceSum`] of them.
    pub sum: [u8; 32],
}

impl Part {
    /// One of which this is there already, and these pieces are to be read back.
    pub fn resumed(number: u64, mut have: Taken, pieces: Vec<Sent>) -> Self {
        have.remembers(pieces.len());
        Self { number, kept: have.total(), taken: have, bytes: 0, sum: PieceSum::default(), pieces, readers: 0, end: None }
    }

    /// The sender's word, where all that was sent is written, and what was read back of it was right. The last to come, of writers and readers, is told so.
    pub fn ended(&self) -> Option<End> {
        self.end.filter(|end| self.readers == 0 && end.bytes <= self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parts;
    use haul_units::Ranges;

    #[test]
    fn it_ends_with_the_last_piece_the_last_reader_or_the_word_on_the_end() {
        let mut part = Part::resumed(1, Taken::new(Ranges::default(), &Parts::new(0)), Vec::new());
        let end = End { size: 10, bytes: 10, sum: [0; 32] };
        (part.bytes, part.readers) = (10, 2);
        assert!(part.ended().is_none(), "nobody has said so");
        part.end = Some(end);
        assert!(part.ended().is_none(), "two still read");
        part.readers = 0;
        assert_eq!(part.ended().map(|end| end.size), Some(10));
        part.bytes = 9;
        assert!(part.ended().is_none(), "a byte is missing");
    }
}
