//! Orders: the receiver says which parts of which files are sent, and in what order, for as long as it likes.
//!
//! All files that were announced stay known, in some 80 bytes each and their names. Whole small files are packed many to a block; of others each block has a piece
//! that ends at a multiple of [`MAX_CONTENT`], holes left out.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::source::SourceFile;
use crate::block::MAX_CONTENT;
use crate::clock::POLL;
use crate::journal::Source;
use crate::locks::lock;
use crate::protocol::{Entry, Kind, Order, OrderEnd};
use crate::store::Content;
use haul_faults::{CopyError, Stop, Why, WirePath};
use haul_names::{Name, Names};

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
pub(super) struct Opened<F> {
    pub(super) file: F,
    /// It has holes.
    pub(super) sparse: bool,
}

/// What a reader does next, for the orders of these numbers.
pub(super) enum Job<F> {
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
        Some(SourceFile { entry, state: *state, dir: *parent, top: top.map(|top| top as usize), link: None, retried: false })
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
    pub(super) fn next(&self, check: impl Fn() -> Result<(), CopyError>) -> Result<Option<Job<F>>, CopyError> {
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
    pub(super) fn opened(&self, number: u64, content: &Arc<Opened<F>>) {
        if let Some(order) = lock(&self.state).open.get_mut(&number) {
            order.content.get_or_insert_with(|| content.clone());
        }
    }

    /// What follows in a file up to here is a hole.
    pub(super) fn skip(&self, number: u64, to: u64) {
        if let Some(order) = lock(&self.state).open.get_mut(&number) {
            order.next = order.next.max(to.min(order.end));
        }
    }

    /// A reader is done with its part of an order; what there is to say, if the order is over.
    pub(super) fn done(&self, number: u64, sent: Result<u64, Why>) -> Option<OrderEnd> {
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
