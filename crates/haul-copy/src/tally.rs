//! Counts what the engine tells, for whoever wants to show it: totals, the file under way, and what is to be told once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_files::{Event, FileProblem, FileUnderWay, Note, Observer};
use haul_units::Bytes;

/// How many names of files under way are kept.
const NAMES: usize = 64;
/// How many finished files are kept until somebody shows them.
const FINISHED: usize = 10_000;

/// The state of all the copies of one command.
#[derive(Debug, Default)]
pub struct Tally {
    /// Whether names of files are wanted.
    names: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Of the copies that are over.
    before: Counts,
    /// Of the copy under way.
    current: Counts,
    active: Vec<ActiveFile>,
    /// Large files that have arrived in part, as the receiver tells them.
    under_way: Vec<ActiveFile>,
    /// A copy goes on from an earlier one, and nobody has said so yet.
    resumed: bool,
    finished: Vec<ActiveFile>,
    problems: Vec<FileProblem>,
    notes: Vec<Note>,
}

/// Totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files that the scan found.
    pub found_files: u64,
    /// Bytes in them.
    pub found: Bytes,
    /// Whether the scan is over.
    pub complete: bool,
    /// Files in place.
    pub arrived_files: u64,
    /// Bytes written.
    pub arrived: Bytes,
    /// Files that needed nothing.
    pub kept_files: u64,
    /// Bytes that were there already.
    pub kept: Bytes,
    /// Files that were not copied.
    pub problems: u64,
}

/// A file and its size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActiveFile {
    /// Its name.
    pub path: PathBuf,
    /// Its size, zero where it is not known.
    pub size: Bytes,
    /// How much of it is at the destination, where that is told: of small files it is not.
    pub arrived: Option<Bytes>,
}

impl Counts {
    /// Bytes that are at the destination.
    pub fn present(self) -> Bytes {
        sum(self.arrived, self.kept)
    }

    /// Files that are at the destination.
    pub fn present_files(self) -> u64 {
        self.arrived_files.saturating_add(self.kept_files)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            found_files: self.found_files.saturating_add(other.found_files),
            found: sum(self.found, other.found),
            complete: other.complete,
            arrived_files: self.arrived_files.saturating_add(other.arrived_files),
            arrived: sum(self.arrived, other.arrived),
            kept_files: self.kept_files.saturating_add(other.kept_files),
            kept: sum(self.kept, other.kept),
            problems: self.problems.saturating_add(other.problems),
        }
    }
}

/// Of what a peer says, which may be any number.
const fn sum(one: Bytes, other: Bytes) -> Bytes {
    Bytes(one.0.saturating_add(other.0))
}

impl Tally {
    /// Nothing has happened. `names`: whether to keep names of files.
    pub fn new(names: bool) -> Self {
        Self { names, inner: Mutex::default() }
    }

    /// All counts up to here. What the scan finds is an estimate (of holes, of files that do not say how long they are, of files that grow): at
    /// least what has arrived was there.
    pub fn counts(&self) -> Counts {
        let inner = self.lock();
        let counts = inner.before.plus(inner.current);
        let (found, found_files) = (counts.found.max(counts.present()), counts.found_files.max(counts.present_files()));
        Counts { found_files, found, ..counts }
    }

    /// The current file, and how many others are under way: the first of the large files that have arrived in part; where there is none, the
    /// one that was started last and is not finished.
    pub fn active(&self) -> Option<(ActiveFile, usize)> {
        let inner = self.lock();
        if let Some(first) = inner.under_way.first() {
            return Some((first.clone(), inner.under_way.len() - 1));
        }
        inner.active.last().map(|last| (last.clone(), inner.active.len() - 1))
    }

    /// Whether a copy goes on from an earlier one; said once.
    pub fn take_resumed(&self) -> bool {
        std::mem::take(&mut self.lock().resumed)
    }

    /// Files finished since the last call.
    pub fn take_finished(&self) -> Vec<ActiveFile> {
        std::mem::take(&mut self.lock().finished)
    }

    /// Problems since the last call.
    pub fn take_problems(&self) -> Vec<FileProblem> {
        std::mem::take(&mut self.lock().problems)
    }

    /// Notes since the last call.
    pub fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    /// One copy is over; what follows belongs to the next one.
    pub fn next_copy(&self) {
        let mut inner = self.lock();
        inner.before = inner.before.plus(inner.current);
        inner.begin();
    }

