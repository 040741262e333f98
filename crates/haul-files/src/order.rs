//! The client that orders: it is told what there is, and says which parts of which files it needs, for as long as it likes.
//!
//! ```text
//!   order(..)   control in ---> Customer: entries, ends of orders
//!               blocks     ---> Customer: content, compared with its hashes
//!               wishes     ---> control out
//! ```
//!
//! What is ordered, and what becomes of it, is the customer's part. What a server says is checked here as far as that needs no knowledge of the orders: names, parents,
//! sizes, hashes, and that it has no more to say than can be remembered.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::block::{self, Piece};
use crate::clock::POLL;
use crate::engine::{check_hello, check_terms, introduce};
use crate::job::Options;
use crate::locks::lock;
use crate::observe::Silent;
use crate::protocol::{
    DIGESTS, Digest, Entry, Finished, Kind, LIMITS, MAX_TARGET, Message, ORDERS, Order, OrderEnd, Progress, ROOMS, ROOT, Request,
    What,
};
use crate::receive::Expected;
use crate::report::Report;
use crate::session::{self, Incoming, Session};
use crate::transport::{BlockRx, Link, Transport};
use haul_faults::{CopyError, FileProblem, MAX_NOTES, Note, WirePath};
use haul_names::{Filter, far_source, is_pattern, is_plain_name, job_id};
use haul_units::{BitRate, Cancel};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct OrderJob {
    /// Paths at the server; at least one. As [`PullJob::sources`](crate::PullJob::sources).
    pub sources: Vec<PathBuf>,
    /// How.
    pub options: Options,
    /// What is left out of the sources. A server that cannot is [`CopyError::PeerLacks`].
    pub filter: Filter,
}

impl OrderJob {
    /// Names the job by its sources, for [`Request::job`]: the same for every server that is asked.
    pub fn id(&self) -> [u8; 32] {
        job_id(b"order", self.wire_sources().iter().map(|source| far_source(&source.0)).collect())
    }

    fn wire_sources(&self) -> Vec<WirePath> {
        self.sources.iter().map(|path| path.as_path().into()).collect()
    }
}

/// What a server is told.
#[derive(Debug)]
pub enum Wish {
    /// See [`Message::Orders`].
    Orders(Vec<Order>),
    /// See [`Message::Shorten`].
    Shorten {
        /// Which order.
        number: u64,
        /// The first byte that is not needed.
        end: u64,
    },
    /// See [`Message::Limit`]; of a server that cannot, it stays unsaid.
    Limit(Option<BitRate>),
    /// See [`Message::Room`]; of a server that cannot, it stays unsaid.
    Room(BitRate),
    /// See [`Message::Digest`]. Of a server that cannot, the session is [`CopyError::PeerLacks`].
    Digest(Vec<u64>),
    /// Nothing more will be ordered. The session ends when what is ordered has come.
    Enough,
}

/// Who orders. Called from two threads; a call that waits holds the server back.
pub trait Customer<B>: Sync {
    /// Of what there is: parents before children, ids rising. Directories, links, files; nothing that replaces something.
    fn entries(&self, entries: Vec<Entry>) -> Result<(), CopyError>;
    /// Every entry was told.
    fn listed(&self) -> Result<(), CopyError>;
    /// Of the files that the next entries tell of, the server would have to fetch these from another machine.
    fn elsewhere(&self, _files: Vec<u64>) -> Result<(), CopyError> {
        Ok(())
    }
    /// Something is not among the entries.
    fn problem(&self, problem: FileProblem) -> Result<(), CopyError>;
    /// So many names were left out by the filter of the job.
    fn left_out(&self, _names: u64) -> Result<(), CopyError> {
        Ok(())
    }
    /// Something to know.
    fn note(&self, note: Note) -> Result<(), CopyError>;
    /// Orders are over; content for them may still come.
    fn ended(&self, ends: Vec<OrderEnd>) -> Result<(), CopyError>;
    /// Hashes have come that were asked for; by default nobody asks.
    fn digests(&self, _digests: Vec<Digest>) -> Result<(), CopyError> {
        Err(CopyError::PeerMisbehaved("hashes that nobody asked for"))
    }
    /// Content has come.
    fn delivered(&self, delivery: Delivery<B>) -> Result<(), CopyError>;
}

/// A block that has come.
pub struct Delivery<B> {
    /// Its memory.
    pub block: B,
    /// What is in it, and where: within the bytes of the block.
    pub pieces: Vec<(Piece, Range<usize>)>,
    /// Pieces whose content is not what was read.
    pub damaged: Vec<Piece>,
}

