//! The writers: from blocks into part files.
//!
//! A piece is hashed, then written with one call. Files of one piece are made, written and closed at once; of larger ones the part file stays open
//! until all pieces and the sender's word on the end ([`End`]) are there, in whatever order they come.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use super::Receiver;
use super::commit::{Ready, hand_over};
use super::incomplete::{End, Incomplete, Part, State};
use super::read_back::FEWEST_AT_ONCE;
use crate::block::{self, Hash, Piece};
use crate::clock::{POLL, timed};
use crate::journal::Record;
use crate::locks::lock;
use crate::observe::Event;
use crate::report::Waits;
use crate::store::{Part as _, Stage as _, Store, StoreError};
use crate::transport::{BlockRx, Transport};
use haul_faults::{CopyError, Why};
use haul_names::path_of;
use haul_pieces::Taken;
use haul_units::Ranges;

/// Threads that check and write.
pub(super) const WRITERS: u32 = 2;

/// Takes the block stream and works it off with [`WRITERS`] threads.
pub(super) fn run<T: Transport, S: Store>(receiver: &Receiver<'_, T, S>, ready: SyncSender<Ready>) -> Result<(), CopyError> {
    let rx = receiver.session.transport.accept_blocks().map_err(CopyError::Connection)?;
    std::thread::scope(|scope| {
        for _ in 1..WRITERS {
            let (ready, rx) = (ready.clone(), &rx);
            scope.spawn(move || receiver.session.guard(|| Writer::new(receiver, ready).work(rx)));
        }
        // Recorded before the scope waits for the others, which look at it.
        receiver.session.guard(|| Writer::new(receiver, ready).work(&rx));
    });
    Ok(())
}

struct Writer<'a, T: Transport, S: Store> {
    receiver: &'a Receiver<'a, T, S>,
    ready: SyncSender<Ready>,
    waits: Waits,
}

impl<'a, T: Transport, S: Store> Writer<'a, T, S> {
    fn new(receiver: &'a Receiver<'a, T, S>, ready: SyncSender<Ready>) -> Self {
        Self { receiver, ready, waits: Waits::default() }
    }

    fn work(&mut self, rx: &T::Rx) -> Result<(), CopyError> {
        let result = loop {
            if let Err(stopped) = self.receiver.session.wait_while_paused() {
                break Err(stopped);
            }
            // A block that is here need not be sent again.
            if let Err(stopped) = self.receiver.session.check_what_came() {
                break Err(stopped);
            }
            match timed(&mut self.waits.transport, || rx.recv()) {
                Err(error) => break Err(CopyError::Connection(error)),
                Ok(None) => break Ok(()),
                Ok(Some(block)) => {
                    if let Err(error) = self.block(&block) {
                        break Err(error);
                    }
                }
            }
        };
        *lock(&self.receiver.waits) += self.waits;
        result
    }

