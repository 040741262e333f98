//! The stage of a copy as the engine has it: what an earlier run left, and the part files that are open.
//!
//! Where parts are, and how they get their names, is the store's business ([`store::Stage`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::block::{Hash, Sent, UNHASHED};
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
    /// Stands in the journal for a hash that is not known.
    unhashed: Hash,
}

impl<S: Store> Stage<S> {
    /// A stage, and the journal that was in it.
    pub(super) fn new((store, records): (S::Stage, Vec<Record>)) -> Self {
        let unhashed = store.boot().unwrap_or(UNHASHED);
        Self { store, open: Shelf::new(), earlier: Mutex::new(earlier(&records)), unhashed }
    }

    /// The hash that the journal is to have of a piece that came with this one.
    pub(super) fn recorded(&self, hash: Hash) -> Hash {
        if hash == UNHASHED { self.unhashed } else { hash }
    }

    /// Whether a part file has this range. One without a hash may have been lost with the machine that kept it, so it counts only while that runs, and only where no hashes are asked for.
    pub(super) fn holds(&self, part: &impl Content, (offset, length, hash): &Sent, hashes: bool, buffer: &mut Vec<u8>) -> bool {
        if *hash == UNHASHED || *hash == self.unhashed {
            return *hash != UNHASHED && !hashes;
        }
        buffer.clear();
        part.read_at(buffer, *offset, *length as usize) == Ok(*length as usize) && blake3::hash(buffer).as_bytes() == hash
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
