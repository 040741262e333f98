//! What stages leave behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use haul_files::journal::Record;

use crate::node::{Node, lock};

/// What a stage has, whether a copy is at work or not.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Inside>);

#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) journal: Vec<Record>,
    pub(crate) parts: BTreeMap<u64, Arc<Node>>,
    pub(crate) last_part: u64,
    pub(crate) held: bool,
}

impl Kept {
    /// A commit did not last: the part is back.
    pub(crate) fn put_back(&self, part: u64, node: Arc<Node>) {
        lock(&self.0).parts.insert(part, node);
    }

    /// How many have no name yet.
    pub(crate) fn parts(&self) -> usize {
        lock(&self.0).parts.len()
    }

    /// The journal ends somewhere.
    pub(crate) fn cut_journal(&self, below: &mut impl FnMut(usize) -> usize) {
        let mut inside = lock(&self.0);
        let length = below(inside.journal.len());
        inside.journal.truncate(length);
    }
}
