//! Extended attributes and ACLs of what is received.
//!
//! They come in front of the entries that they are of, and are bounded ([`Ahead`](haul_xattrs::Ahead)). A file gets them when it is whole, before it has its name; one that stays as it is, a directory and a link at once.
//! What cannot be set is named, and the thing is there without it.

use haul_xattrs::{Failed, Held, Outcome, Reach, Wanted};

use super::Receiver;
use super::incomplete::Incomplete;
use crate::job::Ownership;
use crate::locks::lock;
use crate::protocol::{Change, Entry, Extended, Kind};
use crate::store::{Part, Store};
use crate::transport::Transport;
use haul_faults::{CopyError, Note, Why, WirePath};

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Takes attributes of what the next entries announce.
    pub(super) fn hear_extended(&self, lists: Vec<Extended>) -> Result<(), CopyError> {
        let (mut ahead, keep) = (lock(&self.ahead), self.options.keep);
        lists.into_iter().try_for_each(|Extended { id, list }| ahead.add(id, list, keep)).map_err(CopyError::PeerMisbehaved)
    }

    /// The entries have come.
    pub(super) fn all_extended(&self) -> Result<(), CopyError> {
        lock(&self.ahead).end().map_err(CopyError::PeerMisbehaved)
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
        Wanted { list: held.list(), keep: self.options.keep, reach, mode, writes: true }
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
