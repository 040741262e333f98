//! The scan: walks the sources and announces what it finds.
//!
//! Files are announced as the [walk](crate::walk) comes to them. Symbolic links below a source are announced as links, unless they are followed.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use haul_names::path_of;
use haul_units::Bytes;

use super::Sender;
use super::early::Held;
use super::source::{Origin, Said, SourceFile};
use crate::job::Same;
use crate::locks::lock;
use crate::observe::Event;
use crate::protocol::{ELSEWHERE, Entry, Kind, Message, ROOT, Stamp};
use crate::store::{At, Content, FileKind, Identity, Metadata, Named, Store, StoreError};
use crate::transport::Transport;
use crate::walk::{self, Visitor};
use haul_faults::{CopyError, Errno, Why, WirePath};

/// Entries after which a batch is sent; it starts at one, so that data flows at once.
const MAX_BATCH: usize = 512;

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// Announces all sources.
    pub(super) fn scan(&self) -> Result<(), CopyError> {
        let mut scan = Scan {
            sender: self,
            links: HashMap::new(),
            found: Vec::new(),
            announced: 0,
            batch: 1,
            files: 0,
            bytes: 0,
            left_out: 0,
            link: None,
        };
        for (index, origin) in self.job.tops.iter().enumerate() {
            match origin {
                Origin::Named(top) => scan.top(index, top)?,
                Origin::Stream(_) => {
                    let name = WirePath(b"stdin".to_vec());
                    let mtime = Stamp::default();
                    let kind = Kind::Stream { linked: false, replaces: None };
                    let entry = Entry { id: 0, parent: ROOT, name, mode: 0o666, mtime, uid: u32::MAX, gid: u32::MAX, kind };
                    let state = crate::journal::Source { size: 0, mtime, version: 0 };
                    let entry = self.announce(entry)?;
                    scan.files += 1;
                    scan.keep(SourceFile { entry, state, dir: ROOT, top: Some(index), link: None, retried: false })?;
                }
            }
        }
        scan.flush(true)?;
        self.session.left_out(scan.left_out);
        if self.job.tells {
            self.session.send(&Message::LeftOut(scan.left_out))?;
        }
        self.session.send(&Message::ScanDone)?;
        self.plan.scanned();
        Ok(())
    }
}

pub(super) struct Scan<'a, T: Transport, S: Store> {
    pub(super) sender: &'a Sender<'a, T, S>,
    /// Files with several names.
    links: HashMap<Identity, u64>,
    /// Files announced in the current batch.
    found: Vec<Arc<SourceFile>>,
    announced: usize,
    batch: usize,
    files: u64,
    bytes: u64,
    /// Names.
    left_out: u64,
    /// What the link leads to that is announced next.
    link: Option<usize>,
}

/// Where links are followed, a directory to be listed knows those that it is in: a link that leads back into them has no end.
pub(super) type Pending = walk::Pending<Option<Rc<Above>>>;

/// A directory, and those that it is in.
pub(super) struct Above {
    identity: Identity,
    up: Option<Rc<Above>>,
}

impl Above {
    fn has(&self, identity: Identity) -> bool {
        std::iter::successors(Some(self), |above| above.up.as_deref()).any(|above| above.identity == identity)
    }
}

impl Drop for Above {
    /// In a loop: a chain is as long as a tree is deep, and the stack is not.
    fn drop(&mut self) {
        let mut up = self.up.take();
        while let Some(mut above) = up.and_then(Rc::into_inner) {
            up = above.up.take();
        }
    }
}

