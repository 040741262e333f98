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
        Self { number, kept: have.total(), taken: have, bytes: 0, sum: PieceSum::default(), pieces, end: None }
    }
}
