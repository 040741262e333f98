//! The plan: which file is read next, and how files are cut and packed into blocks.
//!
//! Files go in the order of the scan. Those of up to one block are packed many to a block; larger ones are cut at multiples of [`MAX_CONTENT`],
//! holes left out. After `Start { wants: true }` a file waits here until the receiver has said what it needs of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::source::{SourceFile, Wanted};
use crate::block::{Hash, MAX_CONTENT, PieceSum};
use crate::clock::POLL;
use crate::locks::lock;
use crate::protocol::{Kind, MAX_RANGES, Needs, Want};
use crate::store::Content;
use haul_faults::CopyError;

/// Files in the plan at which the scan waits.
pub(super) const MAX_FILES: usize = 1 << 16;
/// Most small files in a block: it bounds the piece table.
const MAX_BATCH: usize = 1024;
/// Blocks that may be read while it is open whether they count ..
const EARLY_BLOCKS: usize = 2;
/// .. and their content: together half of a usual block, for a copy that is resumed sends them in vain, and ten times what the first flight of a
/// connection carries that knows nothing of its path.
const EARLY_CONTENT: usize = 256 << 10;

/// Pieces of a file that are remembered: those of a tebibyte, in 48 MiB.
const MAX_SENT: usize = 1 << 20;

/// Ranges that are remembered of files that wait to be read, in 64 MiB: a receiver has many of few files, those that were under way when it broke off.
const MAX_WANTED: usize = 1 << 22;

/// `F` is a file that is open for reading.
pub(super) struct Plan<F> {
    state: Mutex<State<F>>,
    changed: Condvar,
    wants: bool,
}

struct State<F> {
    ready: VecDeque<(Arc<SourceFile>, Wanted)>,
    /// Announced; the receiver has not said yet what it needs.
    waiting: HashMap<u64, Arc<SourceFile>>,
    /// Ranges that are wanted of files that no reader has yet.
    ranges: usize,
    /// Files that the receiver needs no more of, and which may still be to come here.
    unwanted: HashSet<u64>,
    /// The highest id that was added.
    added: u64,
    /// Large files being cut, in order; more than one only while several readers open files at once.
    cuts: VecDeque<Cut<F>>,
    scanned: bool,
    /// Jobs handed out; each may still add a file that changed and is tried again.
    busy: usize,
    /// Blocks that may still be read before the receiver's word; none: any number.
    early: Option<usize>,
}

/// What a reader does next.
pub(super) enum Job<F> {
    /// Whole files of one piece each, together at most a block.
    Batch(Vec<Arc<SourceFile>>),
    /// A file of several pieces is to be opened.
    Open(Arc<SourceFile>, Wanted),
    /// A piece of it: offset, length.
    Piece(Arc<Large<F>>, u64, usize),
    /// It has no further piece, and none is being read.
    End(Arc<Large<F>>),
    /// A stream, or a file that does not say how long it is, is to be read to its end.
    Stream(Arc<SourceFile>),
}

/// A file of several pieces while it is read.
pub(super) struct Large<F> {
    pub(super) file: Arc<SourceFile>,
    pub(super) open: F,
    /// It failed, or is not wanted any more.
    pub(super) given_up: AtomicBool,
    /// It ended before the length that it says.
    pub(super) short: AtomicBool,
    /// It is sent from its start, so that all of it is known here.
    pub(super) from_start: bool,
    tally: Mutex<Tally>,
}

/// What was sent of a file.
#[derive(Default)]
struct Tally {
    bytes: u64,
    sum: PieceSum,
    /// The pieces, to find out which of them changed since; empty where that is not asked.
    sent: Vec<Sent>,
    reading: usize,
    exhausted: bool,
}

/// A piece that was sent: offset, length, hash.
pub(super) type Sent = (u64, u32, Hash);

/// Cuts a file into pieces.
struct Cut<F> {
    large: Arc<Large<F>>,
    ranges: VecDeque<(u64, u64)>,
    /// Whether holes are looked for.
    sparse: bool,
    /// There is data from the current offset to here.
    data_until: u64,
}

