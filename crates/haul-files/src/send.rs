//! The sending side: scan, plan, read.
//!
//! ```text
//!   scan --entries--> control            receiver's wants <-- control
//!     |                                        |
//!     +--> plan: files to read, in order <-----+
//!             |
//!          readers (2): read into a block, hash, send
//! ```
//!
//! Where the receiver orders what it needs, [`orders`] takes the place of the plan. Data leaves before the scan ends. The plan holds at most [`plan::MAX_FILES`] files; then the scan waits. A client's data leaves before the receiver has said that
//! it is ready ([`early`]); if the receiver then has something of an earlier run, all starts again, this time with its wants.

mod changed;
mod chosen;
mod digests;
mod early;
mod extended;
mod feed;
mod order_readers;
mod orders;
mod plan;
mod read;
mod scan;
mod source;
mod stream;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use haul_units::{BitRate, Bytes};

use crate::dirs::Dirs;
use crate::job::Options;
use crate::locks::lock;
use crate::observe::{Event, FileUnderWay};
use crate::outcome::report;
use crate::protocol::{Digest, Entry, Extended, Finished, Message, Part, ROOT, SPECIALS};
use crate::report::{Report, Waits};
use crate::session::{Incoming, Session};
use crate::store::Store;
use crate::transport::{BlockTx, Transport};
use digests::Digests;
use early::{Early, Held};
use feed::Offers;
pub use feed::{Fed, Feed, Thing};
use haul_faults::{CopyError, Fault, FileProblem, Note, Why, WirePath};
use haul_names::Filter;
use haul_xattrs::bytes;
use orders::Orders;
use plan::Plan;
pub(crate) use source::Origin;
use source::{Said, SourceFile};

/// Threads that read and hash; one where the order matters.
const READERS: u32 = 2;

/// What to send.
pub(crate) struct SendJob<S: Store> {
    pub(crate) tops: Vec<Origin<S>>,
    pub(crate) options: Options,
    /// Blocks in the order of the files and their content, holes filled.
    pub(crate) in_order: bool,
    /// This is the client.
    pub(crate) is_client: bool,
    /// Begin before the receiver's word.
    pub(crate) early: bool,
    /// The receiver orders what is sent, see [`orders`].
    pub(crate) ordered: bool,
    /// Who says what is sent; none: all that the sources have. Not early.
    pub(crate) feed: Option<Arc<dyn Feed>>,
    /// What is left out.
    pub(crate) filter: Filter,
    /// The receiver has asked for that, and hears how much it was.
    pub(crate) tells: bool,
}

/// What the threads of the sender share.
struct Sender<'a, T: Transport, S: Store> {
    session: &'a Session<'a, T>,
    job: SendJob<S>,
    dirs: Dirs<'a, S>,
    plan: Plan<S::File>,
    /// In the place of the plan, where the receiver orders.
    orders: Option<Orders<S::File>>,
    digests: Digests,
    early: Early,
    offers: Mutex<Offers>,
    /// What links lead to that are followed.
    followed: Mutex<Vec<Arc<S::Top>>>,
    announcer: Mutex<Announcer>,
    /// The large files that were opened, by id: their names, for progress. Empty if nobody wants names.
    opened: Mutex<BTreeMap<u64, (PathBuf, Bytes)>>,
    waits: Mutex<Waits>,
    /// The receiver is the server, whose wishes nobody asked for.
    is_client: bool,
}

/// Gives ids and sends entries: one order for both.
#[derive(Default)]
struct Announcer {
    last_id: u64,
    batch: Vec<Entry>,
    /// Of files in the batch, where content decides.
    digests: Vec<Digest>,
    /// Of what is in the batch, where they are kept.
    extended: Vec<Extended>,
    batch_bytes: usize,
}

