//! A file that has not arrived in full.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use super::read_back::Sent;
use crate::block::PieceSum;
use crate::journal::{PathKey, Source};
use crate::store::Attributes;
use haul_pieces::Taken;
use haul_xattrs::Held;

/// A file that is to arrive.
pub(super) struct Incomplete {
    pub(super) id: u64,
    pub(super) parent: u64,
    pub(super) name: Vec<u8>,
    pub(super) key: PathKey,
    pub(super) size: u64,
    pub(super) source: Source,
    /// A stream: its size is known at its end.
    pub(super) stream: bool,
    pub(super) linked: bool,
    /// Bytes of it that are to come, as far as they are counted for the room.
    pub(super) counted: AtomicU64,
    pub(super) attributes: Attributes,
    /// Extended attributes and ACLs; none where it keeps what it has.
    pub(super) extended: Option<Held>,
    pub(super) state: Mutex<State>,
}

/// How far a file is.
pub(super) enum State {
    /// Nothing has arrived.
    Waiting,
    /// A part of it has.
    Open(Part),
    /// Handed over, or given up.
    Over,
}

/// A part file that is being written.
pub(super) struct Part {
    pub(super) number: u64,
    /// What is written or being written.
    pub(super) taken: Taken,
    /// Written in an earlier run.
    pub(super) kept: u64,
    /// Written in this run.
    pub(super) bytes: u64,
    pub(super) sum: PieceSum,
    /// What is to be read back.
    pub(super) pieces: Vec<Sent>,
    pub(super) end: Option<End>,
}

/// The sender's word on a file: its length, and what it sent in this run.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) size: u64,
    pub(super) bytes: u64,
    pub(super) sum: [u8; 32],
}

impl State {
    /// Bytes that are at the destination, if some but not all are.
    pub(super) fn arrived(&self) -> Option<u64> {
        if let Self::Open(part) = self { Some(part.taken.total()) } else { None }
    }

    /// Ends it; the part file that it leaves.
    pub(super) fn give_up(&mut self) -> Option<Part> {
        match std::mem::replace(self, Self::Over) {
            Self::Open(part) => Some(part),
            Self::Waiting | Self::Over => None,
        }
    }
}

impl Part {
    pub(super) fn resumed(number: u64, mut have: Taken, pieces: Vec<Sent>) -> Self {
        have.remembers(pieces.len());
        Self { number, kept: have.total(), taken: have, bytes: 0, sum: PieceSum::default(), pieces, end: None }
    }
}
