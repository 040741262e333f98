//! Lists that a peer has said in front of what they are of: checked, few, and counted for as long as anybody remembers them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Attribute, Keep, MAX_BYTES, bytes, check};

/// What may wait for what it is of: one batch, of which only the last thing may have very many.
const MAX_AHEAD: usize = 2 * MAX_BYTES;
/// What one list takes besides its names and values, at least.
const LIST_BYTES: usize = 64;

/// What came first, by numbers of what is to come.
#[derive(Default)]
pub struct Ahead {
    lists: HashMap<u64, Held>,
    bytes: usize,
    /// Of all lists that are remembered, taken or not.
    held: Arc<AtomicUsize>,
}

/// What a thing is to have, counted until it is dropped.
pub struct Held {
    list: Vec<Attribute>,
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Held {
    /// By the names.
    pub fn list(&self) -> &[Attribute] {
        &self.list
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Ahead {
    /// Takes a list of what is to come, where so much is kept; an error is what is wrong with the peer.
    pub fn add(&mut self, id: u64, list: Vec<Attribute>, keep: Keep) -> Result<(), &'static str> {
        check(&list, keep).map_err(|_| "attributes that cannot be")?;
        let bytes = LIST_BYTES + bytes(&list) + list.len() * size_of::<Attribute>();
        self.bytes += bytes;
        if self.bytes > MAX_AHEAD {
            return Err("more attributes than can be remembered");
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let held = Held { list, bytes, all: self.held.clone() };
        self.lists.insert(id, held).map_or(Ok(()), |_| Err("attributes of the same thing twice"))
    }

    /// The list of what has come; none where none was said.
    pub fn take(&mut self, id: u64) -> Option<Held> {
        self.lists.remove(&id)
    }

    /// All that a batch is of has come: lists of anything else are no honest peer's.
    pub fn end(&mut self) -> Result<(), &'static str> {
        self.bytes = 0;
        if self.lists.is_empty() { Ok(()) } else { Err("attributes of nothing") }
    }

    /// Bytes of lists that are remembered.
    pub fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}
