//! `--delete`: what the destination has and the source has not.
//!
//! The receiver alone decides: no message names what is to go. It compares what is in each directory that was announced with what was announced for it, when all else is done. What goes:
//!
//! - nothing, where the source could not be read whole, or more names would go than may;
//! - nothing in a directory where not all that was announced can be seen: a file system that takes `A` for `a` shows one name for both;
//! - nothing that the filter of the copy leaves out, no directory that has such a thing in it, no stage of a copy, nothing on another file system;
//! - nothing but in directories that were announced. Links are removed, never followed.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use haul_names::is_reserved;

use super::Receiver;
use crate::locks::lock;
use crate::protocol::{Change, Message};
use crate::store::{At, FileKind, Metadata, Stage as _, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{CopyError, Note, Why, WirePath};

/// What is done with what is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// It is counted, up to so many.
    Count(u64),
    /// It is said, in a dry run.
    Say,
    Remove,
}

/// Something that is not at the source.
struct Surplus {
    name: Vec<u8>,
    there: Metadata,
}

/// A directory that is not at the source, while what is in it goes.
struct Doomed {
    id: u64,
    parent: u64,
    name: Vec<u8>,
    left: Vec<Surplus>,
    /// Something in it stays, so it does too.
    stays: bool,
}

/// A way through the surplus of all directories.
struct Way {
    deed: Deed,
    /// Names that are gone, or would be.
    names: u64,
    /// The last id that a directory has here.
    last_id: u64,
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Removes what is not at the source, or says it in a dry run.
    pub(super) fn remove_surplus(&self) -> Result<(), CopyError> {
        let Some(delete) = self.options.delete else { return Ok(()) };
        if self.session.misses_some() || !self.scanned.load(Ordering::Relaxed) {
            return self.session.remark(Note::NothingDeleted { path: self.tree.place.spelled.clone() });
        }
        let last_id = lock(&self.files).last_id;
        if let Some(most) = delete.most {
            let names = self.go_through(Deed::Count(most), last_id)?;
            if names > most {
                return self.problem(self.tree.place.spelled.clone(), Why::TooMuchToDelete { most });
            }
        }
        let deed = if self.options.dry_run { Deed::Say } else { Deed::Remove };
        let names = self.go_through(deed, last_id)?;
        self.session.removed(names);
        if self.serves { self.session.say(&Message::Removed(names)) } else { Ok(()) }
    }

    /// All directories that were announced; how many names.
    fn go_through(&self, deed: Deed, last_id: u64) -> Result<u64, CopyError> {
        // Ids of their own, beyond those of an earlier way.
        let mut way = Way { deed, names: 0, last_id: self.tree.dirs.last_id().max(last_id) };
        for id in self.tree.taken_directories() {
            self.session.check_what_came()?;
            match self.surplus_in(id, deed) {
                Ok(surplus) => self.clear(&mut way, id, surplus)?,
                Err(_) if matches!(deed, Deed::Count(_)) => {}
                Err(why) => self.problem(self.tree.display(id, b""), why)?,
            }
            if way.is_enough() {
                break;
            }
        }
        Ok(way.names)
    }

    /// What is in a directory and was not announced.
    fn surplus_in(&self, id: u64, deed: Deed) -> Result<Vec<Surplus>, Why> {
        let mut seen = 0;
        let surplus = self.listed(id, |name| {
            let announced = self.tree.is_announced(id, name);
            seen += u64::from(announced);
            !announced
        })?;
        // In a dry run nothing new is there; before it is removed, all is.
        if deed == Deed::Remove && !surplus.is_empty() && seen < self.tree.announced_in(id) {
            return Err(Why::NotAllSeen);
        }
        Ok(surplus)
    }