/// Sends all of `job` to the receiver at the other end; `meet` takes what it says before its `Start`.
pub(crate) fn send<T: Transport, S: Store>(
    session: &Session<'_, T>,
    incoming: &mut Incoming,
    store: &S,
    job: SendJob<S>,
    meet: impl FnOnce(&mut Incoming) -> Result<(), CopyError>,
) -> Result<Report, CopyError> {
    let options = job.options;
    session.is_sender();
    let tx = session.transport.open_blocks().map_err(CopyError::Connection)?;
    let start = |incoming: &mut Incoming| meet(incoming).and_then(|()| started(incoming));
    let (mut sender, mut finished);
    if job.early {
        sender = Sender::new(session, store, job, options.compares(), Early::open(), ROOT);
        finished = sender.attempt(&tx, incoming, Some(start))?;
    } else {
        let wants = start(incoming)?;
        sender = Sender::new(session, store, job, wants, Early::closed(), ROOT);
        if wants && !options.compares() && sender.orders.is_none() {
            session.observer.event(Event::Resumed);
        }
        if let Some(feed) = &sender.job.feed {
            feed.ready(wants);
        }
        finished = sender.attempt(&tx, incoming, None::<fn(&mut Incoming) -> _>)?;
    }
    if finished.is_none() {
        session.observer.event(Event::Resumed);
        sender = sender.anew()?;
        finished = sender.attempt(&tx, incoming, None::<fn(&mut Incoming) -> _>)?;
    }
    // All is in place there: that a farewell is lost changes nothing.
    let _ = session.send(&Message::Bye);
    let waits = *lock(&sender.waits);
    Ok(report(&finished.ok_or(CopyError::Cancelled)?, waits, options))
}

/// The receiver's word: whether it will say what it wants of each file.
fn started(incoming: &mut Incoming) -> Result<bool, CopyError> {
    let Message::Start { wants } = incoming.next()? else {
        return Err(CopyError::PeerMisbehaved("no start"));
    };
    tracing::debug!(wants, "the receiver is ready");
    Ok(wants)
}

impl<'a, T: Transport, S: Store> Sender<'a, T, S> {
    fn new(session: &'a Session<'a, T>, store: &'a S, job: SendJob<S>, wants: bool, early: Early, last_id: u64) -> Self {
        let cautious = early.is_open() && job.options.resume && !job.options.compares();
        Self {
            session,
            is_client: job.is_client,
            orders: job.ordered.then(Orders::new),
            digests: Digests::default(),
            job,
            dirs: Dirs::new(store),
            plan: Plan::new(wants, cautious),
            early,
            offers: Mutex::default(),
            followed: Mutex::default(),
            announcer: Mutex::new(Announcer { last_id, ..Announcer::default() }),
            opened: Mutex::default(),
            waits: Mutex::default(),
        }
    }