    /// The copy goes on over another connection: it finds everything again, and counts what has arrived as kept.
    pub fn over_again(&self) {
        let mut inner = self.lock();
        inner.before.problems = inner.before.problems.saturating_add(inner.current.problems);
        inner.begin();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Tally {
    fn event(&self, event: Event<'_>) {
        let mut inner = self.lock();
        match event {
            Event::Found { files, bytes, complete } => {
                let current = &mut inner.current;
                (current.found_files, current.found, current.complete) = (files, bytes, complete);
            }
            Event::Arrived { files, bytes } => (inner.current.arrived_files, inner.current.arrived) = (files, bytes),
            Event::Kept { files, bytes } => (inner.current.kept_files, inner.current.kept) = (files, bytes),
            Event::FileStarted { path, size } => inner.start(path, size),
            Event::FileFinished { path, size } => inner.finish(path, size),
            Event::UnderWay(files) => inner.under_way = files.iter().map(ActiveFile::from).collect(),
            Event::Resumed => inner.resumed = true,
            Event::Problem(problem) => {
                inner.current.problems += 1;
                inner.problems.push(problem.clone());
            }
            Event::Note(note) => inner.notes.push(note.clone()),
            _ => {}
        }
    }

    fn wants_files(&self) -> bool {
        self.names
    }
}

impl From<&FileUnderWay> for ActiveFile {
    fn from(file: &FileUnderWay) -> Self {
        Self { path: file.path.clone(), size: file.size, arrived: Some(file.arrived) }
    }
}

impl Inner {
    fn begin(&mut self) {
        self.current = Counts::default();
        self.active.clear();
        self.under_way.clear();
    }

    fn start(&mut self, path: &Path, size: Bytes) {
        // One that is read again.
        self.active.retain(|file| file.path != path);
        if self.active.len() == NAMES {
            self.active.remove(0);
        }
        self.active.push(ActiveFile { path: path.to_owned(), size, arrived: None });
    }

    fn finish(&mut self, path: &Path, size: Bytes) {
        self.active.retain(|file| file.path != path);
        if self.finished.len() < FINISHED {
            self.finished.push(ActiveFile { path: path.to_owned(), size, arrived: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_copies() {
        let tally = Tally::new(true);
        tally.event(Event::Found { files: 3, bytes: Bytes(30), complete: true });
        tally.event(Event::Arrived { files: 1, bytes: Bytes(10) });
        tally.event(Event::Kept { files: 2, bytes: Bytes(20) });
        tally.next_copy();
        tally.event(Event::Found { files: 1, bytes: Bytes(5), complete: false });
        let counts = tally.counts();
        assert_eq!((counts.found_files, counts.found, counts.complete), (4, Bytes(35), false));
        assert_eq!((counts.present_files(), counts.present()), (3, Bytes(30)));
    }

    #[test]
    fn a_peer_that_says_the_most_of_everything_is_counted() {
        let tally = Tally::new(true);
        let (files, bytes) = (u64::MAX, Bytes(u64::MAX));
        for _ in 0..2 {
            tally.event(Event::Found { files, bytes, complete: true });
            tally.event(Event::Arrived { files, bytes });
            tally.event(Event::Kept { files, bytes });
            let counts = tally.counts();
            assert_eq!((counts.present_files(), counts.present(), counts.found), (files, bytes, bytes));
            tally.next_copy();
        }
    }

    #[test]
    fn a_copy_that_goes_on_is_counted_once() {
        let tally = Tally::new(true);
        let found = || tally.event(Event::Found { files: 2, bytes: Bytes(20), complete: true });
        found();
        tally.event(Event::Arrived { files: 1, bytes: Bytes(10) });
        tally.over_again();
        found();
        tally.event(Event::Kept { files: 1, bytes: Bytes(10) });
        let counts = tally.counts();
        assert_eq!((counts.found_files, counts.present_files(), counts.present()), (2, 1, Bytes(10)));
    }

    #[test]
    fn no_more_arrives_than_there_is() {
        let tally = Tally::new(true);
        // A file of /proc says it is empty, one that grew and was read again is longer than it was when it was found.
        tally.event(Event::Found { files: 1, bytes: Bytes(100), complete: true });
        tally.event(Event::Arrived { files: 2, bytes: Bytes(180) });
        let counts = tally.counts();
        assert_eq!((counts.found, counts.present(), counts.found_files), (Bytes(180), Bytes(180), 2));
    }

    #[test]
    fn the_latest_unfinished_file_is_the_one_shown() {
        let tally = Tally::new(true);
        let (a, b) = (Path::new("a"), Path::new("b"));
        tally.event(Event::FileStarted { path: a, size: Bytes(1) });
        tally.event(Event::FileStarted { path: b, size: Bytes(2) });
        assert_eq!(tally.active().map(|(file, others)| (file.path, others)), Some((b.to_owned(), 1)));
        tally.event(Event::FileFinished { path: b, size: Bytes(2) });
        assert_eq!(tally.active().map(|(file, others)| (file.path, others)), Some((a.to_owned(), 0)));
        assert_eq!(tally.take_finished().len(), 1);
        assert!(tally.take_finished().is_empty());
        // Read again, it is still one.
        tally.event(Event::FileStarted { path: a, size: Bytes(1) });
        tally.event(Event::FileFinished { path: a, size: Bytes(1) });
        assert_eq!(tally.active().map(|(file, _)| file.path), None);
    }

    #[test]
    fn a_large_file_that_arrives_is_the_current_one() {
        let tally = Tally::new(true);
        let large = FileUnderWay { path: "large".into(), size: Bytes(9), arrived: Bytes(4) };
        tally.event(Event::FileStarted { path: Path::new("small"), size: Bytes(1) });
        tally.event(Event::UnderWay(&[large.clone(), FileUnderWay { path: "later".into(), ..large }]));
        let (file, others) = tally.active().unwrap();
        assert_eq!((file.path, file.arrived, others), ("large".into(), Some(Bytes(4)), 1));
        tally.event(Event::UnderWay(&[]));
        assert_eq!(tally.active().map(|(file, _)| (file.path, file.arrived)), Some(("small".into(), None)));
    }

    #[test]
    fn going_on_is_said_once() {
        let tally = Tally::new(false);
        tally.event(Event::Resumed);
        assert!(tally.take_resumed() && !tally.take_resumed());
    }
}