    /// What is in a directory and may go, of what `wanted` wants.
    fn listed(&self, id: u64, mut wanted: impl FnMut(&[u8]) -> bool) -> Result<Vec<Surplus>, StoreError> {
        let (mut found, mut failed) = (Vec::new(), Ok(()));
        let dir = self.tree.dirs.open(id)?;
        let store = self.tree.dirs.store();
        store.list(&dir, &mut |listed| {
            if !wanted(listed.name) || is_reserved(listed.name) {
                return ControlFlow::Continue(());
            }
            match (listed.metadata)() {
                Ok(there) => found.push(Surplus { name: listed.name.to_vec(), there }),
                Err(StoreError::Missing) => {}
                Err(error) => failed = Err(error),
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed.map(|()| found)
    }

    /// Removes these from a directory with all that is in them, without recursion.
    fn clear(&self, way: &mut Way, id: u64, surplus: Vec<Surplus>) -> Result<(), CopyError> {
        let mut open = vec![Doomed { id, parent: id, name: Vec::new(), left: surplus, stays: false }];
        while let Some(dir) = open.last_mut() {
            self.session.check_what_came()?;
            if way.is_enough() {
                return Ok(());
            }
            let (at, next) = (dir.id, dir.left.pop());
            let stays = match next {
                Some(one) if one.there.kind == FileKind::Directory => match self.enter(way, at, one)? {
                    Some(inner) => {
                        open.push(inner);
                        false
                    }
                    None => true,
                },
                Some(one) => self.leaves_alone(at, &one) || !self.removed(way, at, &one.name, false)?,
                None => {
                    let done = open.pop().filter(|_| !open.is_empty());
                    match done {
                        Some(done) => {
                            let stays = done.stays || !self.removed(way, done.parent, &done.name, true)?;
                            if !stays {
                                self.tree.untouched(done.id);
                            }
                            stays
                        }
                        None => false,
                    }
                }
            };
            if let Some(dir) = open.last_mut() {
                dir.stays |= stays;
            }
        }
        Ok(())
    }

    /// Goes into a directory that is to go; none where it stays.
    fn enter(&self, way: &mut Way, parent: u64, one: Surplus) -> Result<Option<Doomed>, CopyError> {
        if self.leaves_alone(parent, &one) {
            return Ok(None);
        }
        let Surplus { name, there } = one;
        let path = self.tree.display(parent, &name);
        if self.device_of(parent).is_some_and(|device| device != there.identity.device) {
            return self.stays(way, path, Why::OtherFileSystem).map(|()| None);
        }
        let (dirs, id) = (&self.tree.dirs, way.last_id + 1);
        let opened = dirs.open(parent).and_then(|dir| {
            let opened = dirs.store().directory(At::In(&*dir, &name), Some(there.identity))?;
            if way.deed == Deed::Remove && self.tree.may_open_up(&there) {
                dirs.store().set_mode(&opened, there.mode | 0o700)?;
            }
            dirs.add_open(id, parent, &name, opened, there.identity);
            self.listed(id, |_| true)
        });
        way.last_id = id;
        match opened {
            Ok(left) => Ok(Some(Doomed { id, parent, name, left, stays: false })),
            Err(error) => self.stays(way, path, error.into()).map(|()| None),
        }
    }

    /// Whether the filter leaves it out, or it is a stage: then it is not the source's to have.
    fn leaves_alone(&self, parent: u64, one: &Surplus) -> bool {
        let is_directory = one.there.kind == FileKind::Directory;
        self.tree.stage.store.identity() == Some(one.there.identity)
            || !self.filter.is_empty() && self.filter.leaves_out(&self.tree.path_below(parent, &one.name), is_directory)
    }

    /// Where a directory is, as far as that is known; what is at the top is where the stage is.
    fn device_of(&self, id: u64) -> Option<u64> {
        self.tree.dirs.identity(id).or_else(|| self.tree.stage.store.identity()).map(|identity| identity.device)
    }

    /// Removes a name, and says so; whether it is gone.
    fn removed(&self, way: &mut Way, parent: u64, name: &[u8], is_directory: bool) -> Result<bool, CopyError> {
        if way.deed == Deed::Remove {
            let dirs = &self.tree.dirs;
            let removed = dirs.open(parent).and_then(|dir| dirs.store().remove(&dir, name, is_directory));
            match removed {
                Ok(()) => self.tree.touched(parent),
                Err(StoreError::Missing) => return Ok(true),
                Err(error) => return self.stays(way, self.tree.display(parent, name), error.into()).map(|()| false),
            }
        }
        way.names += 1;
        if !matches!(way.deed, Deed::Count(_)) {
            self.would(parent, name, Change::Removed)?;
        }
        Ok(true)
    }

    /// Something could not be removed.
    fn stays(&self, way: &Way, path: WirePath, why: Why) -> Result<(), CopyError> {
        if matches!(way.deed, Deed::Count(_)) { Ok(()) } else { self.problem(path, why) }
    }
}

impl Way {
    /// More is known than was to be.
    fn is_enough(&self) -> bool {
        matches!(self.deed, Deed::Count(most) if self.names > most)
    }
}
