//! The receiving side: entries, wants, writing, names.
//!
//! ```text
//!   control --entries--> directories, links, files to come --> wants
//!   blocks  --> writers (2): check the hash, write, journal --> commit (1): sync, rename, progress
//! ```
//!
//! A file is made in the stage and gets its name when it is complete, checked and on disk. A kill at any moment leaves the old file or the new one.

mod commit;
mod conclude;
mod dry;
mod entries;
mod expected;
mod extended;
mod in_order;
mod incomplete;
mod read_back;
mod remembered;
mod room;
mod sameness;
mod stage;
mod surplus;
mod tree;
mod under_way;
mod write;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};

use crate::clock::{self, POLL};
use crate::job::{Options, Same, Stream};
use crate::locks::lock;
use crate::observe::{Commit, Event, Wishes};
use crate::protocol::{FileEnd, Finished, Message, Progress, ROOT, Would};
use crate::report::{ReadBack, Report, Waits};
use crate::session::{Incoming, Session};
use crate::store::{Place, Stage as _, Store, StoreError};
use crate::transport::Transport;
use commit::{Ready, hand_over};
use conclude::conclude;
pub(crate) use expected::Expected;
use haul_faults::{CopyError, Fault, FileProblem, Note, Stop, Why, WirePath};
use haul_names::{Filter, stage_id};
use haul_pieces::Parts;
use haul_xattrs::Ahead;
use incomplete::{End, Incomplete, Part};
use stage::Stage;
use tree::Tree;
pub use tree::limit_remembered;
use under_way::UnderWay;

/// Files that wait for their names; then the writers wait.
const MAX_READY: usize = 1 << 14;

/// What to receive.
pub(crate) struct ReceiveJob<D> {
    pub(crate) target: Target<D>,
    pub(crate) options: Options,
    pub(crate) job: [u8; 32],
    /// What may stand at the top; none: anything.
    pub(crate) expected: Option<Expected>,
    /// The sender has not waited for `Start`.
    pub(crate) early: bool,
    /// What the sender was told to leave out.
    pub(crate) filter: Filter,
    /// A file that there is no room for is a problem of its own: the sender may have others, and other places for it.
    pub(crate) takes_what_fits: bool,
    /// A word to the sender on the place.
    pub(crate) note: Option<Note>,
}

/// Where it goes.
pub(crate) enum Target<D> {
    Tree(Place<D>),
    Stream(Stream<dyn std::io::Write + Send>),
}

/// What the threads of the receiver share.
struct Receiver<'a, T: Transport, S: Store> {
    session: &'a Session<'a, T>,
    options: Options,
    tree: Tree<'a, S>,
    /// What the sender was told to leave out.
    filter: Filter,
    /// A file that there is no room for is a problem of its own.
    takes_what_fits: bool,
    wants: bool,
    /// The sender has announced all that it has.
    scanned: AtomicBool,
    files: Mutex<Files>,
    announced: Condvar,
    counts: Counts,
    under_way: UnderWay,
    /// Of files that are not complete.
    parts: Parts,
    /// Pieces that are remembered until they are read back.
    remembered: AtomicUsize,
    /// Bytes that there was room for, where no more may be announced.
    room: Option<u64>,
    /// Bytes of content that are to come.
    announced_bytes: AtomicU64,
    waits: Mutex<Waits>,
    /// What was wanted when the sender was last told; it begins with what it may at most.
    told: Mutex<Wishes>,
    /// Of files that are about to be announced, where content decides what is the same.
    digests: Mutex<HashMap<u64, [u8; 32]>>,
    /// Of what is about to be announced, where attributes are kept.
    ahead: Mutex<Ahead>,
    /// In a dry run, what the peer is still to be told.
    would: Mutex<Vec<Would>>,
    /// The peer is the client, who is to hear of it.
    serves: bool,
}

/// The files that are not complete.
#[derive(Default)]
struct Files {
    open: HashMap<u64, Arc<Incomplete>>,
    /// The highest id announced.
    last_id: u64,
    /// No more will be announced.
    ended: bool,
    /// The sender has begun too early, and will start again: until then nothing counts.
    void: bool,
}

