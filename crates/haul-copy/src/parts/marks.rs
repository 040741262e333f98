//! What one side notes of a copy while it runs, and what it tells the other side of that.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul_files::{Commit, Event, Observer, Wishes};
use serde::{Deserialize, Serialize};

use crate::clock;

/// Moments of one side. Who notes one says when it was.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<Noted>);

/// What was noted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Noted {
    /// Sender: the first block was given to the transport.
    pub(crate) first_handed: Option<Instant>,
    /// Sender: the last one was.
    pub(crate) handed: Option<Instant>,
    /// Sender: all have arrived.
    pub(crate) arrived: Option<Instant>,
    /// Receiver: the first block has come.
    pub(crate) first: Option<Instant>,
    /// Receiver: the last one is written. Each thread that writes finds the end of the blocks; the last one to do so makes it that.
    pub(crate) written: Option<Instant>,
    /// Receiver: what is done with complete files, and since when.
    committing: Option<(Commit, Instant)>,
    /// Receiver: time of syncs after the last block was written.
    pub(crate) sync: Duration,
    /// Receiver: time of renames after that.
    pub(crate) rename: Duration,
    /// The receiver's last word so far, its counts: that all is in place is the last of them.
    pub(crate) finished: Option<Instant>,
    /// It was.
    over: bool,
}

impl Marks {
    /// The receiver has a word for the sender, or the sender hears it.
    pub(crate) fn finishes(&self, now: Instant) {
        self.lock().finished = Some(now);
    }

    /// That was the last one, and all is in place.
    pub(crate) fn is_over(&self) {
        self.lock().over = true;
    }

    /// Sender: a block is given to the transport.
    pub(crate) fn hands_over(&self, now: Instant) {
        self.lock().first_handed.get_or_insert(now);
    }

    /// Sender: there are no more.
    pub(crate) fn handed_all(&self, now: Instant) {
        self.lock().handed.get_or_insert(now);
    }

    /// Sender: all have arrived.
    pub(crate) fn all_arrived(&self, now: Instant) {
        self.lock().arrived = Some(now);
    }

    /// Receiver: a block has come.
    pub(crate) fn comes(&self, now: Instant) {
        self.lock().first.get_or_insert(now);
    }

    /// Receiver: a thread that writes has found that no more comes.
    pub(crate) fn ends(&self, now: Instant) {
        let mut noted = self.lock();
        // What another thread took for the end was not.
        (noted.sync, noted.rename) = (Duration::ZERO, Duration::ZERO);
        noted.written = Some(now);
    }

    /// Receiver: what becomes of complete files.
    pub(crate) fn commits(&self, what: Commit, now: Instant) {
        let mut noted = self.lock();
        if let (Some((was, since)), Some(written)) = (noted.committing, noted.written) {
            let passed = now.saturating_duration_since(since.max(written));
            match was {
                Commit::Sync => noted.sync += passed,
                Commit::Rename => noted.rename += passed,
                Commit::Done => {}
            }
        }
        noted.committing = Some((what, now));
    }

    /// All of it.
    pub(crate) fn noted(&self) -> Noted {
        *self.lock()
    }

    /// For the other side, once all is in place.
    pub(crate) fn told(&self) -> Option<Told> {
        let noted = self.noted();
        let end = noted.finished.filter(|_| noted.over)?;
        let before = |moment: Option<Instant>| moment.map(|moment| micros(end.saturating_duration_since(moment)));
        Some(Told {
            first_us: before(noted.first),
            first_handed_us: before(noted.first_handed),
            handed_us: before(noted.handed),
            written_us: before(noted.written),
            sync_us: micros(noted.sync),
            rename_us: micros(noted.rename),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one side tells of its moments: each by how long it was before its end, so that the clocks of two machines need not agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name, as in all reports")]
pub(crate) struct Told {
    /// The first block had come.
    pub(crate) first_us: Option<u64>,
    /// It was given to the transport.
    pub(crate) first_handed_us: Option<u64>,
    /// The last one was given to the transport.
    pub(crate) handed_us: Option<u64>,
    /// The last one was written.
    pub(crate) written_us: Option<u64>,
    /// How long syncs took after that.
    pub(crate) sync_us: u64,
    /// How long renames took after that.
    pub(crate) rename_us: u64,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Hears what becomes of complete files, and the receiver's words, for the marks, besides who hears everything.
pub(crate) struct Noting<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) marks: &'a Marks,
}

impl Observer for Noting<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Commit(what) => self.marks.commits(what, clock::now()),
            Event::Arrived { .. } => self.marks.finishes(clock::now()),
            _ => {}
        }
        self.observer.event(event);
    }

    fn wishes(&self) -> Option<Wishes> {
        self.observer.wishes()
    }

    fn wants_content(&self) -> bool {
        self.observer.wants_content()
    }

    fn wants_files(&self) -> bool {
        self.observer.wants_files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_sync_beside_the_bulk_is_waited_for_only_after_the_last_block() {
        let begun = clock::now();
        let at = |n| begun + ms(n);
        let marks = Marks::default();
        marks.comes(at(10));
        marks.comes(at(20));
        marks.commits(Commit::Sync, at(100));
        marks.commits(Commit::Rename, at(200));
        marks.commits(Commit::Done, at(250));
        marks.commits(Commit::Sync, at(900));
        // Two threads write: one finds no more block while the other still writes the last one.
        marks.ends(at(950));
        marks.ends(at(1000));
        marks.commits(Commit::Rename, at(1030));
        marks.commits(Commit::Sync, at(1040));
        marks.commits(Commit::Rename, at(1100));
        marks.commits(Commit::Done, at(1107));
        marks.commits(Commit::Sync, at(1200));
        marks.commits(Commit::Done, at(1203));
        marks.finishes(at(1300));
        assert_eq!(marks.told(), None, "it is not over");
        marks.finishes(at(1500));
        marks.is_over();
        let told = marks.told().expect("it is over");
        let expected = Told {
            first_us: Some(1_490_000),
            first_handed_us: None,
            handed_us: None,
            written_us: Some(500_000),
            sync_us: 30_000 + 60_000 + 3_000,
            rename_us: 10_000 + 7_000,
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn the_first_block_is_the_first_and_the_end_is_the_end() {
        let begun = clock::now();
        let marks = Marks::default();
        marks.hands_over(begun + ms(1));
        marks.hands_over(begun + ms(2));
        marks.handed_all(begun + ms(3));
        marks.all_arrived(begun + ms(4));
        let noted = marks.noted();
        assert_eq!((noted.first_handed, noted.handed), (Some(begun + ms(1)), Some(begun + ms(3))));
        assert_eq!((noted.arrived, noted.written), (Some(begun + ms(4)), None));
    }
}
