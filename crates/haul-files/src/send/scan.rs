//! The scan: walks the sources and announces what it finds, without recursion.
//!
//! A directory is read to its end before the next one, its files announced as they come and its subdirectories put on a stack; so one descriptor is open
//! for reading at a time, whatever the depth, and the width of a directory costs no memory. Symbolic links below a source are announced as links.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use haul_units::Bytes;

use super::Sender;
use super::source::{Origin, SourceFile};
use crate::error::{CopyError, Why, WirePath};
use crate::observe::Event;
use crate::protocol::{Entry, Kind, Message, ROOT, Stamp};
use crate::store::{At, Content, FileKind, Identity, Metadata, Named, Store, StoreError};
use crate::transport::Transport;

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
                    scan.keep(SourceFile { entry, state, dir: ROOT, top: Some(index), retried: false })?;
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

struct Scan<'a, T: Transport, S: Store> {
    sender: &'a Sender<'a, T, S>,
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
}

/// A directory to be listed.
struct Pending {
    id: u64,
    /// Its path below the target, if the filter looks at it.
    path: Vec<u8>,
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
            FileKind::Directory if self.sender.job.options.recursive => {
                let entry = self.announce(entry_of(ROOT, &top.name, &there, Kind::Directory))?;
                self.sender.dirs.add_source(entry.id, &top.spelled.0, top.top.clone());
                self.walk(Pending { id: entry.id, path })
            }
            FileKind::Directory => fail(Why::DirectoryWithoutRecursive),
            FileKind::File => self.file(ROOT, &top.name, &there, Some(index), top.at()),
            // Only met where links are not followed: an exported root.
            FileKind::Symlink => fail(Why::OutsideRoot),
            FileKind::Special => fail(Why::Special),
        }
    }

    fn walk(&mut self, top: Pending) -> Result<(), CopyError> {
        let mut stack = vec![top];
        while let Some(pending) = stack.pop() {
            if let Err(error) = self.directory(&pending, &mut stack)? {
                self.sender.problem(WirePath(self.sender.dirs.display(pending.id, b"")), error.into())?;
            }
        }
        Ok(())
    }

    /// Whether this is left out; if so, it is counted.
    fn leaves_out(&mut self, path: &[u8], is_directory: bool) -> bool {
        let out = self.sender.job.filter.leaves_out(path, is_directory);
        self.left_out += u64::from(out);
        out
    }

    /// One directory; the inner error is its own.
    fn directory(&mut self, pending: &Pending, stack: &mut Vec<Pending>) -> Result<Result<(), StoreError>, CopyError> {
        let id = pending.id;
        let dir = match self.sender.dirs.open(id) {
            Ok(dir) => dir,
            Err(error) => return Ok(Err(error)),
        };
        let mut gone_on = Ok(());
        let store = self.sender.dirs.store();
        let listed = store.list(&dir, &mut |entry| {
            gone_on = self.sender.check().and_then(|()| {
                let metadata = (entry.metadata)();
                let is_directory = metadata.as_ref().is_ok_and(|there| there.kind == FileKind::Directory);
                let path = self.sender.job.filter.path(&pending.path, entry.name);
                if self.leaves_out(&path, is_directory) {
                    return Ok(());
                }
                match metadata {
                    Ok(there) => self.child((&dir, id), entry.name, path, &there, stack),
                    Err(error) => self.fail(id, entry.name, error.into()),
                }
            });
            if gone_on.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        gone_on.map(|()| listed)
    }

    fn child(
        &mut self,
        (dir, parent): (&S::Dir, u64),
        name: &[u8],
        path: Vec<u8>,
        there: &Metadata,
        stack: &mut Vec<Pending>,
    ) -> Result<(), CopyError> {
        match there.kind {
            FileKind::File => self.file(parent, name, there, None, At::In(dir, name)),
            FileKind::Directory => {
                let entry = self.announce(entry_of(parent, name, there, Kind::Directory))?;
                self.sender.dirs.add(entry.id, parent, name);
                stack.push(Pending { id: entry.id, path });
                Ok(())
            }
            FileKind::Symlink => match self.sender.dirs.store().read_link(dir, name) {
                Ok(target) => {
                    let kind = Kind::Symlink { target: WirePath(target) };
                    self.announce(entry_of(parent, name, there, kind)).map(drop)
                }
                Err(error) => self.fail(parent, name, error.into()),
            },
            FileKind::Special => self.fail(parent, name, Why::Special),
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
        let entry = self.announce_file(entry_of(parent, name, there, kind), there, top)?;
        if linked {
            self.links.insert(there.identity, entry);
        }
        Ok(())
    }

    fn announce_file(&mut self, entry: Entry, there: &Metadata, top: Option<usize>) -> Result<u64, CopyError> {
        let entry = self.sender.announce(entry)?;
        let id = entry.id;
        self.files += 1;
        self.bytes += there.data;
        let dir = entry.parent;
        self.keep(SourceFile { entry, state: there.source(), dir, top, retried: false })?;
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
