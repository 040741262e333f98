//! Orders: the receiver says which parts of which files are sent, and in what order, for as long as it likes.
//!
//! All files that were announced stay known, in some 80 bytes each and their names. Whole small files are packed many to a block; of others each block has a piece
//! that ends at a multiple of [`MAX_CONTENT`], holes left out. After each piece is read, and before it is sent, its file is compared with what the scan saw: so all that leaves
//! belongs to the content that was announced, and an order that fails leaves nothing wrong behind.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::read::Failed;
use super::{Sender, SourceFile};
use crate::block::{self, MAX_CONTENT, Piece};
use crate::clock::{self, timed};
use crate::error::{CopyError, Stop, Why, WirePath};
use crate::journal::Source;
use crate::names::{Name, Names};
use crate::observe::Waits;
use crate::protocol::{Entry, Kind, Message, Order, OrderEnd};
use crate::session::{POLL, lock};
use crate::store::{Content, Store};
use crate::transport::{BlockTx, Left, Transport};

/// Orders that are not over; a receiver that knows what it is doing has a thousand.
const MAX_OPEN: usize = 1 << 16;
/// Memory for what was announced: some five million files.
const KNOWN_BYTES: usize = 512 << 20;
/// Most small files in a block: it bounds the piece table.
const MAX_BATCH: usize = 1024;

/// `F` is a file that is open for reading.
pub(super) struct Orders<F> {
    state: Mutex<State<F>>,
    changed: Condvar,
}

struct State<F> {
    known: Known,
    /// The orders that something is still to be read for, in their order; some may be over.
    queue: VecDeque<u64>,
    open: HashMap<u64, Open<F>>,
    /// The highest number so far.
    last: u64,
    /// No order follows.
    enough: bool,
}

/// An order that is not over.
struct Open<F> {
    file: Arc<SourceFile>,
    /// Once it was opened.
    content: Option<Arc<Opened<F>>>,
    /// The next byte that no reader has.
    next: u64,
    end: u64,
    /// Bytes sent.
    bytes: u64,
    /// Readers that are at it.
    reading: usize,
}

/// A file that parts are read of.
struct Opened<F> {
    file: F,
    /// It has holes.
    sparse: bool,
}

/// What a reader does next, for the orders of these numbers.
enum Job<F> {
    /// Whole files, together at most a block.
    Batch(Vec<(u64, Arc<SourceFile>)>),
    /// A piece of a file: offset, length.
    Piece(u64, Arc<SourceFile>, Option<Arc<Opened<F>>>, u64, usize),
}

/// The files that were announced, by id.
#[derive(Default)]
struct Known {
    files: Vec<Announced>,
    names: Names,
}

struct Announced {
    id: u64,
    parent: u64,
    name: Name,
    state: Source,
    top: Option<u32>,
}

impl Known {
    fn add(&mut self, file: &SourceFile) {
        let name = self.names.add(&file.entry.name.0);
        let top = file.top.and_then(|top| u32::try_from(top).ok());
        self.files.push(Announced { id: file.entry.id, parent: file.entry.parent, name, state: file.state, top });
    }

    fn bytes(&self) -> usize {
        self.files.capacity() * size_of::<Announced>() + self.names.bytes()
    }

    /// The file, as far as it matters for reading it.
    fn get(&self, id: u64) -> Option<SourceFile> {
        let at = self.files.binary_search_by_key(&id, |file| file.id).ok()?;
        let Announced { id, parent, name, state, top } = self.files.get(at)?;
        let name = WirePath(self.names.get(*name).to_vec());
        let Source { size, mtime, version } = *state;
        let kind = Kind::File { size, data: size, version, linked: false, replaces: None };
        let entry = Entry { id: *id, parent: *parent, name, mode: 0, mtime, uid: 0, gid: 0, kind };
        Some(SourceFile { entry, state: *state, dir: *parent, top: top.map(|top| top as usize), retried: false })
    }
}

