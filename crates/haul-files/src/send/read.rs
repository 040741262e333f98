//! The readers: from files into blocks.
//!
//! Content is read straight to its place in the block, hashed there, and leaves. A file is checked before and after it was read: size, modification
//! time, change time and inode must be those of the scan. One that changed before it was opened is announced once more; what becomes of one that
//! changed later says [`Changed`](crate::Changed), and `changed.rs` has the looking into it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul_units::Bytes;

use super::Sender;
use super::changed::{Change, change_of_small};
use super::early::Held;
use super::plan::{Job, Large};
use super::scan::{entry_of, file_kind};
use super::source::{Origin, Said, SourceFile, Wanted};
use super::stream::StreamReader;
use crate::block::{self, MAX_CONTENT, Piece, PieceSum};
use crate::clock::timed;
use crate::job::Changed;
use crate::locks::lock;
use crate::observe::Event;
use crate::protocol::{FileEnd, Kind, Message, UNDER_WAY};
use crate::report::Waits;
use crate::store::{Content, FileKind, Metadata, Store, StoreError};
use crate::transport::{BlockTx, Transport};
use haul_faults::{CopyError, Why};
use haul_names::path_of;

/// Works off the plan; one call a thread.
pub(super) fn run<T: Transport, S: Store>(sender: &Sender<'_, T, S>, tx: &T::Tx) -> Result<(), CopyError> {
    let mut reader = Reader { sender, tx, waits: Waits::default() };
    let result = reader.work();
    *lock(&sender.waits) += reader.waits;
    result
}

struct Reader<'a, T: Transport, S: Store> {
    sender: &'a Sender<'a, T, S>,
    tx: &'a T::Tx,
    waits: Waits,
}

/// A file failed: by its own fault, or because it is another one than the scan saw.
pub(super) enum Failed {
    Why(Why),
    Changed(Option<Box<Metadata>>),
    /// It is what the scan saw, and ends before the length that it says: so do those of sysfs.
    Short(Box<Metadata>),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Why(error.into())
    }
}