impl<T: Transport, S: Store> Scan<'_, T, S> {
    fn top(&mut self, index: usize, top: &Named<S>) -> Result<(), CopyError> {
        let fail = |why| self.sender.problem(top.spelled.clone(), why);
        let there = match self.sender.dirs.store().stat(top.at()) {
            Ok(there) => there,
            Err(error) => return fail(error.into()),
        };
        let path = top.name.clone();
        if self.leaves_out(&path, there.kind == FileKind::Directory) {
            return Ok(());
        }
        match there.kind {
            FileKind::Directory if self.sender.job.options.recursive || self.sender.job.filter.chosen().is_some() => {
                let entry =
                    self.announce_at(entry_of(ROOT, &top.name, &there, Kind::Directory), top.at(), || top.spelled.clone())?;
                self.sender.dirs.add_source(entry.id, &top.spelled.0, top.top.clone());
                let above = self.below(None, &there);
                let pending = Pending { id: entry.id, path, way: above };
                let filter = self.sender.job.filter.clone();
                match filter.chosen() {
                    None => self.walk(pending),
                    Some(chosen) => self.chosen(pending, chosen),
                }
            }
            FileKind::File if self.sender.job.filter.chosen().is_some() => fail(Errno::NOTDIR.into()),
            FileKind::Directory => fail(Why::DirectoryWithoutRecursive),
            FileKind::File => {
                self.found(&path, &there, || top.spelled.0.clone());
                self.file(ROOT, &top.name, &there, Some(index), top.at())
            }
            // Only met where links are not followed: an exported root.
            FileKind::Symlink => fail(Why::OutsideRoot),
            FileKind::Special => fail(Why::Special),
        }
    }

    /// Where links are followed, what is in a directory is below this.
    fn below(&self, above: Option<Rc<Above>>, there: &Metadata) -> Option<Rc<Above>> {
        self.sender.job.options.follow.then(|| Rc::new(Above { identity: there.identity, up: above }))
    }

    pub(super) fn walk(&mut self, top: Pending) -> Result<(), CopyError> {
        let sender = self.sender;
        walk::below(&sender.dirs, self, top)
    }

    /// Tells who wants to know of a file, which `here` is called on this side.
    fn found(&self, path: &[u8], there: &Metadata, here: impl FnOnce() -> Vec<u8>) {
        let observer = self.sender.session.observer;
        if observer.wants_content() && there.kind == FileKind::File {
            observer.event(Event::Content { name: path, here: &path_of(here()) });
        }
    }

    /// What a link leads to, under the link's name. It is found by its path, as its user would, so a root that is exported leads nowhere by links.
    fn followed(&mut self, pending: &Pending, name: &[u8], path: Vec<u8>, stack: &mut Vec<Pending>) -> Result<(), CopyError> {
        let (parent, dirs) = (pending.id, &self.sender.dirs);
        let spelled = WirePath(dirs.display(parent, name));
        let Ok(top) = dirs.store().source(&spelled).map(Arc::new) else { return self.fail(parent, name, Why::OutsideRoot) };
        let there = match dirs.store().stat(At::Top(&*top)) {
            Ok(there) => there,
            Err(error) => return self.fail(parent, name, error.into()),
        };
        match there.kind {
            FileKind::File => {
                self.found(&path, &there, || spelled.0.clone());
                let mut followed = lock(&self.sender.followed);
                self.link = Some(followed.len());
                followed.push(top.clone());
                drop(followed);
                self.file(parent, name, &there, None, At::Top(&*top))
            }
            FileKind::Directory if pending.way.as_ref().is_some_and(|above| above.has(there.identity)) => {
                self.fail(parent, name, Errno::LOOP.into())
            }
            FileKind::Directory => {
                let entry =
                    self.announce_at(entry_of(parent, name, &there, Kind::Directory), At::Top(&*top), || spelled.clone())?;
                dirs.add_source(entry.id, &spelled.0, top);
                let above = self.below(pending.way.clone(), &there);
                stack.push(Pending { id: entry.id, path, way: above });
                Ok(())
            }
            FileKind::Symlink => self.fail(parent, name, Why::OutsideRoot),
            FileKind::Special => self.special(parent, name),
        }
    }

    fn file(&mut self, parent: u64, name: &[u8], there: &Metadata, top: Option<usize>, at: At<'_, S>) -> Result<(), CopyError> {
        let linked = there.names > 1;
        if let Some(&to) =
            self.links.get(&there.identity).filter(|_| linked && !self.sender.job.in_order && self.sender.orders.is_none())
        {
            return self.announce(entry_of(parent, name, there, Kind::HardLink { to })).map(drop);
        }
        let kind = match kind_of(self.sender.dirs.store(), there, at) {
            Ok(kind) => kind,
            Err(error) => return self.fail_file(parent, name, top, error.into()),
        };
        if self.sender.orders.is_some() && matches!(kind, Kind::Stream { .. }) {
            return self.fail_file(parent, name, top, Why::NoLength);
        }
        let is_elsewhere = self.tells_elsewhere() && self.sender.dirs.store().is_elsewhere(at);
        let entry = self.announce_file(entry_of(parent, name, there, kind), there, top, is_elsewhere)?;
        if linked {
            self.links.insert(there.identity, entry);
        }
        Ok(())
    }

    /// Who orders asks others first for what lies on other machines.
    fn tells_elsewhere(&self) -> bool {
        self.sender.orders.is_some() && self.sender.session.peer_has(ELSEWHERE)
    }

    fn announce_file(
        &mut self,
        entry: Entry,
        there: &Metadata,
        top: Option<usize>,
        is_elsewhere: bool,
    ) -> Result<u64, CopyError> {
        let (dir, state) = (entry.parent, there.source());
        let mut file = SourceFile { entry, state, dir, top, link: self.link.take(), retried: false };
        let hashed = self.sender.job.options.same == Same::Content && self.sender.orders.is_none();
        let hash = if hashed && there.size > 0 { self.sender.digest_of(&file)? } else { None };
        let extended = self.sender.extended_of(&file)?;
        file.entry = self.sender.announce_with(file.entry, Said { hash, extended, is_elsewhere })?;
        let id = file.entry.id;
        self.files += 1;
        self.bytes += there.data;
        self.keep(file)?;
        Ok(id)
    }

    fn keep(&mut self, file: SourceFile) -> Result<(), CopyError> {
        if let Some(orders) = &self.sender.orders {
            orders.announced(&file)?;
            return self.count();
        }
        let file = Arc::new(file);
        if self.sender.plan.waits_for_wants(&file) {
            self.sender.plan.expect_want(file);
        } else if matches!(file.entry.kind, Kind::Stream { .. }) || file.state.size > 0 || self.sender.job.in_order {
            self.found.push(file);
        }
        self.count()
    }

    fn announce(&mut self, entry: Entry) -> Result<Entry, CopyError> {
        let entry = self.sender.announce(entry)?;
        self.count()?;
        Ok(entry)
    }

    /// As [`announce`](Self::announce), of a directory or link, with what it has.
    fn announce_at(&mut self, entry: Entry, at: At<'_, S>, spelled: impl FnOnce() -> WirePath) -> Result<Entry, CopyError> {
        let extended = self.sender.extended(at, spelled)?;
        let entry = self.sender.announce_with(entry, Said { extended, ..Said::default() })?;
        self.count()?;
        Ok(entry)
    }

    fn announce_in(&mut self, dir: &S::Dir, entry: Entry) -> Result<Entry, CopyError> {
        let (parent, name) = (entry.parent, entry.name.0.clone());
        self.announce_at(entry, At::In(dir, &name), || WirePath(self.sender.dirs.display(parent, &name)))
    }

    fn count(&mut self) -> Result<(), CopyError> {
        self.announced += 1;
        if self.announced >= self.batch { self.flush(false) } else { Ok(()) }
    }

    fn flush(&mut self, complete: bool) -> Result<(), CopyError> {
        self.batch = (self.batch * 2).min(MAX_BATCH);
        self.announced = 0;
        self.sender.flush()?;
        let (files, bytes) = (self.files, Bytes(self.bytes));
        self.sender.session.observer.event(Event::Found { files, bytes, complete });
        self.sender.plan.add(self.found.drain(..), || self.sender.check())
    }

    fn fail_file(&self, parent: u64, name: &[u8], top: Option<usize>, why: Why) -> Result<(), CopyError> {
        match top.and_then(|index| self.sender.job.tops.get(index)) {
            Some(Origin::Named(top)) => self.sender.problem(top.spelled.clone(), why),
            _ => self.fail(parent, name, why),
        }
    }

    fn special(&self, parent: u64, name: &[u8]) -> Result<(), CopyError> {
        self.sender.tell(Held::Special(WirePath(self.sender.dirs.display(parent, name))))
    }
}