#[derive(Default)]
struct Counts {
    files: AtomicU64,
    bytes: AtomicU64,
    kept_files: AtomicU64,
    kept_bytes: AtomicU64,
    newer_files: AtomicU64,
    resumed: AtomicU64,
    discarded: AtomicU64,
    directories: AtomicU64,
    symlinks: AtomicU64,
    hard_links: AtomicU64,
    direct_files: AtomicU64,
    uncached_files: AtomicU64,
}

/// Receives all that the peer sends; `meet` takes what the peer says first, once it has heard that this side is ready.
pub(crate) fn receive<T: Transport, S: Store>(
    session: &Session<'_, T>,
    incoming: &mut Incoming,
    store: &S,
    job: ReceiveJob<S::Dir>,
    meet: impl FnOnce(&mut Incoming) -> Result<(), CopyError>,
) -> Result<Report, CopyError> {
    let ReceiveJob { target, options, job, expected, early, filter, takes_what_fits, note } = job;
    let place = match target {
        Target::Stream(stream) => {
            session.send(&Message::Start { wants: false })?;
            meet(incoming)?;
            return in_order::receive(session, incoming, &stream, options, &filter);
        }
        Target::Tree(place) => place,
    };
    let asked = clock::now();
    let stage = open_stage(session, store, &place, &job, options.resume)?;
    let got = clock::now();
    // A client of a daemon can do nothing about them.
    let others = if place.confined { None } else { kept_here(store, &place, stage.store.name()) };
    if stage.has_earlier() {
        session.observer.event(Event::Resumed);
    }
    let room = if store.must_fit() { store.space(&place.root).ok().map(|space| space.free.as_u64()) } else { None };
    let (fresh, wants) = (!stage.has_earlier(), options.compares() || stage.has_earlier());
    let serves = expected.is_none();
    let receiver = Receiver {
        session,
        digests: Mutex::default(),
        ahead: Mutex::default(),
        would: Mutex::default(),
        serves,
        options,
        tree: Tree::new(store, place, stage, options, expected),
        filter,
        takes_what_fits,
        wants,
        scanned: AtomicBool::new(false),
        files: Mutex::new(Files { void: early && wants && !options.compares(), ..Files::default() }),
        announced: Condvar::new(),
        counts: Counts::default(),
        under_way: UnderWay::default(),
        parts: Parts::new(read_back::MAX_REMEMBERED),
        remembered: AtomicUsize::new(0),
        room,
        announced_bytes: AtomicU64::new(0),
        waits: Mutex::default(),
        told: Mutex::default(),
    };
    receiver.tell_room();
    session.say(&Message::Start { wants })?;
    for note in note.into_iter().chain(others) {
        session.remark(note)?;
    }
    // Another copy of this job has had the stage meanwhile, and may have been begun because the peer of this one was killed.
    let wanted = if got - asked < POLL { Ok(()) } else { session.hear_after(got) };
    let sent = wanted.and_then(|()| meet(incoming)).and_then(|()| receiver.run(incoming));
    if sent.is_err() && fresh && receiver.tree.stage.store.is_unused() {
        // Of a copy that was never to be, nothing is left.
        let _ = receiver.tree.stage.store.remove();
    }
    let finished = sent.and_then(|waits| Ok((receiver.finish()?, waits)));
    let (finished, sender_waits) = finished.inspect_err(|_| receiver.tree.close_directories())?;
    conclude(session, &finished, sender_waits, options)
}

/// The stage of a job in a place.
fn open_stage<T: Transport, S: Store>(
    session: &Session<'_, T>,
    store: &S,
    place: &Place<S::Dir>,
    job: &[u8; 32],
    resume: bool,
) -> Result<Stage<S>, CopyError> {
    let id = stage_id(job, place.rename.as_deref());
    store.stage(place, &id, resume, session.cancel()).map(Stage::new).map_err(CopyError::Stopped)
}

