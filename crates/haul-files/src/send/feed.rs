//! A sender that is fed: somebody else walks the tree and says, one thing after the other, what goes to this receiver.
//!
//! A receiver that answers (it compares, or has something of an earlier run) can be *offered* a file: it says how much of it is missing, and only then it is decided whether the content goes there.

use std::collections::HashMap;
use std::sync::Arc;

use super::Sender;
use super::scan::{entry_of, file_kind, kind_of};
use super::source::{Origin, SourceFile, Wanted};
use crate::locks::lock;
use crate::protocol::{Entry, FileEnd, Kind, Message, ROOT, Stamp, Want};
use crate::store::{At, Metadata, Named, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{CopyError, WirePath};

/// Entries after which a batch is sent; it also goes where nothing follows at once.
const MAX_BATCH: usize = 512;
/// What stands for a source without a name of its own among the directories of this side: above all ids that are given.
const NAMELESS: u64 = 1 << 63;

/// Says what is sent. Things have numbers of its choice, each another one. Called from two threads.
pub trait Feed: Send + Sync {
    /// Which part of the tree this is: several go to one place where receivers share a file system. The same for a later run.
    fn part(&self) -> &[u8] {
        b""
    }

    /// The receiver is ready; whether it answers. Said once, before all else.
    fn ready(&self, answers: bool);

    /// What to do next. Does not wait: where there is nothing yet it says [`Fed::Later`].
    fn next(&self) -> Fed;

    /// Waits until there may be something next, a tenth of a second at most.
    fn wait(&self);

    /// The receiver's word on a file that it was [offered](Fed::Offer): how many bytes of it it lacks.
    fn answer(&self, number: u64, missing: u64);
}

/// What a sender that is fed does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// Nothing yet.
    Later,
    /// Announce a directory. One without a name, which must be a source, is the destination itself.
    Directory(Thing),
    /// Announce a symbolic link, and what it says.
    Symlink(Thing, Vec<u8>),
    /// Send a file, or what the receiver wants of it.
    File(Thing),
    /// Announce a file to a receiver that answers, and wait.
    Offer(Thing),
    /// Send a file that was offered and answered.
    Send(u64),
    /// Do not send it after all.
    Drop(u64),
    /// That was all.
    End,
}

/// Something in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Its number; above zero.
    pub number: u64,
    /// The number of the directory that it is in, which was announced before; 0: none, it is one of the sources.
    pub parent: u64,
    /// Which of the sources it is itself, if it is one.
    pub source: Option<usize>,
    /// Its name there.
    pub name: Vec<u8>,
    /// What was found.
    pub metadata: Metadata,
}

/// Files that were offered.
#[derive(Default)]
pub(super) struct Offers {
    /// Not answered, by id.
    asked: HashMap<u64, u64>,
    /// Answered, by number.
    answered: HashMap<u64, (Arc<SourceFile>, Wanted)>,
}

/// Announces and sends what it is told.
pub(super) fn run<T: Transport, S: Store>(sender: &Sender<'_, T, S>, feed: &dyn Feed) -> Result<(), CopyError> {
    let mut run = Run { sender, directories: HashMap::new(), found: Vec::new(), announced: 0 };
    let top = run.top()?;
    run.directories.insert(0, (top, top));
    loop {
        sender.check()?;
        match feed.next() {
            Fed::Later => {
                run.flush()?;
                feed.wait();
            }
            Fed::Directory(thing) => run.directory(&thing)?,
            Fed::Symlink(thing, target) => {
                let (parent, _) = run.parent(&thing)?;
                let kind = Kind::Symlink { target: WirePath(target) };
                sender.announce(entry_of(parent, &thing.name, &thing.metadata, kind))?;
                run.announced += 1;
            }
            Fed::File(thing) => run.file(&thing, false)?,
            Fed::Offer(thing) => run.file(&thing, true)?,
            Fed::Send(number) => {
                if let Some((file, wanted)) = lock(&sender.offers).answered.remove(&number) {
                    sender.plan.take(file, wanted);
                }
            }
            Fed::Drop(number) => {
                let dropped = lock(&sender.offers).answered.remove(&number);
                dropped.map_or(Ok(()), |(file, wanted)| sender.drop_offer(&file, &wanted))?;
            }
            Fed::End => break,
        }
        if run.announced >= MAX_BATCH {
            run.flush()?;
        }
    }
    let left = std::mem::take(&mut lock(&sender.offers).answered);
    for (file, wanted) in left.into_values() {
        sender.drop_offer(&file, &wanted)?;
    }
    run.flush()?;
    sender.session.send(&Message::ScanDone)?;
    sender.plan.scanned();
    Ok(())
}

struct Run<'a, T: Transport, S: Store> {
    sender: &'a Sender<'a, T, S>,
    /// By number: the id of a directory on the wire, and among those of this side.
    directories: HashMap<u64, (u64, u64)>,
    found: Vec<Arc<SourceFile>>,
    announced: usize,
}

