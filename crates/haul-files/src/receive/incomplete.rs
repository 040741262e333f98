//! A file that has not arrived in full.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::journal::{PathKey, Source};
use crate::store::Attributes;
use haul_xattrs::Held;

pub(super) use haul_pieces::{End, Part};

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
#[allow(clippy::large_enum_variant, reason = "what a peer makes this side hold is counted by the size of the whole")]
pub(super) enum State {
    /// Nothing has arrived.
    Waiting,
    /// A part of it has.
    Open(Part),
    /// Handed over, or given up.
    Over,
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