/// A word on the interrupted copies that are kept in a place, but the own one.
fn kept_here<S: Store>(store: &S, place: &Place<S::Dir>, own: &str) -> Option<Note> {
    let others = store.interrupted(&place.root, own);
    let oldest = others.iter().max_by_key(|one| one.idle)?;
    let name = oldest.names.first().cloned().unwrap_or_default();
    let bytes = others.iter().map(|one| one.bytes.as_u64()).fold(0, u64::saturating_add);
    let days = oldest.idle.as_secs() / (24 * 3600);
    Some(Note::InterruptedHere { path: place.display(), name, count: others.len() as u64, bytes, days })
}

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Runs all threads until everything has arrived and has its name; gives the sender's waits.
    fn run(&self, incoming: &mut Incoming) -> Result<Waits, CopyError> {
        let (ready, queue) = sync_channel(MAX_READY);
        let waits = std::thread::scope(|scope| {
            // The queue closes after the failure of its thread was recorded: who finds it closed need not say why.
            scope.spawn(move || self.session.guard(|| commit::run(self, &queue)));
            let blocks = ready.clone();
            scope.spawn(|| self.session.guard(|| write::run(self, blocks)));
            // Recorded before anybody wonders why nothing more is announced.
            let waits = self.listen(incoming, &ready).map_err(|error| self.session.fail(error));
            drop(ready);
            lock(&self.files).ended = true;
            self.announced.notify_all();
            waits
        });
        self.session.check()?;
        let waits = waits.map_err(|()| CopyError::Cancelled)?;
        if lock(&self.files).open.is_empty() { Ok(waits) } else { Err(CopyError::PeerMisbehaved("files without an end")) }
    }

    /// Takes what the sender says until all was sent.
    fn listen(&self, incoming: &mut Incoming, ready: &SyncSender<Ready>) -> Result<Waits, CopyError> {
        let mut found = entries::Found::default();
        if lock(&self.files).void {
            self.set_aside(incoming)?;
        }
        loop {
            match incoming.next()? {
                Message::Entries(entries) => self.entries(entries, ready, &mut found)?,
                Message::Digests(digests) if self.options.same == Same::Content => self.hear_digests(digests)?,
                Message::Attributes(lists) if self.options.keep.any() => self.hear_extended(lists)?,
                Message::ScanDone => {
                    self.scanned.store(true, Ordering::Relaxed);
                    found.tell(self.session.observer, true);
                }
                Message::LeftOut(count) if !self.filter.is_empty() => self.session.left_out(count),
                Message::FileEnd(FileEnd::Failed { id }) => self.forget(id),
                Message::FileEnd(FileEnd::Sent { id, size, bytes, sum }) => {
                    if let Some(done) = self.ended(id, End { size, bytes, sum })? {
                        hand_over(ready, done)?;
                    }
                }
                Message::Problem(problem) => self.session.note(problem),
                Message::Note(note) => drop(self.session.take_note(note)),
                Message::AllSent(waits) => return Ok(waits),
                _ => return Err(CopyError::PeerMisbehaved("a message that no sender sends")),
            }
        }
    }

    /// Drops what the sender says until it starts again.
    fn set_aside(&self, incoming: &mut Incoming) -> Result<(), CopyError> {
        loop {
            match incoming.next()? {
                Message::Entries(_)
                | Message::Digests(_)
                | Message::Attributes(_)
                | Message::ScanDone
                | Message::FileEnd(_)
                | Message::Problem(_)
                | Message::Note(_) => {}
                Message::Anew { after } => {
                    let mut files = lock(&self.files);
                    // What is late of it is known to be over.
                    (files.void, files.last_id) = (false, after);
                    return Ok(());
                }
                _ => return Err(CopyError::PeerMisbehaved("it does not start again")),
            }
        }
    }

    /// Links, directories, and the stage: what comes when every file has its name.
    fn finish(&self) -> Result<Finished, CopyError> {
        for (place, mtime, at) in self.tree.links().each() {
            self.session.check()?;
            let existing = self.tree.existing(place.0, place.1).unwrap_or_default();
            if self.options.update && entries::is_newer(mtime, existing.as_ref()) {
                self.counts.kept_files.fetch_add(1, Ordering::Relaxed);
                self.counts.newer_files.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if self.options.dry_run {
                self.would_link(place, existing.as_ref(), at)?;
                continue;
            }
            let result = at.ok_or(Why::NoLinkTarget).and_then(|at| self.tree.link(place, at));
            match result {
                Ok(()) => self.counts.hard_links.fetch_add(1, Ordering::Relaxed),
                Err(why) => {
                    self.problem(self.tree.display(place.0, place.1), why)?;
                    0
                }
            };
        }
        self.remove_surplus()?;
        self.tell_would()?;
        let mut waits = *lock(&self.waits);
        self.session.observer.event(Event::Commit(Commit::Sync));
        // Before the directories get their modes: one may forbid to open it.
        clock::timed(&mut waits.sync, || self.tree.sync()).map_err(|error| self.broken(error))?;
        self.session.observer.event(Event::Commit(Commit::Done));
        for (path, why) in self.tree.finish_directories(false) {
            self.problem(path, why)?;
        }
        if self.tree.stage.store.remove().map_err(|error| self.broken(error))? {
            let path = self.tree.display(ROOT, self.tree.stage.store.name().as_bytes());
            self.session.remark(Note::StageNotEmpty { path })?;
        }
        for (path, why) in self.tree.finish_directories(true) {
            self.problem(path, why)?;
        }
        waits.threads = write::WRITERS;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(Finished {
            progress: self.counts.progress(),
            resumed: count(&self.counts.resumed),
            discarded: count(&self.counts.discarded),
            read_back: ReadBack {
                direct_files: count(&self.counts.direct_files),
                uncached_files: count(&self.counts.uncached_files),
            },
            newer_files: count(&self.counts.newer_files),
            directories: count(&self.counts.directories),
            symlinks: count(&self.counts.symlinks),
            hard_links: count(&self.counts.hard_links),
            waits,
        })
    }

    /// Tells the observer how much room is left; nothing where the store does not know.
    fn tell_room(&self) {
        if let Ok(space) = self.tree.dirs.store().space(&self.tree.place.root) {
            self.session.observer.event(Event::Room(space));
        }
    }

    /// Notes a problem of the destination and tells the sender.
    fn problem(&self, path: WirePath, why: Why) -> Result<(), CopyError> {
        if why.is_full() && !self.takes_what_fits {
            return Err(CopyError::Stopped(Stop::DestinationFull { path }));
        }
        let fault = if why == Why::HashMismatch { Fault::Connection } else { Fault::Destination };
        self.session.problem(FileProblem { path, fault, why })
    }

    /// A record of a file could not be written: where only room is missing, and files that do not fit are no more than that, the file has failed.
    fn unrecorded(&self, file: &Incomplete, error: StoreError) -> Result<(), CopyError> {
        if self.does_without(error) { self.fail(file, error.into()) } else { Err(self.broken(error)) }
    }

    /// Whether this is no more than the end of one file.
    fn does_without(&self, error: StoreError) -> bool {
        self.takes_what_fits && Why::from(error).is_full()
    }

    /// The stage or the destination as a whole failed.
    fn broken(&self, error: StoreError) -> CopyError {
        CopyError::Stopped(Stop::at_destination(self.tree.place.spelled.clone(), error.into()))
    }

    /// A file failed here.
    fn fail(&self, file: &Incomplete, why: Why) -> Result<(), CopyError> {
        self.problem(self.tree.display(file.parent, &file.name), why)?;
        self.forget(file.id);
        self.session.say(&Message::Unwanted(file.id))
    }

    /// A file will not be completed: its part goes.
    fn forget(&self, id: u64) {
        let file = lock(&self.files).open.remove(&id);
        if let Some(file) = &file {
            // It takes no room after all.
            self.announced_bytes.fetch_sub(file.counted.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        if let Some(part) = file.and_then(|file| lock(&file.state).give_up()) {
            self.drop_part(&part);
        }
    }

    /// What was written of a file comes to nothing.
    fn drop_part(&self, part: &Part) {
        self.tree.stage.discard(part.number);
        self.counts.bytes.fetch_sub(part.bytes, Ordering::Relaxed);
        self.counts.discarded.fetch_add(part.bytes, Ordering::Relaxed);
        self.counts.kept_bytes.fetch_sub(part.kept, Ordering::Relaxed);
        self.counts.resumed.fetch_sub(part.kept, Ordering::Relaxed);
    }
}

impl Counts {
    fn progress(&self) -> Progress {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Progress {
            files: count(&self.files),
            bytes: count(&self.bytes),
            kept_files: count(&self.kept_files),
            kept_bytes: count(&self.kept_bytes),
        }
    }
}