impl<T: Transport, S: Store> Reader<'_, T, S> {
    fn work(&mut self) -> Result<(), CopyError> {
        let sender = self.sender;
        while let Some(job) = timed(&mut self.waits.plan, || sender.plan.next(|| sender.check()))? {
            sender.session.wait_while_paused()?;
            match job {
                Job::Batch(files) => self.batch(&files)?,
                Job::Open(file, wanted) => self.open_large(file, wanted)?,
                Job::Piece(large, offset, length) => self.piece(&large, offset, length)?,
                Job::End(large) => self.end(&large)?,
                Job::Stream(file) => self.stream(&file)?,
            }
            sender.plan.done();
        }
        Ok(())
    }

    fn batch(&mut self, files: &[Arc<SourceFile>]) -> Result<(), CopyError> {
        let mut block = self.tx.buffer();
        let content: u64 = files.iter().map(|file| file.state.size).sum();
        block.reserve(content as usize + files.len() * 56 + 8);
        let mut pieces = Vec::with_capacity(files.len());
        for file in files {
            let start = block.len();
            self.started(file);
            let change = match timed(&mut self.waits.read, || self.sender.read_small(file, &mut block)) {
                Ok(change) => change,
                Err(failed) => {
                    block.truncate(start);
                    self.failed(file, failed)?;
                    continue;
                }
            };
            self.sender.tell_change(file, change)?;
            let content = block.get(start..).unwrap_or_default();
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(content, verify));
            let whole = !self.sender.job.in_order;
            let piece = Piece { file: file.entry.id, offset: 0, length: content.len() as u32, whole, hash };
            if !content.is_empty() {
                pieces.push(piece);
            }
            if whole {
                self.finished(file)?;
            } else {
                let mut sum = PieceSum::default();
                if !content.is_empty() {
                    sum.add(0, piece.length, &hash);
                }
                self.sent(file, u64::from(piece.length), u64::from(piece.length), sum)?;
            }
        }
        self.emit(block, &pieces)
    }

    fn emit(&mut self, mut block: Vec<u8>, pieces: &[Piece]) -> Result<(), CopyError> {
        if pieces.is_empty() {
            return Ok(());
        }
        block::seal(&mut block, pieces);
        timed(&mut self.waits.transport, || self.tx.send(block)).map_err(CopyError::Connection)
    }

    fn open_large(&mut self, file: Arc<SourceFile>, wanted: Wanted) -> Result<(), CopyError> {
        self.started(&file);
        self.named(&file);
        let opened = timed(&mut self.waits.read, || {
            let open = self.sender.open(&file)?;
            let there = open.metadata()?;
            let same = there.source() == file.state || self.sender.takes_changed(&file);
            if same { Ok((open, there)) } else { Err(Failed::Changed(Some(Box::new(there)))) }
        });
        match opened {
            Ok((open, there)) => {
                let sparse = there.data < there.size && !self.sender.job.in_order;
                self.sender.plan.cut(Arc::new(Large::new(file, open, wanted.is_none())), wanted, sparse);
                Ok(())
            }
            Err(failed) => self.failed(&file, failed),
        }
    }

    fn piece(&mut self, large: &Arc<Large<S::File>>, offset: u64, length: usize) -> Result<(), CopyError> {
        let mut sent = None;
        if large.is_wanted() {
            let mut block = self.tx.buffer();
            block.reserve(length + 64);
            // A file that shrank or cannot be read is found out at its end.
            match timed(&mut self.waits.read, || large.open.read_at(&mut block, offset, length)) {
                Ok(read) => {
                    if read < length {
                        large.short.store(true, Ordering::Relaxed);
                    }
                    // Of a file that goes on as a stream nothing more is needed here; where the order matters it cannot.
                    if read == length || (self.sender.job.in_order && read > 0) {
                        let verify = self.sender.job.options.verify.hashes();
                        let hash = timed(&mut self.waits.hash, || block::hash(&block, verify));
                        let piece = Piece { file: large.file.entry.id, offset, length: read as u32, whole: false, hash };
                        self.emit(block, &[piece])?;
                        sent = Some(piece);
                    }
                }
                // Another reader of the file may have said so.
                Err(_) if large.given_up.swap(true, Ordering::Relaxed) => {}
                Err(error) => {
                    self.sender.problem(self.sender.display(&large.file), error.into())?;
                    self.sender.session.send(&Message::FileEnd(FileEnd::Failed { id: large.file.entry.id }))?;
                }
            }
        }
        if large.read(sent.as_ref(), self.sender.names_blocks()) { self.end(large) } else { Ok(()) }
    }

    fn end(&mut self, large: &Arc<Large<S::File>>) -> Result<(), CopyError> {
        if large.given_up.load(Ordering::Relaxed) {
            // Reported where it was given up, here or at the receiver.
            return Ok(());
        }
        let sender = self.sender;
        let whole = !large.short.load(Ordering::Relaxed) || sender.job.in_order;
        let mut change = None;
        match large.open.metadata() {
            Ok(there) if there.source() == large.file.state => {
                if !whole {
                    return self.failed(&large.file, Failed::Short(Box::new(there)));
                }
            }
            Ok(there) => match sender.job.options.changed {
                Changed::Take if whole => change = timed(&mut self.waits.read, || sender.change_of(large, &there))?,
                Changed::Fail => return self.failed(&large.file, Failed::Why(Why::Changed)),
                _ => return self.failed(&large.file, Failed::Changed(Some(Box::new(there)))),
            },
            Err(error) => return self.failed(&large.file, error.into()),
        }
        sender.tell_change(&large.file, change)?;
        let (bytes, sum) = large.tally();
        self.finished(&large.file)?;
        let size = if sender.job.in_order { bytes } else { large.file.state.size };
        self.sent(&large.file, size, bytes, sum)
    }

    fn stream(&mut self, file: &Arc<SourceFile>) -> Result<(), CopyError> {
        self.started(file);
        self.named(file);
        if let Some(Origin::Stream(stream)) = file.top.and_then(|index| self.sender.job.tops.get(index)) {
            let (reader, sender) = (StreamReader::start(stream.clone())?, self.sender);
            return self.until_its_end(file, |block, _| {
                reader.fill(block, || sender.check()).map(|read| read.map_err(|error| Why::from_io(&error)))
            });
        }
        match self.sender.open(file) {
            Ok(open) => self
                .until_its_end(file, |block, offset| Ok(open.read_at(block, offset, MAX_CONTENT).map(drop).map_err(Why::from))),
            Err(failed) => self.failed(file, failed),
        }
    }

    /// Sends what `read` appends to a block at an offset, until that is nothing.
    fn until_its_end(
        &mut self,
        file: &Arc<SourceFile>,
        mut read: impl FnMut(&mut Vec<u8>, u64) -> Result<Result<(), Why>, CopyError>,
    ) -> Result<(), CopyError> {
        let (mut offset, mut sum) = (0, PieceSum::default());
        loop {
            self.sender.check()?;
            let mut block = self.tx.buffer();
            if let Err(why) = timed(&mut self.waits.read, || read(&mut block, offset))? {
                return self.failed(file, Failed::Why(why));
            }
            if block.is_empty() {
                break;
            }
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(&block, verify));
            let piece = Piece { file: file.entry.id, offset, length: block.len() as u32, whole: false, hash };
            sum.add(offset, piece.length, &hash);
            offset += u64::from(piece.length);
            self.emit(block, &[piece])?;
        }
        self.finished(file)?;
        self.sent(file, offset, offset, sum)
    }

    fn sent(&self, file: &SourceFile, size: u64, bytes: u64, sum: PieceSum) -> Result<(), CopyError> {
        let end = FileEnd::Sent { id: file.entry.id, size, bytes, sum: sum.to_bytes() };
        self.sender.session.send(&Message::FileEnd(end))
    }

    /// Reports a file that was not sent, or announces it again.
    fn failed(&self, file: &Arc<SourceFile>, failed: Failed) -> Result<(), CopyError> {
        let sender = self.sender;
        let id = file.entry.id;
        let why = match failed {
            Failed::Why(why) => why,
            Failed::Changed(Some(there)) if !file.retried && !sender.job.in_order && there.kind == FileKind::File => {
                sender.session.send(&Message::FileEnd(FileEnd::Failed { id }))?;
                return self.again(file, &there, file_kind(&there, Some(id)));
            }
            Failed::Short(there) => {
                sender.session.send(&Message::FileEnd(FileEnd::Failed { id }))?;
                let linked = there.names > 1;
                return self.again(file, &there, Kind::Stream { linked, replaces: Some(id) });
            }
            Failed::Changed(_) => Why::Changed,
        };
        sender.problem(sender.display(file), why)?;
        sender.session.send(&Message::FileEnd(FileEnd::Failed { id }))
    }

    fn again(&self, file: &Arc<SourceFile>, there: &Metadata, kind: Kind) -> Result<(), CopyError> {
        let sender = self.sender;
        let extended = sender.extended_of(file)?;
        let entry = entry_of(file.entry.parent, &file.entry.name.0, there, kind);
        let entry = sender.announce_with(entry, Said { extended, ..Said::default() })?;
        let again =
            Arc::new(SourceFile { entry, state: there.source(), dir: file.dir, top: file.top, link: file.link, retried: true });
        if sender.plan.waits_for_wants(&again) {
            sender.plan.expect_want(again);
            return sender.flush();
        }
        sender.flush()?;
        if again.state.size == 0 && matches!(again.entry.kind, Kind::File { .. }) {
            return Ok(());
        }
        // Never waits: a reader that waited for readers would wait for itself.
        sender.plan.add([again], || Err(CopyError::Cancelled)).or(Ok(()))
    }

    fn started(&self, file: &SourceFile) {
        if let Some((path, size)) = self.name(file) {
            self.sender.session.observer.event(Event::FileStarted { path: &path, size });
        }
    }

    /// The receiver will tell how much of this file has arrived, by its id.
    fn named(&self, file: &SourceFile) {
        let will_tell = self.sender.early.is_open() || self.sender.session.peer_has(UNDER_WAY);
        if let Some(name) = self.name(file).filter(|_| will_tell) {
            lock(&self.sender.opened).insert(file.entry.id, name);
        }
    }

    fn finished(&self, file: &SourceFile) -> Result<(), CopyError> {
        self.name(file).map_or(Ok(()), |(path, size)| self.sender.tell(Held::Finished(path, size)))
    }

    /// What the observer is told of a file, if it wants to know.
    fn name(&self, file: &SourceFile) -> Option<(PathBuf, Bytes)> {
        let wanted = self.sender.session.observer.wants_files();
        wanted.then(|| (path_of(self.sender.display(file).0), Bytes(file.state.size)))
    }
}

impl<T: Transport, S: Store> Sender<'_, T, S> {
    pub(super) fn open(&self, file: &SourceFile) -> Result<S::File, Failed> {
        self.with(file, |at| self.dirs.store().open(at))?.ok_or(Failed::Changed(None))
    }

    /// Appends all of a file that fits into a block, and says what changed meanwhile.
    fn read_small(&self, file: &SourceFile, block: &mut Vec<u8>) -> Result<Option<Change>, Failed> {
        let open = self.open(file)?;
        let (start, size) = (block.len(), file.state.size as usize);
        let read = open.read_at(block, 0, size);
        let there = open.metadata()?;
        // Where the order matters the length goes to the receiver behind the content, and any will do.
        let whole = read.is_ok_and(|read| read == size) || self.job.in_order;
        if there.source() == file.state {
            read?;
            return if whole { Ok(None) } else { Err(Failed::Short(Box::new(there))) };
        }
        if whole && self.takes_changed(file) {
            read?;
            return Ok(change_of_small(&open, block.get(start..).unwrap_or_default(), &there)?);
        }
        Err(Failed::Changed(Some(Box::new(there))))
    }
}