    /// A sender for the same, with the receiver's wants; what this one has sent counts for nothing.
    fn anew(self) -> Result<Self, CopyError> {
        let after = lock(&self.announcer).last_id;
        self.session.send(&Message::Anew { after })?;
        Ok(Self::new(self.session, self.dirs.store(), self.job, true, Early::closed(), after))
    }
}

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// Sends everything; what the receiver made of it, or none where it wants all to start again. `start` waits for its word, if that has not come yet.
    fn attempt(
        &self,
        tx: &T::Tx,
        incoming: &mut Incoming,
        start: Option<impl FnOnce(&mut Incoming) -> Result<bool, CopyError>>,
    ) -> Result<Option<Finished>, CopyError> {
        let all_sent = AtomicBool::new(false);
        let finished = std::thread::scope(|scope| {
            scope.spawn(|| self.guard(|| self.run(tx).map(|()| all_sent.store(true, Ordering::Relaxed))));
            let goes_on = start.map_or(Ok(true), |start| self.decide(start(incoming)?));
            let finished = goes_on.and_then(|goes_on| if goes_on { self.listen(incoming).map(Some) } else { Ok(None) });
            // Recorded before the scope waits for the threads, which look at it.
            finished.map_err(|error| self.session.fail(error))
        });
        // All is in place: whoever interrupted it came too late, and the same command would copy it again.
        if !all_sent.into_inner() || !matches!(finished, Ok(Some(_))) {
            self.session.check()?;
        }
        finished.map_err(|()| CopyError::Cancelled)
    }

    /// Whether what was begun early can go on.
    fn decide(&self, wants: bool) -> Result<bool, CopyError> {
        if wants == self.job.options.compares() {
            self.early.confirm(|held| self.tell_now(held))?;
            self.plan.release();
            return Ok(true);
        }
        if !wants || !self.job.options.resume {
            return Err(CopyError::PeerMisbehaved("it wants other things than it was asked to"));
        }
        self.early.give_up();
        self.plan.wake();
        Ok(false)
    }

    /// An error once the copy has failed or was cancelled, or this sender was given up.
    fn check(&self) -> Result<(), CopyError> {
        if self.early.is_given_up() { Err(CopyError::Cancelled) } else { self.session.check() }
    }

    /// As [`Session::guard`]; a sender that was given up does not fail.
    fn guard(&self, body: impl FnOnce() -> Result<(), CopyError>) {
        if let Err(error) = body()
            && !self.early.is_given_up()
        {
            self.session.fail(error);
        }
    }

    fn run(&self, tx: &T::Tx) -> Result<(), CopyError> {
        let readers = if self.job.in_order { 1 } else { READERS };
        std::thread::scope(|scope| {
            for _ in 0..readers {
                scope.spawn(|| {
                    self.guard(|| match &self.orders {
                        Some(orders) => self.read_orders(orders, tx),
                        None => read::run(self, tx),
                    });
                });
            }
            if let Some(orders) = &self.orders {
                scope.spawn(move || self.guard(|| self.answer_digests(orders)));
            }
            self.guard(|| self.job.feed.as_ref().map_or_else(|| self.scan(), |feed| feed::run(self, &**feed)));
        });
        self.early.wait(|| self.check())?;
        let waits = {
            let mut waits = lock(&self.waits);
            waits.threads = readers;
            *waits
        };
        // Before the blocks have arrived, not a round trip after it: the receiver reads them to their own end.
        self.session.send(&Message::AllSent(waits))?;
        tracing::debug!("all blocks are handed to the transport");
        tx.finish().map_err(CopyError::Connection)?;
        tracing::debug!("all blocks have arrived");
        Ok(())
    }

    /// Takes what the receiver says until it has finished.
    fn listen(&self, incoming: &mut Incoming) -> Result<Finished, CopyError> {
        loop {
            match (incoming.next()?, &self.orders) {
                (Message::Wants(wants), None) => {
                    for want in wants {
                        let answered = match &self.job.feed {
                            Some(feed) => self.answered(&**feed, &want)?,
                            None => false,
                        };
                        if !answered {
                            self.plan.want(want)?;
                        }
                    }
                }
                (Message::Unwanted(id), None) => self.plan.unwanted(id),
                (Message::Orders(list), Some(orders)) => orders.take(&list)?,
                (Message::Shorten { number, end }, Some(orders)) => {
                    if let Some(over) = orders.shorten(number, end)? {
                        self.session.send(&Message::OrderEnds(vec![over]))?;
                    }
                }
                (Message::Enough, Some(orders)) => orders.enough(),
                (Message::Digest(files), Some(_)) => self.digests.take(files)?,
                (Message::Limit { bps }, _) if self.orders.is_some() || !self.is_client => {
                    let limit = BitRate::from_bps(bps);
                    self.session.transport.limit((limit > BitRate::ZERO).then_some(limit));
                }
                (Message::Room { bps }, Some(_)) => self.session.transport.take_room(BitRate::from_bps(bps)),
                (Message::Problem(problem), _) => self.session.note(problem),
                (Message::Note(note), _) => drop(self.session.take_note(note)),
                (Message::Would(list), None) if self.job.options.dry_run => {
                    for would in &list {
                        self.session.observer.event(Event::Would(would));
                    }
                }
                (Message::Would(list), None) if self.job.options.delete.is_some() => {
                    for would in &list {
                        self.session.observer.event(Event::Removed(&would.path));
                    }
                }
                (Message::Removed(names), None) if self.job.options.delete.is_some() => self.session.removed(names),
                (Message::Progress(progress), _) => self.session.progress(&progress),
                (Message::UnderWay(parts), _) => self.under_way(&parts),
                (Message::Finished(finished), _) => {
                    self.session.progress(&finished.progress);
                    return Ok(finished);
                }
                _ => return Err(CopyError::PeerMisbehaved("a message that no receiver sends")),
            }
        }
    }

    /// Tells the observer how much of the large files has arrived.
    fn under_way(&self, parts: &[Part]) {
        if !self.session.observer.wants_files() {
            return;
        }
        let mut opened = lock(&self.opened);
        if let Some(earliest) = parts.iter().map(|part| part.id).min() {
            // Those before it are over; a file that is not only loses its bar.
            *opened = opened.split_off(&earliest);
        }
        let known = parts.iter().filter_map(|part| Some((part, opened.get(&part.id)?)));
        let files =
            known.map(|(part, (path, size))| FileUnderWay { path: path.clone(), size: *size, arrived: Bytes(part.arrived) });
        let files: Vec<_> = files.collect();
        drop(opened);
        self.session.observer.event(Event::UnderWay(&files));
    }

    /// Gives the entry its id and adds it to the batch.
    fn announce(&self, entry: Entry) -> Result<Entry, CopyError> {
        self.announce_with(entry, Said::default())
    }

    /// As [`announce`](Self::announce), with more in front of it.
    fn announce_with(&self, mut entry: Entry, Said { hash, extended }: Said) -> Result<Entry, CopyError> {
        let mut announcer = lock(&self.announcer);
        // The new one stays back until it is known here: the receiver's word on it may come at once.
        if announcer.batch_bytes > 128 << 10 {
            self.send_batch(&mut announcer)?;
        }
        announcer.last_id += 1;
        entry.id = announcer.last_id;
        announcer.batch_bytes += 96 + entry.name.0.len() + entry.target_len();
        announcer.batch.push(entry.clone());
        if hash.is_some() {
            announcer.digests.push(Digest { file: entry.id, hash });
        }
        if let Some(list) = extended {
            announcer.batch_bytes += 8 + bytes(&list) + 8 * list.len();
            announcer.extended.push(Extended { id: entry.id, list });
        }
        Ok(entry)
    }

    /// Sends the entries announced so far.
    fn flush(&self) -> Result<(), CopyError> {
        self.send_batch(&mut lock(&self.announcer))
    }

    fn send_batch(&self, announcer: &mut Announcer) -> Result<(), CopyError> {
        if announcer.batch.is_empty() {
            return Ok(());
        }
        announcer.batch_bytes = 0;
        if !announcer.digests.is_empty() {
            self.session.send(&Message::Digests(std::mem::take(&mut announcer.digests)))?;
        }
        if !announcer.extended.is_empty() {
            self.session.send(&Message::Attributes(std::mem::take(&mut announcer.extended)))?;
        }
        self.session.send(&Message::Entries(std::mem::take(&mut announcer.batch)))
    }

    fn display(&self, file: &SourceFile) -> WirePath {
        match file.top.and_then(|index| self.job.tops.get(index)) {
            Some(Origin::Named(top)) => top.spelled.clone(),
            Some(Origin::Stream(_)) => WirePath(b"-".to_vec()),
            None => WirePath(self.dirs.display(file.dir, &file.entry.name.0)),
        }
    }

    fn problem(&self, path: WirePath, why: Why) -> Result<(), CopyError> {
        self.tell(Held::Problem(FileProblem { path, fault: Fault::Source, why }))
    }

    /// Tells the user, and the receiver where that is its business, as soon as it is sure that this sender goes on.
    fn tell(&self, news: Held) -> Result<(), CopyError> {
        match self.early.hold(news, || self.check())? {
            Some(news) => self.tell_now(news),
            None => Ok(()),
        }
    }

    fn tell_now(&self, news: Held) -> Result<(), CopyError> {
        match news {
            Held::Problem(problem) => return self.session.problem(problem),
            // Nothing is missing at the target that was to be there; who knows no other word for it is told of a problem.
            Held::Special(path) if self.session.peer_has(SPECIALS) => return self.session.remark(Note::Special { path }),
            Held::Special(path) => {
                return self.session.problem(FileProblem { path, fault: Fault::Source, why: Why::Special });
            }
            Held::Note(note) => return self.session.remark(note),
            Held::Finished(path, size) => self.session.observer.event(Event::FileFinished { path: &path, size }),
        }
        Ok(())
    }
}
