//! What nobody has been told to send, and what of each file has come.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use haul_units::Ranges;

use super::piece::PieceId;
use crate::catalogue::{Catalogue, FileId, SetId};

/// Files with the same holders.
#[derive(Debug, Default)]
struct Group {
    /// Not begun. An entry may be stale: the file's holders have changed since.
    waiting: VecDeque<FileId>,
    /// Begun, with ranges that nobody has been told; the oldest first, so that files come to their end. May be stale as well.
    open: VecDeque<FileId>,
    /// How many files of the group have something that nobody has been told.
    ready: usize,
    /// Bytes of those ranges.
    pending: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Begun,
    Done,
}

/// A file that somebody has been told to send, until it has come.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Ascending. An empty file has one empty range.
    unassigned: Vec<Range<u64>>,
    /// What has come, counted once however often it does.
    pub coverage: Ranges,
    /// Who has been told what, the same range perhaps twice.
    pub pieces: Vec<PieceId>,
}

#[derive(Debug)]
pub(super) struct Work {
    groups: Vec<Group>,
    states: Vec<State>,
    begun: HashMap<FileId, Begun>,
    /// Bytes that nobody has been told to send.
    pub pending: u64,
    /// Files that have not come.
    pub files_left: usize,
    /// Bytes that have come, each counted once.
    pub arrived: u64,
    unit: u64,
}

impl Work {
    pub fn new(catalogue: &Catalogue, unit: u64) -> Self {
        let mut work = Self {
            groups: Vec::new(),
            states: Vec::with_capacity(catalogue.files().count()),
            begun: HashMap::new(),
            pending: 0,
            files_left: 0,
            arrived: 0,
            unit: unit.max(1),
        };
        for file in catalogue.files() {
            work.found(catalogue, file);
        }
        work
    }

    /// The next file of the catalogue is to be sent.
    pub fn found(&mut self, catalogue: &Catalogue, file: FileId) {
        self.grow(catalogue);
        let bytes = catalogue.needed_bytes(file);
        let group = self.group_mut(catalogue.set(file));
        group.waiting.push_back(file);
        group.ready += 1;
        group.pending += bytes;
        self.states.push(State::Waiting);
        self.pending += bytes;
        self.files_left += 1;
    }

    /// There may be more sets than there were.
    fn grow(&mut self, catalogue: &Catalogue) {
        let sets = catalogue.set_count().max(self.groups.len());
        self.groups.resize_with(sets, Group::default);
    }

    /// Whether files with these holders have something that nobody has been told.
    pub fn has_work(&self, set: SetId) -> bool {
        self.group(set).ready > 0
    }

    pub fn pending_of(&self, set: SetId) -> u64 {
        self.group(set).pending
    }

    pub fn is_done(&self, file: FileId) -> bool {
        self.states[file.index()] == State::Done
    }

    pub fn begun(&self, file: FileId) -> Option<&Begun> {
        self.begun.get(&file)
    }

    pub fn begun_mut(&mut self, file: FileId) -> Option<&mut Begun> {
        self.begun.get_mut(&file)
    }

    /// The next range of a file of this set, about `want` bytes.
    pub fn take(&mut self, catalogue: &Catalogue, set: SetId, want: u64) -> Option<(FileId, Range<u64>)> {
        let file = self.next_open(catalogue, set).or_else(|| self.begin_next(catalogue, set))?;
        Some((file, self.take_from(catalogue, file, want)))
    }

    /// All of a file that has not been begun.
    pub fn take_whole(&mut self, catalogue: &Catalogue, file: FileId) -> Option<Range<u64>> {
        if self.states[file.index()] == State::Waiting {
            self.begin(catalogue, file);
        }
        let is_open = self.begun.get(&file).is_some_and(|begun| !begun.unassigned.is_empty());
        is_open.then(|| self.take_from(catalogue, file, u64::MAX))
    }

    fn take_from(&mut self, catalogue: &Catalogue, file: FileId, want: u64) -> Range<u64> {
        let begun = self.begun.get_mut(&file).expect("an open file has been begun");
        let first = begun.unassigned[0].clone();
        // At a multiple of the unit; a rest shorter than one is not left alone.
        let cut = first.start.saturating_add(want).checked_next_multiple_of(self.unit).unwrap_or(u64::MAX);
        let end = if cut.saturating_add(self.unit) > first.end { first.end } else { cut };
        let taken = first.start..end;
        if end == first.end {
            begun.unassigned.remove(0);
        } else {
            begun.unassigned[0].start = end;
        }
        let is_exhausted = begun.unassigned.is_empty();
        let group = &mut self.groups[catalogue.set(file).0 as usize];
        group.pending -= taken.end - taken.start;
        group.ready -= usize::from(is_exhausted);
        self.pending -= taken.end - taken.start;
        taken
    }

    fn next_open(&mut self, catalogue: &Catalogue, set: SetId) -> Option<FileId> {
        let group = &mut self.groups[set.0 as usize];
        while let Some(&file) = group.open.front() {
            let is_open = self.begun.get(&file).is_some_and(|begun| !begun.unassigned.is_empty());
            if is_open && catalogue.set(file) == set {
                return Some(file);
            }
            group.open.pop_front();
        }
        None
    }

    fn begin_next(&mut self, catalogue: &Catalogue, set: SetId) -> Option<FileId> {
        loop {
            let file = self.groups[set.0 as usize].waiting.pop_front()?;
            if self.states[file.index()] == State::Waiting && catalogue.set(file) == set {
                self.begin(catalogue, file);
                return Some(file);
            }
        }
    }

