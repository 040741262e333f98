//! A member at work: its session, and what it says on the way to the driver.
//!
//! Each member may have a few messages wait for the driver, and then waits itself: the blocks that it sends need its connection's credit, so memory is bounded whatever the number of
//! members.

use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use haul_files::protocol::{Entry, OrderEnd};
use haul_files::{CopyError, Customer, Delivery, FileProblem, Note};

use super::desk::News;

/// Messages of one member that wait for the driver: a block in hand and one to come for each of the two threads.
const MAX_WAITING: usize = 4;

/// What a member says.
pub(super) enum Said<B> {
    Entries(Vec<Entry>),
    Listed,
    Problem(FileProblem),
    Note(Note),
    Ended(Vec<OrderEnd>),
    Delivered(Delivery<B>),
    /// The session is over.
    Over(Result<(), CopyError>),
}

/// Holds a member back.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<Passing>,
    changed: Condvar,
}

#[derive(Default)]
struct Passing {
    waiting: usize,
    closed: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Passing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Result<(), CopyError> {
        let mut passing = self.lock();
        while passing.waiting >= MAX_WAITING && !passing.closed {
            passing = self.changed.wait(passing).unwrap_or_else(PoisonError::into_inner);
        }
        if passing.closed {
            return Err(CopyError::Cancelled);
        }
        passing.waiting += 1;
        Ok(())
    }

    /// The driver has taken a message.
    pub(super) fn leave(&self) {
        self.lock().waiting -= 1;
        self.changed.notify_all();
    }

    /// The driver takes no more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Passes on what a member says.
pub(super) struct Messenger<'a, B> {
    pub(super) member: usize,
    pub(super) gate: &'a Gate,
    pub(super) news: Sender<News<B>>,
}

impl<B> Messenger<'_, B> {
    fn say(&self, said: Said<B>) -> Result<(), CopyError> {
        self.gate.enter()?;
        self.news.send(News::Member(self.member, said)).map_err(|_| CopyError::Cancelled)
    }

    /// The last word, for which nobody waits.
    pub(super) fn over(&self, result: Result<(), CopyError>) {
        let _ = self.news.send(News::Member(self.member, Said::Over(result)));
    }
}

impl<B: Send> Customer<B> for Messenger<'_, B> {
    fn entries(&self, entries: Vec<Entry>) -> Result<(), CopyError> {
        self.say(Said::Entries(entries))
    }

    fn listed(&self) -> Result<(), CopyError> {
        self.say(Said::Listed)
    }

    fn problem(&self, problem: FileProblem) -> Result<(), CopyError> {
        self.say(Said::Problem(problem))
    }

    fn note(&self, note: Note) -> Result<(), CopyError> {
        self.say(Said::Note(note))
    }

    fn ended(&self, ends: Vec<OrderEnd>) -> Result<(), CopyError> {
        self.say(Said::Ended(ends))
    }

    fn delivered(&self, delivery: Delivery<B>) -> Result<(), CopyError> {
        self.say(Said::Delivered(delivery))
    }
}