impl<T: Transport, S: Store> Visitor<S> for Scan<'_, T, S> {
    type Way = Option<Rc<Above>>;
    type End = CopyError;

    fn check(&self) -> Result<(), CopyError> {
        self.sender.check()
    }

    fn looks_at_paths(&self) -> bool {
        let filter = &self.sender.job.filter;
        !filter.is_empty() || filter.chosen().is_some() || self.sender.session.observer.wants_content()
    }

    fn leaves_out(&mut self, path: &[u8], is_directory: bool) -> bool {
        let out = self.sender.job.filter.leaves_out(path, is_directory);
        self.left_out += u64::from(out);
        out
    }

    fn child(
        &mut self,
        dir: &S::Dir,
        pending: &Pending,
        (name, path): (&[u8], Vec<u8>),
        there: &Metadata,
        stack: &mut Vec<Pending>,
    ) -> Result<(), CopyError> {
        let parent = pending.id;
        match there.kind {
            FileKind::File => {
                self.found(&path, there, || self.sender.dirs.display(parent, name));
                self.file(parent, name, there, None, At::In(dir, name))
            }
            FileKind::Directory => {
                let entry = self.announce_in(dir, entry_of(parent, name, there, Kind::Directory))?;
                self.sender.dirs.add(entry.id, parent, name);
                let above = self.below(pending.way.clone(), there);
                stack.push(Pending { id: entry.id, path, way: above });
                Ok(())
            }
            FileKind::Symlink if self.sender.job.options.follow => self.followed(pending, name, path, stack),
            FileKind::Symlink => match self.sender.dirs.store().read_link(dir, name) {
                Ok(target) => {
                    let kind = Kind::Symlink { target: WirePath(target) };
                    self.announce_in(dir, entry_of(parent, name, there, kind)).map(drop)
                }
                Err(error) => self.fail(parent, name, error.into()),
            },
            FileKind::Special => self.special(parent, name),
        }
    }

    fn fail(&self, parent: u64, name: &[u8], why: Why) -> Result<(), CopyError> {
        self.sender.problem(WirePath(self.sender.dirs.display(parent, name)), why)
    }
}