impl<F: Content> Orders<F> {
    pub(super) fn new() -> Self {
        let (known, queue, open) = (Known::default(), VecDeque::new(), HashMap::new());
        Self { state: Mutex::new(State { known, queue, open, last: 0, enough: false }), changed: Condvar::new() }
    }

    /// Remembers a file whose entry is about to be sent.
    pub(super) fn announced(&self, file: &SourceFile) -> Result<(), CopyError> {
        let mut state = lock(&self.state);
        if state.known.bytes() > KNOWN_BYTES {
            return Err(CopyError::Stopped(Stop::Failed("more files than can be kept for orders".into())));
        }
        state.known.add(file);
        Ok(())
    }

    /// The receiver's orders.
    pub(super) fn take(&self, orders: &[Order]) -> Result<(), CopyError> {
        let mut state = lock(&self.state);
        for &Order { number, file, start, end } in orders {
            if number <= state.last || state.enough {
                return Err(CopyError::PeerMisbehaved("an order whose number does not rise"));
            }
            if state.open.len() >= MAX_OPEN {
                return Err(CopyError::PeerMisbehaved("more orders than can be remembered"));
            }
            let file = state.known.get(file).ok_or(CopyError::PeerMisbehaved("an order of what it was not told of"))?;
            if start >= end || end > file.state.size {
                return Err(CopyError::PeerMisbehaved("an order of what is not in the file"));
            }
            state.last = number;
            if state.queue.len() >= 2 * MAX_OPEN {
                // Those that were shortened to nothing.
                let State { queue, open, .. } = &mut *state;
                queue.retain(|number| open.contains_key(number));
            }
            state.queue.push_back(number);
            state.open.insert(number, Open { file: Arc::new(file), content: None, next: start, end, bytes: 0, reading: 0 });
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Of an order nothing from `end` on is needed; it may be over by that.
    pub(super) fn shorten(&self, number: u64, end: u64) -> Result<Option<OrderEnd>, CopyError> {
        let mut state = lock(&self.state);
        if number > state.last {
            return Err(CopyError::PeerMisbehaved("it shortens what it has not ordered"));
        }
        if let Some(order) = state.open.get_mut(&number) {
            order.end = order.end.min(end.max(order.next));
        }
        let over = state.over(number);
        if over.is_some() {
            self.changed.notify_all();
        }
        Ok(over)
    }

    /// A file that was announced.
    pub(super) fn file(&self, id: u64) -> Option<SourceFile> {
        lock(&self.state).known.get(id)
    }

    /// Whether no order follows.
    pub(super) fn is_enough(&self) -> bool {
        lock(&self.state).enough
    }

    /// No order follows.
    pub(super) fn enough(&self) {
        lock(&self.state).enough = true;
        self.changed.notify_all();
    }

    /// The next job; none when all is done. Waits for the receiver, unless `check` gives an error.
    fn next(&self, check: impl Fn() -> Result<(), CopyError>) -> Result<Option<Job<F>>, CopyError> {
        let mut state = lock(&self.state);
        loop {
            check()?;
            if let Some(job) = state.next() {
                return Ok(Some(job));
            }
            if state.enough && state.open.is_empty() {
                return Ok(None);
            }
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Keeps a file open for the rest of its order.
    fn opened(&self, number: u64, content: &Arc<Opened<F>>) {
        if let Some(order) = lock(&self.state).open.get_mut(&number) {
            order.content.get_or_insert_with(|| content.clone());
        }
    }

    /// What follows in a file up to here is a hole.
    fn skip(&self, number: u64, to: u64) {
        if let Some(order) = lock(&self.state).open.get_mut(&number) {
            order.next = order.next.max(to.min(order.end));
        }
    }

    /// A reader is done with its part of an order; what there is to say, if the order is over.
    fn done(&self, number: u64, sent: Result<u64, Why>) -> Option<OrderEnd> {
        let mut state = lock(&self.state);
        let over = match sent {
            Ok(bytes) => {
                let order = state.open.get_mut(&number)?;
                order.reading -= 1;
                order.bytes += bytes;
                state.over(number)
            }
            Err(why) => state.open.remove(&number).map(|_| OrderEnd::Failed { number, why }),
        };
        if over.is_some() && state.open.is_empty() {
            self.changed.notify_all();
        }
        over
    }
}

impl<F> State<F> {
    fn next(&mut self) -> Option<Job<F>> {
        let mut batch = Vec::new();
        let mut room = MAX_CONTENT as u64;
        while let Some(&number) = self.queue.front() {
            let order = self.open.get_mut(&number).filter(|order| order.next < order.end);
            let Some(order) = order else {
                self.queue.pop_front();
                continue;
            };
            let size = order.file.state.size;
            let whole = order.next == 0 && order.end == size && size <= MAX_CONTENT as u64;
            if whole && size <= room && batch.len() < MAX_BATCH {
                room -= size;
                order.next = size;
                order.reading += 1;
                batch.push((number, order.file.clone()));
                self.queue.pop_front();
                continue;
            }
            if !batch.is_empty() {
                break;
            }
            let (start, chunk) = (order.next, MAX_CONTENT as u64);
            let stop = order.end.min((start / chunk + 1) * chunk);
            order.next = stop;
            order.reading += 1;
            return Some(Job::Piece(number, order.file.clone(), order.content.clone(), start, (stop - start) as usize));
        }
        (!batch.is_empty()).then_some(Job::Batch(batch))
    }

    /// Forgets an order that all was read for.
    fn over(&mut self, number: u64) -> Option<OrderEnd> {
        let order = self.open.get(&number).filter(|order| order.next >= order.end && order.reading == 0)?;
        let (end, bytes) = (order.end, order.bytes);
        self.open.remove(&number);
        Some(OrderEnd::Sent { number, end, bytes })
    }
}

/// Works off the orders; one call a thread.
pub(super) fn run<T: Transport, S: Store>(
    sender: &Sender<'_, T, S>,
    orders: &Orders<S::File>,
    tx: &T::Tx,
) -> Result<(), CopyError> {
    let mut reader = Reader { sender, orders, tx, waits: Waits::default(), departures: Departures::start() };
    let result = reader.work();
    let mut sum = lock(&sender.waits);
    sum.read += reader.waits.read;
    sum.hash += reader.waits.hash;
    sum.transport += reader.waits.transport;
    sum.plan += reader.waits.plan;
    result
}

struct Reader<'a, T: Transport, S: Store> {
    sender: &'a Sender<'a, T, S>,
    orders: &'a Orders<S::File>,
    tx: &'a T::Tx,
    waits: Waits,
    departures: Departures,
}

/// How fast blocks leave.
struct Departures {
    at: Instant,
    left: u64,
    /// Bytes a second, of late; none before the first have left.
    rate: Option<f64>,
    /// What may wait in the transport.
    allowed: u64,
}

/// What was given to the transport leaves, whatever is ordered then: it is to be little, and enough that the transport never has to wait. What leaves in so long ..
const AHEAD: Duration = Duration::from_millis(50);
/// .. or two blocks.
const LEAST_AHEAD: u64 = 2 * MAX_CONTENT as u64;
/// That is looked at again after half of the time in which it should have come to that, and after this at the earliest: nobody wakes up for less ..
const SOONEST: Duration = Duration::from_millis(2);
/// .. and at the latest after half of what may wait: so much leaves unseen if the path has just become twice as fast.
const LATEST: Duration = Duration::from_millis(25);

impl Departures {
    fn start() -> Self {
        Self { at: clock::now(), left: 0, rate: None, allowed: LEAST_AHEAD }
    }

    /// How long to wait before another block is given to the transport, or this is asked again; nothing if it may be now.
    fn wait(&mut self, so_far: Left, now: Instant) -> Option<Duration> {
        let passed = now - self.at;
        if passed >= AHEAD {
            let rate = so_far.left.saturating_sub(self.left) as f64 / passed.as_secs_f64();
            self.allowed = LEAST_AHEAD.max((rate * AHEAD.as_secs_f64()) as u64);
            (self.at, self.left, self.rate) = (now, so_far.left, (rate > 0.0).then_some(rate));
        }
        let beyond = (so_far.taken - so_far.left + 1).checked_sub(self.allowed).filter(|beyond| *beyond > 0)?;
        let half = self.rate.map_or(SOONEST, |rate| Duration::try_from_secs_f64(beyond as f64 / rate / 2.0).unwrap_or(LATEST));
        Some(half.clamp(SOONEST, LATEST))
    }
}

impl<T: Transport, S: Store> Reader<'_, T, S> {
    fn work(&mut self) -> Result<(), CopyError> {
        let (sender, orders) = (self.sender, self.orders);
        loop {
            self.let_leave()?;
            let Some(job) = timed(&mut self.waits.plan, || orders.next(|| sender.check()))? else { break };
            let over = match job {
                Job::Batch(files) => self.batch(&files)?,
                Job::Piece(number, file, content, offset, length) => {
                    let sent = self.piece(number, &file, content, offset, length)?;
                    orders.done(number, sent).into_iter().collect()
                }
            };
            if !over.is_empty() {
                sender.session.send(&Message::OrderEnds(over))?;
            }
        }
        Ok(())
    }

    /// Waits while the transport has enough to send: what is not given to it can still be ordered otherwise.
    fn let_leave(&mut self) -> Result<(), CopyError> {
        let Self { sender, tx, waits, departures, .. } = self;
        timed(&mut waits.transport, || {
            while let Some(wait) = tx.left().and_then(|so_far| departures.wait(so_far, clock::now())) {
                sender.check()?;
                thread::park_timeout(wait);
            }
            Ok(())
        })
    }

    fn batch(&mut self, files: &[(u64, Arc<SourceFile>)]) -> Result<Vec<OrderEnd>, CopyError> {
        let mut block = self.tx.buffer();
        let content: u64 = files.iter().map(|(_, file)| file.state.size).sum();
        block.reserve(content as usize + files.len() * 56 + 8);
        let mut pieces = Vec::with_capacity(files.len());
        let mut done = Vec::with_capacity(files.len());
        for (number, file) in files {
            let (start, size) = (block.len(), file.state.size as usize);
            let read = timed(&mut self.waits.read, || {
                let open = self.sender.open(file).map_err(why)?;
                read_unchanged(&open, file, &mut block, 0, size)
            });
            if let Err(why) = read {
                block.truncate(start);
                done.push((*number, Err(why)));
                continue;
            }
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(block.get(start..).unwrap_or_default(), verify));
            pieces.push(Piece { file: file.entry.id, offset: 0, length: size as u32, whole: true, hash });
            done.push((*number, Ok(size as u64)));
        }
        self.emit(block, &pieces)?;
        Ok(done.into_iter().filter_map(|(number, sent)| self.orders.done(number, sent)).collect())
    }

    /// Sends a piece of a file, without its holes; how many bytes that were, or why it could not be read.
    fn piece(
        &mut self,
        number: u64,
        file: &Arc<SourceFile>,
        content: Option<Arc<Opened<S::File>>>,
        offset: u64,
        length: usize,
    ) -> Result<Result<u64, Why>, CopyError> {
        let content = match content.map_or_else(|| self.open(file), Ok) {
            Ok(content) => content,
            Err(why) => return Ok(Err(why)),
        };
        self.orders.opened(number, &content);
        let (mut at, end, mut sent) = (offset, offset + length as u64, 0);
        while at < end {
            let run = if content.sparse {
                let (start, stop) = content.file.data_after(at).unwrap_or((file.state.size, file.state.size));
                if start >= end {
                    self.orders.skip(number, start);
                    break;
                }
                (start.max(at), stop.min(end))
            } else {
                (at, end)
            };
            let mut block = self.tx.buffer();
            block.reserve((run.1 - run.0) as usize + 64);
            let read = || read_unchanged(&content.file, file, &mut block, run.0, (run.1 - run.0) as usize);
            if let Err(why) = timed(&mut self.waits.read, read) {
                return Ok(Err(why));
            }
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(&block, verify));
            let piece = Piece { file: file.entry.id, offset: run.0, length: block.len() as u32, whole: false, hash };
            self.emit(block, &[piece])?;
            sent += u64::from(piece.length);
            at = run.1;
        }
        if content.sparse && !content.file.metadata().is_ok_and(|there| there.source() == file.state) {
            // Its holes may be none any more.
            return Ok(Err(Why::Changed));
        }
        Ok(Ok(sent))
    }