    fn block(&mut self, block: &<T::Rx as BlockRx>::Block) -> Result<(), CopyError> {
        let receiver = self.receiver;
        let pieces = T::Rx::pieces(block).map_err(|_| CopyError::PeerMisbehaved("a malformed block"))?;
        let files = receiver.files_of(&pieces)?;
        let (mut records, mut made_whole, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for ((piece, content), file) in pieces.iter().zip(files) {
            // A file that failed here or at the sender: its late pieces are dropped.
            let Some(file) = file else { continue };
            let verify = receiver.options.verify.hashes() && !T::Rx::CHECKED;
            if timed(&mut self.waits.hash, || block::hash(content, verify)) != piece.hash && verify {
                receiver.fail(&file, Why::HashMismatch)?;
            } else if piece.whole {
                if piece.offset != 0 || u64::from(piece.length) != file.size {
                    return Err(CopyError::PeerMisbehaved("a whole piece that is not the file"));
                }
                if let Some(made) = timed(&mut self.waits.write, || receiver.write_whole(&file, content, piece.hash))? {
                    records.push(made.0);
                    made_whole.push(made.1);
                }
            } else {
                done.extend(timed(&mut self.waits.write, || receiver.write_piece(&file, piece, content))?);
            }
        }
        match receiver.tree.stage.store.append(&records) {
            Ok(()) => done.append(&mut made_whole),
            Err(error) if receiver.does_without(error) => {
                made_whole.iter().try_for_each(|made| receiver.undo(made, error))?;
            }
            Err(error) => return Err(receiver.broken(error)),
        }
        for done in done {
            match hand_over(&self.ready, done) {
                // The journal has it: the next run gives it its name.
                Err(_) if receiver.session.is_cut_off() => {}
                result => result?,
            }
        }
        Ok(())
    }
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// The files that pieces belong to; waits until they were announced. None for one that is over.
    fn files_of(&self, pieces: &[(Piece, &[u8])]) -> Result<Vec<Option<Arc<Incomplete>>>, CopyError> {
        let last = pieces.iter().map(|(piece, _)| piece.file).max().unwrap_or(0);
        let mut files = lock(&self.files);
        if files.void {
            // Before it has started again, the sender sends no content without having been asked.
            return Ok(vec![None; pieces.len()]);
        }
        while files.last_id < last {
            if files.ended && self.session.check().is_ok() {
                return Err(CopyError::PeerMisbehaved("content of a file that was not announced"));
            }
            // It will not be: what it is about was under way when the copy failed. Where only the peer is gone, that is known when all that it has said is read.
            if files.ended || self.session.check_what_came().is_err() {
                break;
            }
            files = self.announced.wait_timeout(files, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(pieces.iter().map(|(piece, _)| files.open.get(&piece.file).cloned()).collect())
    }

    /// Makes a file of one piece.
    pub(super) fn write_whole(
        &self,
        file: &Incomplete,
        content: &[u8],
        hash: Hash,
    ) -> Result<Option<Box<(Record, Ready)>>, CopyError> {
        {
            let mut state = lock(&file.state);
            match *state {
                State::Waiting => *state = State::Over,
                State::Open(_) => return Err(CopyError::PeerMisbehaved("a whole piece after others")),
                State::Over => return Ok(None),
            }
        }
        self.started(file);
        let (number, part) = match self.tree.stage.store.create(file.attributes.open_mode) {
            Ok(made) => made,
            Err(error) => return self.fail(file, error.into()).map(|()| None),
        };
        let made = part.write_at(content, 0).and_then(|()| part.finish(&file.attributes, file.attributes.mode));
        let made = match made {
            Ok(metadata) => metadata.made(),
            Err(error) => {
                self.tree.stage.store.discard(number);
                return self.fail(file, error.into()).map(|()| None);
            }
        };
        self.extend_part(file, &part)?;
        self.counts.bytes.fetch_add(content.len() as u64, Ordering::Relaxed);
        lock(&self.files).open.remove(&file.id);
        let record = Record::Complete {
            part: number,
            path: file.key,
            source: file.source,
            made,
            hash: Some(self.tree.stage.recorded(hash)),
        };
        let pieces = self.to_read_back([(0, content.len() as u32, hash)]);
        Ok(Some(Box::new((record, Ready::new(file, number, file.size, pieces)))))
    }

    fn write_piece(&self, file: &Incomplete, piece: &Piece, content: &[u8]) -> Result<Option<Ready>, CopyError> {
        let (offset, end) = (piece.offset, piece.offset + u64::from(piece.length));
        if end > file.size && !file.stream {
            return Err(CopyError::PeerMisbehaved("a piece beyond the end of its file"));
        }
        let number = {
            let mut state = lock(&file.state);
            let part = match self.part(file, &mut state) {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(None),
                Err(error) => {
                    drop(state);
                    return self.piece_failed(file, error.into());
                }
            };
            if !part.taken.insert(offset, end) {
                return Err(CopyError::PeerMisbehaved("content that was sent before"));
            }
            part.number
        };
        self.has_room_for_parts()?;
        let written = self.tree.stage.part(number).and_then(|part| part.write_at(content, offset));
        if let Err(error) = written {
            return self.piece_failed(file, error.into());
        }
        if !file.stream {
            let hash = self.tree.stage.recorded(piece.hash);
            let range = Record::Range { part: number, offset, length: piece.length, hash };
            if let Err(error) = self.tree.stage.store.append(&[range]) {
                return self.unrecorded(file, error).map(|()| None);
            }
        }
        let (mut complete, early) = {
            let mut state = lock(&file.state);
            let State::Open(part) = &mut *state else { return Ok(None) };
            self.counts.bytes.fetch_add(u64::from(piece.length), Ordering::Relaxed);
            part.bytes += u64::from(piece.length);
            part.sum.add(offset, piece.length, &piece.hash);
            part.pieces.extend(self.to_read_back([(offset, piece.length, piece.hash)]));
            let full = part.pieces.len() >= FEWEST_AT_ONCE && self.remembers_too_much();
            let early = if full { std::mem::take(&mut part.pieces) } else { Vec::new() };
            part.taken.remembers(part.pieces.len());
            part.readers += u32::from(!early.is_empty());
            (part.ended(), early)
        };
        if !early.is_empty() {
            // Meanwhile others write, and none of them ends the file.
            if let Err(why) = self.read_back_early(number, &early) {
                return self.piece_failed(file, why);
            }
            let State::Open(part) = &mut *lock(&file.state) else { return Ok(None) };
            part.readers -= 1;
            complete = part.ended();
        }
        match complete {
            Some(end) => self.complete_now(file, end),
            None => Ok(None),
        }
    }

    /// A piece could not be written. Of a file that was given up meanwhile, its part is gone, and why has been said.
    fn piece_failed<R>(&self, file: &Incomplete, why: Why) -> Result<Option<R>, CopyError> {
        let is_over = !lock(&self.files).open.contains_key(&file.id);
        if is_over { Ok(None) } else { self.fail(file, why).map(|()| None) }
    }

    /// The part file, made on first use; none where the file is over.
    fn part<'s>(&self, file: &Incomplete, state: &'s mut State) -> Result<Option<&'s mut Part>, StoreError> {
        if matches!(state, State::Waiting) {
            self.started(file);
            let (number, part) = self.tree.stage.store.create(0o600)?;
            *state = State::Open(Part::resumed(number, Taken::new(Ranges::default(), &self.parts), Vec::new()));
            self.tree.stage.keep_open(number, part).set_size(file.size)?;
            self.under_way.add(file.id);
            if !file.stream {
                self.tree.stage.store.append(&[Record::Part { part: number, path: file.key, source: file.source }])?;
            }
        }
        Ok(if let State::Open(part) = state { Some(part) } else { None })
    }

    /// The sender's word that all of a file was sent.
    pub(super) fn ended(&self, id: u64, end: End) -> Result<Option<Ready>, CopyError> {
        let Some(file) = lock(&self.files).open.get(&id).cloned() else { return Ok(None) };
        let complete = {
            let mut state = lock(&file.state);
            match self.part(&file, &mut state) {
                Ok(Some(part)) if part.end.is_none() => {
                    part.end = Some(end);
                    part.ended().is_some()
                }
                Ok(Some(_)) => return Err(CopyError::PeerMisbehaved("a second end of a file")),
                Ok(None) => return Ok(None),
                Err(error) => {
                    drop(state);
                    return self.fail(&file, error.into()).map(|()| None);
                }
            }
        };
        if complete { self.complete_now(&file, end) } else { Ok(None) }
    }

    /// All is written: checks the whole, and gives it its metadata.
    pub(super) fn complete_now(&self, file: &Incomplete, end: End) -> Result<Option<Ready>, CopyError> {
        let part = match std::mem::replace(&mut *lock(&file.state), State::Over) {
            State::Open(part) => part,
            State::Waiting | State::Over => return Ok(None),
        };
        if part.bytes != end.bytes || (end.size != file.size && !file.stream) {
            return Err(CopyError::PeerMisbehaved("an end that does not fit the file"));
        }
        if self.options.verify.hashes() && part.bytes > 0 && part.sum.to_bytes() != end.sum {
            self.drop_part(&part);
            return self.fail(file, Why::HashMismatch).map(|()| None);
        }
        let mode = Some(file.attributes.final_mode);
        let open = self.tree.stage.part(part.number);
        let made = open.as_ref().map_err(|error| *error).and_then(|open| open.finish(&file.attributes, mode));
        if let (Ok(open), Ok(_)) = (&open, &made) {
            self.extend_part(file, &**open)?;
        }
        self.tree.stage.finished(part.number);
        let made = match made {
            Ok(metadata) => metadata.made(),
            Err(error) => {
                self.drop_part(&part);
                return self.fail(file, error.into()).map(|()| None);
            }
        };
        lock(&self.files).open.remove(&file.id);
        if !file.stream {
            let record = Record::Complete { part: part.number, path: file.key, source: file.source, made, hash: None };
            if let Err(error) = self.tree.stage.store.append(&[record]) {
                if self.does_without(error) {
                    self.drop_part(&part);
                }
                return self.unrecorded(file, error).map(|()| None);
            }
        }
        Ok(Some(Ready::new(file, part.number, made.size, part.pieces)))
    }

    fn started(&self, file: &Incomplete) {
        let observer = self.session.observer;
        if observer.wants_files() {
            let path = path_of(self.tree.display(file.parent, &file.name).0);
            observer.event(Event::FileStarted { path: &path, size: haul_units::Bytes(file.size) });
        }
    }
}
