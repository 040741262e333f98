//! The stage of a copy as the engine has it: what an earlier run left, and the part files that are open.
//!
//! Where parts are, and how they get their names, is the store's business ([`store::Stage`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::block::Hash;
use crate::journal::{Earlier, PathKey, Record, earlier};
use crate::locks::lock;
use crate::store::{self, Content, Stage as _, Store, StoreError};
use haul_descriptors::Shelf;

type Part<S> = <<S as Store>::Stage as store::Stage>::Part;

pub(super) struct Stage<S: Store> {
    pub(super) store: S::Stage,
    /// Part files that are open.
    open: Shelf<Part<S>>,
    earlier: Mutex<HashMap<PathKey, Earlier>>,
}

impl<S: Store> Stage<S> {
    /// A stage, and the journal that was in it.
    pub(super) fn new((store, records): (S::Stage, Vec<Record>)) -> Self {
        Self { store, open: Shelf::new(), earlier: Mutex::new(earlier(&records)) }
    }

    /// Whether an earlier run left something.
    pub(super) fn has_earlier(&self) -> bool {
        !lock(&self.earlier).is_empty()
    }

    /// What an earlier run left of a file; given once.
    pub(super) fn take_earlier(&self, path: &PathKey) -> Option<Earlier> {
        lock(&self.earlier).remove(path)
    }

    /// A part file that is not finished.
    pub(super) fn part(&self, part: u64) -> Result<Arc<Part<S>>, StoreError> {
        match self.open.get(part) {
            Some(open) => Ok(open),
            None => Ok(self.keep_open(part, self.store.reopen(part)?)),
        }
    }

    /// Keeps a part file open for [`part`](Self::part).
    pub(super) fn keep_open(&self, number: u64, part: Part<S>) -> Arc<Part<S>> {
        let part = Arc::new(part);
        self.open.keep(number, part.clone());
        part
    }

    /// No more is written to a part file.
    pub(super) fn finished(&self, part: u64) {
        self.open.forget(part);
    }

    /// Removes a part file.
    pub(super) fn discard(&self, part: u64) {
        self.open.forget(part);
        self.store.discard(part);
    }
}

/// Reads a range of a part file and compares its hash.
pub(super) fn holds(part: &impl Content, offset: u64, length: u32, hash: &Hash, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    part.read_at(buffer, offset, length as usize) == Ok(length as usize) && blake3::hash(buffer).as_bytes() == hash
}