/// What a regular file is announced as. One that says it is empty is asked for a byte: those of procfs, and of some FUSE file systems, say so and
/// have content.
pub(super) fn kind_of<S: Store>(store: &S, there: &Metadata, at: At<'_, S>) -> Result<Kind, StoreError> {
    if there.size == 0 && store.open(at)?.read_at(&mut Vec::new(), 0, 1)? > 0 {
        return Ok(Kind::Stream { linked: there.names > 1, replaces: None });
    }
    Ok(file_kind(there, None))
}

/// A regular file that is as long as it says.
pub(super) fn file_kind(there: &Metadata, replaces: Option<u64>) -> Kind {
    let source = there.source();
    Kind::File { size: source.size, data: there.data, version: source.version, linked: there.names > 1, replaces }
}

/// An entry, its id left open.
pub(super) fn entry_of(parent: u64, name: &[u8], there: &Metadata, kind: Kind) -> Entry {
    Entry {
        id: 0,
        parent,
        name: WirePath(name.to_vec()),
        mode: there.mode,
        mtime: there.mtime,
        uid: there.uid,
        gid: there.gid,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_chain_of_directories_is_forgotten_without_a_deep_stack() {
        let mut chain = None;
        for inode in 0..1_000_000 {
            chain = Some(Rc::new(Above { identity: Identity { device: 1, inode }, up: chain }));
        }
        let shared = chain.clone();
        drop(chain);
        assert!(shared.as_ref().is_some_and(|above| above.has(Identity { device: 1, inode: 0 })), "another still has it");
        drop(shared);
    }
}