impl<F: Content> Plan<F> {
    /// With `wants` files wait until the receiver has said what it needs of them; `cautious`, only a few blocks are read before [`Plan::release`].
    pub(super) fn new(wants: bool, cautious: bool) -> Self {
        let state = State {
            ready: VecDeque::new(),
            waiting: HashMap::new(),
            ranges: 0,
            unwanted: HashSet::new(),
            added: 0,
            cuts: VecDeque::new(),
            scanned: false,
            busy: 0,
            early: cautious.then_some(EARLY_BLOCKS),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), wants }
    }

    /// All that is planned may be read.
    pub(super) fn release(&self) {
        lock(&self.state).early = None;
        self.wake();
    }

    /// Whoever waits is to look at its check again.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Takes files whose entries were sent; waits while the plan is full, unless `check` gives an error.
    pub(super) fn add(
        &self,
        files: impl IntoIterator<Item = Arc<SourceFile>>,
        check: impl Fn() -> Result<(), CopyError>,
    ) -> Result<(), CopyError> {
        let mut state = lock(&self.state);
        for file in files {
            state.added = state.added.max(file.entry.id);
            state.ready.push_back((file, None));
        }
        self.changed.notify_all();
        while state.ready.len() + state.waiting.len() > MAX_FILES {
            check()?;
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Whether a file's content waits for the receiver's word.
    pub(super) fn waits_for_wants(&self, file: &SourceFile) -> bool {
        self.wants && matches!(file.entry.kind, Kind::File { .. })
    }

    /// Takes a file whose entry is about to be sent: the receiver will say what it needs of it.
    pub(super) fn expect_want(&self, file: Arc<SourceFile>) {
        lock(&self.state).waiting.insert(file.entry.id, file);
    }

    /// The receiver's word on a file.
    pub(super) fn want(&self, want: Want) -> Result<(), CopyError> {
        let mut state = lock(&self.state);
        if let Some((file, wanted)) = state.take_want(want)? {
            state.ready.push_back((file, wanted));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// The receiver's word on a file, which then waits here no more; none where it needs nothing of it.
    pub(super) fn take_want(&self, want: Want) -> Result<Option<(Arc<SourceFile>, Wanted)>, CopyError> {
        lock(&self.state).take_want(want)
    }

    /// What was wanted of a file is not to be sent.
    pub(super) fn forget(&self, wanted: &Wanted) {
        lock(&self.state).forget(wanted);
    }

    /// Takes a file and what is wanted of it. Never waits.
    pub(super) fn take(&self, file: Arc<SourceFile>, wanted: Wanted) {
        lock(&self.state).ready.push_back((file, wanted));
        self.changed.notify_all();
    }

    /// The receiver needs no more of this file.
    pub(super) fn unwanted(&self, id: u64) {
        let mut state = lock(&self.state);
        match state.cuts.iter().find(|cut| cut.large.file.entry.id == id) {
            Some(cut) => cut.large.given_up.store(true, Ordering::Relaxed),
            None => state.remember_unwanted(id),
        }
    }

    /// No file will be added but those that are tried again.
    pub(super) fn scanned(&self) {
        lock(&self.state).scanned = true;
        self.changed.notify_all();
    }

    /// The next job; none when all is done. Waits for the scan and the receiver, unless `check` gives an error.
    pub(super) fn next(&self, check: impl Fn() -> Result<(), CopyError>) -> Result<Option<Job<F>>, CopyError> {
        let mut state = lock(&self.state);
        loop {
            check()?;
            if state.early != Some(0)
                && let Some(job) = state.next()
            {
                state.busy += 1;
                if matches!(job, Job::Batch(_) | Job::Piece(..)) {
                    state.early = state.early.map(|blocks| blocks - 1);
                }
                return Ok(Some(job));
            }
            if state.scanned && state.busy == 0 && state.waiting.is_empty() && state.ready.is_empty() && state.cuts.is_empty() {
                self.changed.notify_all();
                return Ok(None);
            }
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A job of [`next`](Self::next) is over.
    pub(super) fn done(&self) {
        let mut state = lock(&self.state);
        state.busy -= 1;
        if state.busy == 0 || state.ready.len() < MAX_FILES {
            self.changed.notify_all();
        }
    }

    /// A file was opened for [`Job::Open`]: it is cut next.
    pub(super) fn cut(&self, large: Arc<Large<F>>, wanted: Wanted, sparse: bool) {
        let ranges = wanted.unwrap_or_else(|| VecDeque::from([(0, large.file.state.size)]));
        let cut = Cut { large, ranges, sparse, data_until: 0 };
        lock(&self.state).cuts.push_back(cut);
        self.changed.notify_all();
    }
}

impl<F: Content> State<F> {
    /// The receiver's word on a file, which then waits here no more; none where it needs nothing of it.
    fn take_want(&mut self, want: Want) -> Result<Option<(Arc<SourceFile>, Wanted)>, CopyError> {
        let file = self.waiting.remove(&want.id).ok_or(CopyError::PeerMisbehaved("it wants a file that does not wait"))?;
        match want.needs {
            Needs::Nothing => Ok(None),
            Needs::All => Ok(Some((file, None))),
            Needs::Ranges(ranges) => {
                if ranges.len() > MAX_RANGES || self.ranges + ranges.len() > MAX_WANTED {
                    return Err(CopyError::PeerMisbehaved("more ranges than can be remembered"));
                }
                let mut at = 0;
                for &(start, end) in &ranges {
                    if start < at || end <= start || end > file.state.size {
                        return Err(CopyError::PeerMisbehaved("it wants ranges that are not in the file"));
                    }
                    at = end;
                }
                self.ranges += ranges.len();
                Ok(Some((file, Some(ranges.into()))))
            }
        }
    }

    fn forget(&mut self, wanted: &Wanted) {
        self.ranges = self.ranges.saturating_sub(wanted.as_ref().map_or(0, VecDeque::len));
    }

    /// Remembers an id that is not being read, but no more of them than there are files it can mean: those that are ready or about to be.
    fn remember_unwanted(&mut self, id: u64) {
        // A batch of entries is announced before its files are added.
        if id > self.added + MAX_FILES as u64 {
            return;
        }
        self.unwanted.insert(id);
        if self.unwanted.len() > 2 * MAX_FILES {
            let ready: HashSet<u64> = self.ready.iter().map(|(file, _)| file.entry.id).collect();
            let added = self.added;
            self.unwanted.retain(|id| *id > added || ready.contains(id));
        }
    }

    fn next(&mut self) -> Option<Job<F>> {
        if let Some(cut) = self.cuts.front_mut() {
            let large = cut.large.clone();
            let most = if self.early.is_some() { EARLY_CONTENT } else { MAX_CONTENT };
            if let Some((offset, length)) = cut.next(most as u64) {
                lock(&large.tally).reading += 1;
                return Some(Job::Piece(large, offset, length));
            }
            self.cuts.pop_front();
            let mut tally = lock(&large.tally);
            tally.exhausted = true;
            if tally.reading == 0 {
                drop(tally);
                return Some(Job::End(large));
            }
            drop(tally);
            return self.next();
        }
        let mut batch = Vec::new();
        let mut room = if self.early.is_some() { EARLY_CONTENT } else { MAX_CONTENT } as u64;
        while let Some((file, wanted)) = self.ready.front() {
            let small = wanted.is_none() && file.state.size <= room && matches!(file.entry.kind, Kind::File { .. });
            if small && batch.len() < MAX_BATCH && file.state.size <= MAX_CONTENT as u64 {
                room -= file.state.size;
                let Some((file, _)) = self.ready.pop_front() else { break };
                if !self.unwanted.remove(&file.entry.id) {
                    batch.push(file);
                }
                continue;
            }
            if !batch.is_empty() {
                break;
            }
            let stream = matches!(file.entry.kind, Kind::Stream { .. });
            if stream && self.early.is_some() {
                // Nobody knows how much of it would be sent in vain.
                return None;
            }
            let Some((file, wanted)) = self.ready.pop_front() else { break };
            self.forget(&wanted);
            if self.unwanted.remove(&file.entry.id) {
                continue;
            }
            return Some(if stream { Job::Stream(file) } else { Job::Open(file, wanted) });
        }
        (!batch.is_empty()).then_some(Job::Batch(batch))
    }
}

impl<F: Content> Cut<F> {
    /// The next piece, of at most so many bytes.
    fn next(&mut self, most: u64) -> Option<(u64, usize)> {
        if !self.large.is_wanted() {
            return None;
        }
        loop {
            let &(mut start, end) = self.ranges.front()?;
            if self.sparse && start >= self.data_until {
                let Some(run) = self.large.open.data_after(start) else {
                    self.ranges.clear();
                    return None;
                };
                (start, self.data_until) = run;
            }
            if start >= end {
                self.ranges.pop_front();
                continue;
            }
            let run_end = if self.sparse { end.min(self.data_until) } else { end };
            let chunk = MAX_CONTENT as u64;
            let stop = run_end.min((start / chunk + 1) * chunk).min(start + most);
            self.ranges.pop_front();
            if stop < end {
                self.ranges.push_front((stop, end));
            }
            return Some((start, (stop - start) as usize));
        }
    }
}

impl<F> Large<F> {
    pub(super) fn new(file: Arc<SourceFile>, open: F, from_start: bool) -> Self {
        let (given_up, short) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { file, open, given_up, short, from_start, tally: Mutex::default() }
    }

    /// Whether more of it is to be read.
    pub(super) fn is_wanted(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed) && !self.short.load(Ordering::Relaxed)
    }

    /// Counts a piece, and remembers it if asked to; true where it was the last and the file is to be ended.
    pub(super) fn read(&self, piece: Option<&crate::block::Piece>, remember: bool) -> bool {
        let mut tally = lock(&self.tally);
        if let Some(piece) = piece {
            tally.bytes += u64::from(piece.length);
            tally.sum.add(piece.offset, piece.length, &piece.hash);
            if remember && tally.sent.len() < MAX_SENT {
                tally.sent.push((piece.offset, piece.length, piece.hash));
            }
        }
        tally.reading -= 1;
        tally.exhausted && tally.reading == 0
    }

    /// Bytes that were sent, and the sum over their pieces.
    pub(super) fn tally(&self) -> (u64, PieceSum) {
        let tally = lock(&self.tally);
        (tally.bytes, tally.sum)
    }

    /// The pieces that were sent, in order; none where not all of the file was remembered.
    pub(super) fn sent(&self) -> Option<Vec<Sent>> {
        let mut tally = lock(&self.tally);
        let mut sent = std::mem::take(&mut tally.sent);
        sent.sort_unstable();
        let all = sent.iter().map(|(_, length, _)| u64::from(*length)).sum::<u64>() == tally.bytes;
        (all && self.from_start).then_some(sent)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Source;
    use crate::protocol::{Entry, Stamp};
    use haul_faults::WirePath;

    #[test]
    fn files_that_nobody_wants_are_remembered_within_bounds() {
        let plan = Plan::<std::fs::File>::new(false, false);
        for id in 1..=1_000_000 {
            plan.unwanted(id);
            plan.unwanted(u64::MAX - id);
            // As if its file had been sent long ago.
            lock(&plan.state).added = id;
        }
        let remembered = lock(&plan.state).unwanted.len();
        assert!(remembered <= 3 * MAX_FILES, "{remembered}");
    }

    fn wants(plan: &Plan<std::fs::File>, id: u64, count: usize) -> Result<(), CopyError> {
        let (size, mtime, name) = (1 << 20, Stamp::default(), WirePath(b"f".to_vec()));
        let kind = Kind::File { size, data: size, version: 0, linked: false, replaces: None };
        let entry = Entry { id, parent: 0, name, mode: 0, mtime, uid: 0, gid: 0, kind };
        let state = Source { size, mtime, version: 0 };
        plan.expect_want(Arc::new(SourceFile { entry, state, dir: 0, top: None, link: None, retried: false }));
        let ranges = (0..count as u64).map(|at| (2 * at, 2 * at + 1)).collect();
        plan.want(Want { id, needs: Needs::Ranges(ranges) })
    }

    #[test]
    fn ranges_that_somebody_wants_are_remembered_within_bounds() {
        let plan = Plan::new(true, false);
        wants(&plan, 1, MAX_RANGES + 1).unwrap_err();
        for id in 0..(MAX_WANTED / MAX_RANGES) as u64 {
            wants(&plan, 2 + id, MAX_RANGES).unwrap();
        }
        wants(&plan, 1 << 20, 1).unwrap_err();
        // Those of a file that is being read count no more.
        assert!(matches!(plan.next(|| Ok(())), Ok(Some(Job::Open(..)))));
        wants(&plan, 1 << 21, MAX_RANGES).unwrap();
        // Nor those of one that is not to be sent after all.
        plan.forget(&Some((0..7).map(|at| (at, at + 1)).collect()));
        wants(&plan, 1 << 22, 8).unwrap_err();
        wants(&plan, 1 << 23, 7).unwrap();
    }
}