impl<T: Transport, S: Store> Run<'_, T, S> {
    /// The destination: a directory that is nobody's, so that it keeps its attributes.
    fn top(&mut self) -> Result<u64, CopyError> {
        let name = WirePath(Vec::new());
        let (uid, gid, mtime) = (u32::MAX, u32::MAX, Stamp::default());
        let entry = Entry { id: 0, parent: ROOT, name, mode: 0o777, mtime, uid, gid, kind: Kind::Directory };
        self.announced += 1;
        Ok(self.sender.announce(entry)?.id)
    }

    fn parent(&self, thing: &Thing) -> Result<(u64, u64), CopyError> {
        self.directories
            .get(&thing.parent)
            .copied()
            .ok_or(CopyError::PeerMisbehaved("a thing in a directory that was not announced"))
    }

    fn directory(&mut self, thing: &Thing) -> Result<(), CopyError> {
        let (parent, dir) = self.parent(thing)?;
        let source = thing.source.and_then(|index| self.sender.job.tops.get(index).map(|origin| (index, origin)));
        let id = if thing.name.is_empty() {
            parent
        } else {
            self.announced += 1;
            self.sender.announce(entry_of(parent, &thing.name, &thing.metadata, Kind::Directory))?.id
        };
        let own = if let Some((index, Origin::Named(Named { spelled, top, .. }))) = source {
            let own = if thing.name.is_empty() { NAMELESS + index as u64 } else { id };
            self.sender.dirs.add_source(own, &spelled.0, top.clone());
            own
        } else {
            self.sender.dirs.add(id, dir, &thing.name);
            id
        };
        self.directories.insert(thing.number, (id, own));
        Ok(())
    }

    fn file(&mut self, thing: &Thing, offered: bool) -> Result<(), CopyError> {
        let sender = self.sender;
        let (parent, dir) = self.parent(thing)?;
        match self.kind(thing, dir) {
            Ok(kind) => {
                let entry = sender.announce(entry_of(parent, &thing.name, &thing.metadata, kind))?;
                self.announced += 1;
                let file = Arc::new(SourceFile {
                    entry,
                    state: thing.metadata.source(),
                    dir,
                    top: thing.source,
                    link: None,
                    retried: false,
                });
                if sender.plan.waits_for_wants(&file) {
                    if offered {
                        lock(&sender.offers).asked.insert(file.entry.id, thing.number);
                    }
                    sender.plan.expect_want(file);
                } else if matches!(file.entry.kind, Kind::Stream { .. }) || file.state.size > 0 {
                    self.found.push(file);
                }
                Ok(())
            }
            Err(why) => {
                let path = match thing.source.and_then(|index| sender.job.tops.get(index)) {
                    Some(Origin::Named(top)) => top.spelled.clone(),
                    _ => WirePath(sender.dirs.display(dir, &thing.name)),
                };
                sender.problem(path, why.into())
            }
        }
    }

    fn kind(&self, thing: &Thing, dir: u64) -> Result<Kind, StoreError> {
        let store = self.sender.dirs.store();
        if let Some(Origin::Named(top)) = thing.source.and_then(|index| self.sender.job.tops.get(index)) {
            return kind_of(store, &thing.metadata, top.at());
        }
        // Only one that says it is empty is looked into.
        if thing.metadata.size > 0 {
            return Ok(file_kind(&thing.metadata, None));
        }
        kind_of(store, &thing.metadata, At::In(&*self.sender.dirs.open(dir)?, &thing.name))
    }

    fn flush(&mut self) -> Result<(), CopyError> {
        self.announced = 0;
        self.sender.flush()?;
        self.sender.plan.add(self.found.drain(..), || self.sender.check())
    }
}

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// The receiver's word on a file; true where it is an answer to an offer.
    pub(super) fn answered(&self, feed: &dyn Feed, want: &Want) -> Result<bool, CopyError> {
        let Some(number) = lock(&self.offers).asked.remove(&want.id) else { return Ok(false) };
        let Some((file, wanted)) = self.plan.take_want(want.clone())? else {
            feed.answer(number, 0);
            return Ok(true);
        };
        let size = file.state.size;
        let missing = wanted.as_ref().map_or(size, |ranges| ranges.iter().map(|(start, end)| end - start).sum());
        lock(&self.offers).answered.insert(number, (file, wanted));
        // A file that lacks nothing is not wanted, so what is here lacks something.
        feed.answer(number, missing.max(1));
        Ok(true)
    }

    fn drop_offer(&self, file: &SourceFile, wanted: &Wanted) -> Result<(), CopyError> {
        self.plan.forget(wanted);
        self.session.send(&Message::FileEnd(FileEnd::Failed { id: file.entry.id }))
    }
}
