//! One range of one file that one server has been told to send.

use std::ops::Range;

use crate::catalogue::{FileId, ServerId};

/// The name of a piece, for as long as the plan lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(pub(crate) u64);

impl PieceId {
    /// The piece of this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// By which it is told to others; from 1 on.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
pub(super) struct Piece {
    pub server: ServerId,
    pub file: FileId,
    pub range: Range<u64>,
    /// Bytes of it that have come from there.
    pub arrived: u64,
    /// Behind the last byte that has come from there.
    pub reached: u64,
    /// Somebody else has been told to send the rest of it as well.
    pub is_doubled: bool,
}

impl Piece {
    /// Bytes that have not come.
    pub fn outstanding(&self) -> u64 {
        (self.range.end - self.range.start).saturating_sub(self.arrived)
    }
}