    fn begin(&mut self, catalogue: &Catalogue, file: FileId) {
        self.states[file.index()] = State::Begun;
        let unassigned = catalogue.needed(file);
        // What is not needed is as good as come.
        let mut coverage = Ranges::default();
        let mut at = 0;
        for range in &unassigned {
            coverage.insert(at..range.start);
            at = range.end;
        }
        coverage.insert(at..catalogue.size(file).as_u64());
        self.begun.insert(file, Begun { unassigned, coverage, pieces: Vec::new() });
        self.group_mut(catalogue.set(file)).open.push_front(file);
    }

    /// A piece of a file will not come from where it was told: what of it nobody else (`others`) sends can be told to somebody. False if that
    /// is nothing.
    pub fn give_back(&mut self, catalogue: &Catalogue, file: FileId, range: &Range<u64>, others: &[Range<u64>]) -> bool {
        let Some(begun) = self.begun.get_mut(&file) else { return false };
        let mut elsewhere = begun.coverage.clone();
        for other in others.iter().chain(&begun.unassigned) {
            elsewhere.insert(other.clone());
        }
        let mut back: Vec<Range<u64>> = elsewhere.missing_in(range.clone()).collect();
        if range.is_empty() && others.is_empty() {
            back.push(range.clone());
        }
        if back.is_empty() {
            return false;
        }
        let was_open = !begun.unassigned.is_empty();
        let bytes = length(&back);
        begun.unassigned.extend(back);
        begun.unassigned.sort_unstable_by_key(|gap| gap.start);
        let group = &mut self.groups[catalogue.set(file).0 as usize];
        group.pending += bytes;
        if !was_open {
            group.ready += 1;
            // What somebody has failed at is old: it goes first.
            group.open.push_front(file);
        }
        self.pending += bytes;
        true
    }

    /// The holders of a file have changed from those of `before`.
    pub fn regroup(&mut self, catalogue: &Catalogue, file: FileId, before: SetId) {
        self.grow(catalogue);
        let (bytes, is_ready) = match (self.states[file.index()], self.begun.get(&file)) {
            (State::Waiting, _) => (catalogue.needed_bytes(file), true),
            (State::Begun, Some(begun)) => (length(&begun.unassigned), !begun.unassigned.is_empty()),
            _ => (0, false),
        };
        if !is_ready {
            return;
        }
        let is_waiting = self.states[file.index()] == State::Waiting;
        let old = self.group_mut(before);
        old.ready -= 1;
        old.pending -= bytes;
        let new = self.group_mut(catalogue.set(file));
        new.ready += 1;
        new.pending += bytes;
        if is_waiting { new.waiting.push_front(file) } else { new.open.push_front(file) }
    }

    /// Bytes have come; returns how many of them had not. A file that is whole is done with.
    pub fn arrived(&mut self, catalogue: &Catalogue, file: FileId, range: &Range<u64>) -> (u64, bool) {
        let size = catalogue.size(file).as_u64();
        let Some(begun) = self.begun.get_mut(&file) else { return (0, false) };
        let fresh = begun.coverage.insert(range.clone());
        self.arrived += fresh;
        (fresh, begun.coverage.total() == size)
    }

    /// Forgets a file that has come.
    pub fn finish(&mut self, catalogue: &Catalogue, file: FileId) -> Option<Begun> {
        let begun = self.begun.remove(&file)?;
        self.states[file.index()] = State::Done;
        self.files_left -= 1;
        if !begun.unassigned.is_empty() {
            // It came all the same: from somebody who had been taken for dead.
            let bytes = length(&begun.unassigned);
            let group = self.group_mut(catalogue.set(file));
            group.ready -= 1;
            group.pending -= bytes;
            self.pending -= bytes;
        }
        Some(begun)
    }

    /// Forgets a file that need not come.
    pub fn drop_file(&mut self, catalogue: &Catalogue, file: FileId) -> Option<Begun> {
        if self.states[file.index()] == State::Waiting {
            self.begin(catalogue, file);
        }
        self.finish(catalogue, file)
    }

    /// What has come need not be told to anybody: takes it out of what is still to be.
    pub fn forget_arrived(&mut self, catalogue: &Catalogue, file: FileId, range: &Range<u64>) {
        self.forget(catalogue, file, range, |begun, gap| begun.coverage.missing_in(gap).collect());
    }

    /// A range comes after all from where it was told first: takes it out of what is still to be told.
    pub fn claim(&mut self, catalogue: &Catalogue, file: FileId, range: &Range<u64>) {
        let mut claimed = Ranges::default();
        claimed.insert(range.clone());
        self.forget(catalogue, file, range, |_, gap| claimed.missing_in(gap).collect());
    }

    /// Takes something out of what is still to be told, if that has anything in common with `range`: of each part of it, `left` is left.
    fn forget(
        &mut self,
        catalogue: &Catalogue,
        file: FileId,
        range: &Range<u64>,
        left: impl Fn(&Begun, Range<u64>) -> Vec<Range<u64>>,
    ) {
        let Some(begun) = self.begun.get_mut(&file) else { return };
        if !begun.unassigned.iter().any(|gap| gap.start < range.end && range.start < gap.end) {
            return;
        }
        let before = length(&begun.unassigned);
        begun.unassigned = begun.unassigned.iter().flat_map(|gap| left(begun, gap.clone())).collect();
        let after = length(&begun.unassigned);
        let is_exhausted = begun.unassigned.is_empty();
        let group = &mut self.groups[catalogue.set(file).0 as usize];
        group.pending -= before - after;
        group.ready -= usize::from(is_exhausted);
        self.pending -= before - after;
    }

    fn group(&self, set: SetId) -> &Group {
        &self.groups[set.0 as usize]
    }

    fn group_mut(&mut self, set: SetId) -> &mut Group {
        &mut self.groups[set.0 as usize]
    }
}

/// Bytes of ranges that are apart from each other.
fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}