/// Entries and their names from one server, in bytes: as much as a user's own copy remembers, some seven million.
const MAX_TOLD: usize = 1 << 30;

/// Asks the server at the other end of `link` for its files, tells `customer` what there is and what comes, and the server what is wished.
///
/// Blocks until the server has sent all that was ordered before [`Wish::Enough`]; a channel of wishes that is closed without it ends the session as if cancelled. A
/// server that takes no orders is [`CopyError::PeerLacks`].
pub fn order<T: Transport>(
    link: Link<T>,
    job: &OrderJob,
    wishes: Receiver<Wish>,
    customer: &impl Customer<<T::Rx as BlockRx>::Block>,
    cancel: &Cancel,
) -> Result<(), CopyError> {
    session::run(link, &Silent, cancel, |session, incoming| {
        let sources = job.wire_sources();
        let mut expected = Expected::plain(&sources);
        let patterns = sources.iter().any(|source| is_pattern(&source.0));
        if patterns {
            expected.add_patterns(&sources);
        }
        introduce(session, Request { what: What::Ordered { sources }, options: job.options, job: job.id() }, &[], &job.filter)?;
        session.send(&Message::Start { wants: true })?;
        check_hello(session, incoming.next())?;
        if !session.peer_has(ORDERS) {
            return Err(CopyError::PeerLacks("send parts of files as they are ordered"));
        }
        check_terms(session, &[], &job.filter)?;
        if patterns && !matches!(incoming.next()?, Message::Matched(_)) {
            return Err(CopyError::PeerMisbehaved("no word on the patterns"));
        }
        let (wishes, enough) = (Mutex::new(wishes), AtomicBool::new(false));
        let came = Came::default();
        std::thread::scope(|scope| {
            scope.spawn(|| session.guard(|| tell(session, &lock(&wishes), &enough)));
            scope.spawn(|| session.guard(|| take(session, customer, job.options, &came)));
            session.guard(|| listen(incoming, customer, &mut Admission::new(expected, job.filter.clone()), &enough));
        });
        session.check()?;
        // For the server's own books.
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let progress = Progress { files: count(&came.files), bytes: count(&came.bytes), ..Progress::default() };
        session.send(&Message::Finished(Finished { progress, ..Finished::default() }))?;
        // Until it has heard that, the connection must not be closed; what it says then is only a farewell.
        let _ = incoming.next();
        Ok(Report::default())
    })
    .map(drop)
}

/// What has come: files of one piece, and all content.
#[derive(Default)]
struct Came {
    files: AtomicU64,
    bytes: AtomicU64,
}

