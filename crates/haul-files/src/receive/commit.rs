//! The commit thread: makes finished part files durable, then gives them their names.
//!
//! It works in groups: one `syncfs` for many files, an `fsync` each for few. A file gets its name only after its content is on disk, so a
//! power failure too leaves the old file or the new one.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver as Queue, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::Receiver;
use super::incomplete::Incomplete;
use crate::block::Sent;
use crate::clock::{self, timed};
use crate::journal::{PathKey, Record, Source};
use crate::locks::lock;
use crate::observe::{Commit, Event};
use crate::protocol::{Message, PACES, Progress};
use crate::report::Waits;
use crate::store::{Attributes, Placed, Stage as _, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{CopyError, Note, Stop, Why};
use haul_names::path_of;

/// A group is full with this many files (a `syncfs` may wait for all other writers of the file system, so the fewer the better) ..
const GROUP_FILES: usize = 1 << 14;
/// .. or this many bytes ..
const GROUP_BYTES: u64 = 256 << 20;
/// .. or after this time ..
const GROUP_TIME: Duration = Duration::from_secs(1);
/// .. or where nothing has followed for so long: some senders wait for names before they go on, and a sync each 100 ms takes little from what is still on its way.
const GROUP_PAUSE: Duration = Duration::from_millis(100);
/// How often the sender hears of progress, where more follows.
const PROGRESS: Duration = Duration::from_millis(200);

/// A part file that is complete and has its metadata.
pub(super) struct Ready {
    id: u64,
    part: u64,
    parent: u64,
    name: Vec<u8>,
    size: u64,
    linked: bool,
    attributes: Attributes,
    key: PathKey,
    source: Source,
    /// What is to be read back.
    pieces: Vec<Sent>,
    /// An earlier run has counted and journalled it.
    kept: bool,
}

impl Ready {
    pub(super) fn new(file: &Incomplete, part: u64, size: u64, pieces: Vec<Sent>) -> Self {
        let Incomplete { id, parent, linked, attributes, key, source, .. } = *file;
        Self { id, part, parent, name: file.name.clone(), size, linked, attributes, key, source, pieces, kept: false }
    }

    /// A part file that an earlier run completed.
    pub(super) fn kept(file: &Incomplete, part: u64, pieces: Vec<Sent>) -> Self {
        Self { kept: true, ..Self::new(file, part, file.size, pieces) }
    }
}

/// Passes a finished part file on to get its name.
pub(super) fn hand_over(ready: &SyncSender<Ready>, done: Ready) -> Result<(), CopyError> {
    // The queue closes only where its thread has failed.
    ready.send(done).map_err(|_| CopyError::Cancelled)
}

/// Works off the queue until the writers are gone.
pub(super) fn run<T: Transport, S: Store>(receiver: &Receiver<'_, T, S>, queue: &Queue<Ready>) -> Result<(), CopyError> {
    let mut waits = Waits::default();
    // Nothing was told yet, although a writer may have been faster than this thread.
    let (mut told_at, mut told) = (clock::now(), Progress::default());
    let mut group = Vec::new();
    let mut open = true;
    while open {
        let started = clock::now();
        let (mut bytes, mut paused) = (0, false);
        while group.len() < GROUP_FILES && bytes < GROUP_BYTES {
            let left =
                if group.is_empty() { PROGRESS } else { GROUP_TIME.saturating_sub(clock::now() - started).min(GROUP_PAUSE) };
            match queue.recv_timeout(left) {
                Ok(ready) => {
                    bytes += ready.size;
                    group.push(ready);
                }
                Err(error) => {
                    open = error == RecvTimeoutError::Timeout;
                    paused = open;
                    break;
                }
            }
            tell(receiver, &mut told_at, &mut told, false)?;
        }
        let is_new = !group.is_empty();
        commit(receiver, &mut group, &mut waits)?;
        if is_new {
            receiver.tell_room();
        }
        tell(receiver, &mut told_at, &mut told, paused && is_new)?;
    }
    *lock(&receiver.waits) += waits;
    Ok(())
}

fn tell<T: Transport, S: Store>(
    receiver: &Receiver<'_, T, S>,
    told_at: &mut std::time::Instant,
    told: &mut Progress,
    at_once: bool,
) -> Result<(), CopyError> {
    let now = clock::now();
    if !at_once && now - *told_at < PROGRESS {
        return Ok(());
    }
    *told_at = now;
    receiver.tell_limit()?;
    let progress = receiver.counts.progress();
    if progress == *told {
        return Ok(());
    }
    *told = progress;
    receiver.session.progress(&progress);
    receiver.session.say(&Message::Progress(progress))?;
    receiver.tell_parts()
}

fn commit<T: Transport, S: Store>(
    receiver: &Receiver<'_, T, S>,
    group: &mut Vec<Ready>,
    waits: &mut Waits,
) -> Result<(), CopyError> {
    if group.is_empty() {
        return Ok(());
    }
    let observer = receiver.session.observer;
    let parts: Vec<u64> = group.iter().map(|ready| ready.part).collect();
    observer.event(Event::Commit(Commit::Sync));
    if let Err(error) = timed(&mut waits.sync, || receiver.tree.stage.store.sync(&parts)) {
        // A system tells of it once, and takes what it could not write for written: the next run is not to believe it.
        for part in parts {
            receiver.tree.stage.discard(part);
        }
        return Err(receiver.broken(error));
    }
    observer.event(Event::Commit(Commit::Rename));
    let mut buffer = Vec::new();
    for mut ready in group.drain(..) {
        let pieces = std::mem::take(&mut ready.pieces);
        if !pieces.is_empty() {
            observer.event(Event::Commit(Commit::Sync));
            let path = receiver.tree.display(ready.parent, &ready.name);
            let read = || receiver.read_back(&mut buffer, &path, ready.part, &ready.attributes, &pieces);
            let result = timed(&mut waits.sync, read);
            observer.event(Event::Commit(Commit::Rename));
            if let Err(why) = result {
                receiver.tree.stage.discard(ready.part);
                receiver.problem(path, why)?;
                continue;
            }
        }
        let name = || receiver.tree.commit(ready.part, ready.parent, &ready.name, &ready.attributes);
        match timed(&mut waits.rename, name) {
            Ok(Placed::Renamed) => {}
            Ok(placed @ (Placed::Copied(made) | Placed::WrittenOver(made))) => {
                if matches!(placed, Placed::WrittenOver(_)) {
                    let path = receiver.tree.display(ready.parent, &ready.name);
                    receiver.session.remark(Note::WrittenInPlace { path })?;
                }
                // The next run is to know the file by what it is there.
                let Ready { part, key: path, source, .. } = ready;
                let record = Record::Complete { part, path, source, made, hash: None };
                receiver.tree.stage.store.append(&[record]).map_err(|error| receiver.broken(error))?;
                receiver.tree.stage.discard(part);
                if let Err(why) =
                    timed(&mut waits.sync, || receiver.read_back_there(&mut buffer, &ready.name, ready.parent, &pieces))
                {
                    receiver.problem(receiver.tree.display(ready.parent, &ready.name), why)?;
                    continue;
                }
            }
            Err(error) => {
                let (path, why) = (receiver.tree.display(ready.parent, &ready.name), Why::from(error));
                if let StoreError::Emptied(_) = error {
                    // The part is all that there is here: it stays with the stage, and the next run writes it.
                    return Err(CopyError::Stopped(Stop::at_destination(path, why)));
                }
                // Where only room is missing, the part waits for it.
                if !why.is_full() || receiver.takes_what_fits {
                    receiver.tree.stage.discard(ready.part);
                }
                receiver.problem(path, why)?;
                continue;
            }
        }
        receiver.tree.touched(ready.parent);
        if ready.linked {
            receiver.tree.named(ready.id, ready.parent, &ready.name);
        }
        receiver.tell_content(ready.parent, &ready.name);
        if !ready.kept {
            receiver.counts.files.fetch_add(1, Ordering::Relaxed);
        }
        if observer.wants_files() {
            let path = path_of(receiver.tree.display(ready.parent, &ready.name).0);
            observer.event(Event::FileFinished { path: &path, size: haul_units::Bytes(ready.size) });
        }
    }
    observer.event(Event::Commit(Commit::Done));
    Ok(())
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Tells a sender over there what is wanted of its speed, where that has changed.
    fn tell_limit(&self) -> Result<(), CopyError> {
        let Some(wishes) = self.session.observer.wishes().filter(|_| self.session.peer_has(PACES)) else { return Ok(()) };
        let known = std::mem::replace(&mut *lock(&self.told), wishes);
        if known.limit == wishes.limit {
            return Ok(());
        }
        self.session.say(&Message::Limit { bps: wishes.limit.map_or(0, |limit| limit.as_bps().max(1)) })
    }

    /// A file that was made, and has no record, goes again.
    pub(super) fn undo(&self, ready: &Ready, error: StoreError) -> Result<(), CopyError> {
        self.tree.stage.discard(ready.part);
        self.counts.bytes.fetch_sub(ready.size, Ordering::Relaxed);
        self.counts.discarded.fetch_add(ready.size, Ordering::Relaxed);
        self.problem(self.tree.display(ready.parent, &ready.name), error.into())
    }
}
