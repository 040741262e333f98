//! Extended attributes and ACLs of what is received.
//!
//! They come in front of the entries that they are of, and are bounded ([`check`]). A file gets them when it is whole, before it has its name; one that stays as it is, a directory and a link at once.
//! What cannot be set is named, and the thing is there without it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_xattrs::{Attribute, Failed, MAX_BYTES, Outcome, Reach, Wanted, bytes, check};

use super::Receiver;
use super::incomplete::Incomplete;
use crate::job::Ownership;
use crate::locks::lock;
use crate::protocol::{Change, Entry, Extended, Kind};
use crate::store::{Part, Store};
use crate::transport::Transport;
use haul_faults::{CopyError, Note, Why, WirePath};

/// Attributes that came before their entries: those of one batch, of which only the last thing may have very many.
const MAX_AHEAD: usize = 2 * MAX_BYTES;
/// What one list takes besides its names and values, at least.
const LIST_BYTES: usize = 64;

/// What came before its entries, by their ids.
#[derive(Default)]
pub(super) struct Ahead {
    lists: HashMap<u64, Held>,
    bytes: usize,
    /// What is held of files that are not complete.
    held: Arc<AtomicUsize>,
}

/// What a file is to have, counted for as long as it is remembered.
pub(super) struct Held {
    list: Vec<Attribute>,
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Ahead {
    fn add(&mut self, Extended { id, list }: Extended) -> Result<(), CopyError> {
        let bytes = LIST_BYTES + bytes(&list) + list.len() * size_of::<Attribute>();
        self.bytes += bytes;
        if self.bytes > MAX_AHEAD {
            return Err(CopyError::PeerMisbehaved("more attributes than can be remembered"));
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let held = Held { list, bytes, all: self.held.clone() };
        if self.lists.insert(id, held).is_some() {
            return Err(CopyError::PeerMisbehaved("attributes of the same thing twice"));
        }
        Ok(())
    }
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Takes attributes of what the next entries announce.
    pub(super) fn hear_extended(&self, lists: Vec<Extended>) -> Result<(), CopyError> {
        let mut ahead = lock(&self.ahead);
        for extended in lists {
            check(&extended.list, self.options.keep).map_err(|_| CopyError::PeerMisbehaved("attributes that cannot be"))?;
            ahead.add(extended)?;
        }
        Ok(())
    }

    /// The entries have come: attributes of others are an honest sender's never.
    pub(super) fn all_extended(&self) -> Result<(), CopyError> {
        let mut ahead = lock(&self.ahead);
        ahead.bytes = 0;
        if ahead.lists.is_empty() { Ok(()) } else { Err(CopyError::PeerMisbehaved("attributes of nothing")) }
    }

    /// What an entry is to have; none where it stays as it is.
    pub(super) fn extended_of(&self, entry: &Entry) -> Option<Held> {
        lock(&self.ahead).lists.remove(&entry.id)
    }

    /// Bytes of attributes that are remembered.
    pub(super) fn extended_bytes(&self) -> usize {
        lock(&self.ahead).held.load(Ordering::Relaxed)
    }

    /// Gives a file that is whole what it is to have.
    pub(super) fn extend_part(&self, file: &Incomplete, part: &impl Part) -> Result<(), CopyError> {
        let Some(held) = &file.extended else { return Ok(()) };
        let result = part.set_extended(&self.wanted(held, None));
        self.extended(|| self.tree.display(file.parent, &file.name), result).map(drop)
    }

    /// Gives a file that stays what it is to have, or says that it would.
    pub(super) fn extend_kept(&self, file: &Incomplete) -> Result<(), CopyError> {
        let Some(held) = &file.extended else { return Ok(()) };
        let mode = self.options.keep.acls.then_some(file.attributes.final_mode & 0o777);
        self.extend_named(file.parent, &file.name, &self.wanted(held, mode))
    }

    /// Gives a directory or link what it is to have, or says that it would.
    pub(super) fn extend_entry(&self, entry: &Entry, name: &[u8], held: Option<Held>) -> Result<(), CopyError> {
        let Some(held) = held else { return Ok(()) };
        if !matches!(entry.kind, Kind::Directory) {
            return self.extend_named(entry.parent, name, &self.wanted(&held, None));
        }
        self.extend_named(entry.id, b".", &self.wanted(&held, None))?;
        // An ACL has changed its mode, which is another until all is in it.
        let opened = if self.options.keep.acls { self.tree.open_up(entry) } else { Ok(()) };
        opened.or_else(|why| self.problem(self.tree.display(entry.parent, name), why))
    }

    fn extend_named(&self, parent: u64, name: &[u8], wanted: &Wanted<'_>) -> Result<(), CopyError> {
        let path = || self.tree.display(parent, if name == b"." { b"" } else { name });
        let dir = match self.tree.dirs.open(parent) {
            Ok(dir) => dir,
            Err(error) => return self.problem(path(), error.into()),
        };
        let outcome = self.extended(path, self.tree.dirs.store().set_extended(&dir, name, wanted))?;
        if outcome.changed && self.options.dry_run {
            self.would(parent, if name == b"." { b"" } else { name }, Change::Attributes)?;
        }
        Ok(())
    }

    fn wanted<'h>(&self, held: &'h Held, mode: Option<u32>) -> Wanted<'h> {
        let any = self.tree.is_root() && self.tree.place.ownership == Ownership::Allow;
        let reach = if any { Reach::All } else { Reach::User };
        Wanted { list: &held.list, keep: self.options.keep, reach, mode, writes: true }
    }

    /// Says what could not be done.
    fn extended(&self, path: impl FnOnce() -> WirePath, result: Result<Outcome, Failed>) -> Result<Outcome, CopyError> {
        match result {
            Ok(outcome) => {
                if outcome.left_out {
                    self.session.remark(Note::AttributesNotKept)?;
                }
                Ok(outcome)
            }
            Err(Failed { name, number }) => {
                self.problem(path(), Why::Attribute { name: WirePath(name), number })?;
                Ok(Outcome::default())
            }
        }
    }
}