/// Says what is wished.
fn tell<T: Transport>(session: &Session<'_, T>, wishes: &Receiver<Wish>, enough: &AtomicBool) -> Result<(), CopyError> {
    loop {
        session.check()?;
        match wishes.recv_timeout(POLL) {
            Ok(Wish::Orders(orders)) => session.send(&Message::Orders(orders))?,
            Ok(Wish::Shorten { number, end }) => session.send(&Message::Shorten { number, end })?,
            Ok(Wish::Limit(_)) if !session.peer_has(LIMITS) => {}
            Ok(Wish::Limit(limit)) => session.send(&Message::Limit { bps: limit.map_or(0, |limit| limit.as_bps().max(1)) })?,
            Ok(Wish::Room(_)) if !session.peer_has(ROOMS) => {}
            Ok(Wish::Room(rate)) => session.send(&Message::Room { bps: rate.as_bps() })?,
            Ok(Wish::Digest(_)) if !session.peer_has(DIGESTS) => return Err(CopyError::PeerLacks("say the hash of a file")),
            Ok(Wish::Digest(files)) => session.send(&Message::Digest(files))?,
            Ok(Wish::Enough) => {
                enough.store(true, Ordering::SeqCst);
                return session.send(&Message::Enough);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(CopyError::Cancelled),
        }
    }
}

/// Takes the blocks until there are no more.
fn take<T: Transport>(
    session: &Session<'_, T>,
    customer: &impl Customer<<T::Rx as BlockRx>::Block>,
    options: Options,
    came: &Came,
) -> Result<(), CopyError> {
    let rx = session.transport.accept_blocks().map_err(CopyError::Connection)?;
    let verify = options.verify.hashes() && !T::Rx::CHECKED;
    loop {
        session.check()?;
        let Some(block) = rx.recv().map_err(CopyError::Connection)? else { return Ok(()) };
        let found = T::Rx::pieces(&block).map_err(|_| CopyError::PeerMisbehaved("a malformed block"))?;
        let (mut pieces, mut damaged, mut at) = (Vec::with_capacity(found.len()), Vec::new(), 0);
        for (piece, content) in found {
            let end = at + content.len();
            if verify && block::hash(content, true) != piece.hash {
                damaged.push(piece);
            } else {
                came.files.fetch_add(u64::from(piece.whole), Ordering::Relaxed);
                came.bytes.fetch_add(u64::from(piece.length), Ordering::Relaxed);
                pieces.push((piece, at..end));
            }
            at = end;
        }
        customer.delivered(Delivery { block, pieces, damaged })?;
    }
}

/// Takes what the server says until it has sent all.
fn listen<B>(
    incoming: &mut Incoming,
    customer: &impl Customer<B>,
    admission: &mut Admission,
    enough: &AtomicBool,
) -> Result<(), CopyError> {
    let mut notes = 0;
    loop {
        match incoming.next()? {
            Message::Entries(entries) => {
                for entry in &entries {
                    admission.admit(entry)?;
                }
                customer.entries(entries)?;
            }
            Message::Elsewhere(files) => customer.elsewhere(files)?,
            Message::ScanDone => customer.listed()?,
            Message::LeftOut(names) if !admission.filter.is_empty() => customer.left_out(names)?,
            Message::Problem(problem) => customer.problem(problem)?,
            Message::Note(note) => {
                if notes < MAX_NOTES {
                    notes += 1;
                    customer.note(note.bounded())?;
                }
            }
            Message::OrderEnds(ends) => customer.ended(ends)?,
            Message::Digests(digests) => customer.digests(digests)?,
            Message::AllSent(_) if enough.load(Ordering::SeqCst) => return Ok(()),
            _ => return Err(CopyError::PeerMisbehaved("a message that no sender of orders sends")),
        }
    }
}

/// What a server has told so far, as far as it decides what it may tell.
struct Admission {
    expected: Expected,
    filter: Filter,
    last_id: u64,
    /// With their paths, where the filter looks at these.
    directories: HashMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl Admission {
    fn new(expected: Expected, filter: Filter) -> Self {
        Self { expected, filter, last_id: ROOT, directories: HashMap::from([(ROOT, Box::default())]), bytes: 0 }
    }

    fn admit(&mut self, entry: &Entry) -> Result<(), CopyError> {
        if entry.id <= self.last_id {
            return Err(CopyError::PeerMisbehaved("an id that does not rise"));
        }
        self.last_id = entry.id;
        self.bytes = self.bytes.saturating_add(size_of::<Entry>() + entry.name.0.len() + entry.target_len());
        if self.bytes > MAX_TOLD {
            return Err(CopyError::PeerMisbehaved("more entries than can be remembered"));
        }
        let Some(parent) = self.directories.get(&entry.parent) else {
            return Err(CopyError::PeerMisbehaved("an entry in an unknown directory"));
        };
        let path = self.filter.path(parent, &entry.name.0);
        let is_directory = matches!(entry.kind, Kind::Directory);
        if self.filter.leaves_out(&path, is_directory) {
            return Err(CopyError::PeerMisbehaved("what was to be left out"));
        }
        let is_root_itself = entry.name.0.is_empty() && is_directory && entry.parent == ROOT;
        if !(is_root_itself || is_plain_name(&entry.name.0)) {
            return Err(CopyError::PeerMisbehaved("a name that is not plain"));
        }
        if entry.parent == ROOT && !self.expected.contains(&entry.name.0) {
            return Err(CopyError::PeerMisbehaved("a source that was not asked for"));
        }
        let fits = match &entry.kind {
            Kind::Directory => true,
            Kind::File { size, replaces: None, .. } => i64::try_from(*size).is_ok(),
            Kind::Symlink { target } => !target.0.is_empty() && target.0.len() <= MAX_TARGET && !target.0.contains(&0),
            Kind::File { .. } | Kind::Stream { .. } | Kind::HardLink { .. } => {
                return Err(CopyError::PeerMisbehaved("an entry that cannot be ordered"));
            }
        };
        if !fits || entry.mtime.nanos >= 1_000_000_000 {
            return Err(CopyError::PeerMisbehaved("a size or time that cannot be"));
        }
        if is_directory {
            self.bytes = self.bytes.saturating_add(path.len());
            self.directories.insert(entry.id, path.into());
        }
        Ok(())
    }
}