    fn open(&mut self, file: &SourceFile) -> Result<Arc<Opened<S::File>>, Why> {
        timed(&mut self.waits.read, || {
            let open = self.sender.open(file).map_err(why)?;
            let there = open.metadata()?;
            if there.source() != file.state {
                return Err(Why::Changed);
            }
            Ok(Arc::new(Opened { file: open, sparse: there.data < there.size }))
        })
    }

    fn emit(&mut self, mut block: Vec<u8>, pieces: &[Piece]) -> Result<(), CopyError> {
        if pieces.is_empty() {
            return Ok(());
        }
        block::seal(&mut block, pieces);
        timed(&mut self.waits.transport, || self.tx.send(block)).map_err(CopyError::Connection)
    }
}

/// Appends a range of a file that is what was announced, before as after.
fn read_unchanged(open: &impl Content, file: &SourceFile, block: &mut Vec<u8>, offset: u64, length: usize) -> Result<(), Why> {
    let read = open.read_at(block, offset, length)?;
    if read < length || open.metadata()?.source() != file.state { Err(Why::Changed) } else { Ok(()) }
}

fn why(failed: Failed) -> Why {
    if let Failed::Why(why) = failed { why } else { Why::Changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_waits_in_the_transport_and_what_leaves_in_a_moment_may() {
        let mut departures = Departures::start();
        let at = |ms| departures.at + Duration::from_millis(ms);
        let (early, later, last) = (at(1), at(100), at(200));
        let mib = |mib: u64| mib << 20;
        let so_far = |taken, left| Left { taken: mib(taken), left: mib(left) };
        assert!(departures.wait(so_far(1, 0), early).is_none());
        // Nobody knows yet how fast it leaves.
        assert_eq!(departures.wait(so_far(2, 0), early), Some(SOONEST));
        // 100 MiB in 100 ms: 50 may wait.
        assert!(departures.wait(so_far(149, 100), later).is_none() && departures.wait(so_far(150, 100), later).is_some());
        // Nothing has left since: two blocks again.
        assert!(departures.wait(so_far(102, 100), last).is_some() && departures.wait(so_far(101, 100), last).is_none());
    }

    #[test]
    fn it_is_looked_at_when_about_enough_has_left() {
        let mut departures = Departures::start();
        let start = departures.at;
        let (mut given, mut left, mut looks) = (2_u64 << 20, 0, 0);
        let mut now = start;
        // 10 MB/s for a minute: a block leaves in a tenth of a second, and the transport never runs empty.
        while now < start + Duration::from_secs(60) {
            let passed = ((now - start).as_secs_f64() * 10e6) as u64;
            assert!(passed < given, "nothing was left to send");
            left = passed.max(left);
            match departures.wait(Left { taken: given, left }, now) {
                None => given += MAX_CONTENT as u64,
                Some(wait) => {
                    looks += 1;
                    now += wait;
                }
            }
        }
        assert!((600..6000).contains(&looks), "{looks} looks for 572 blocks");
    }
}
