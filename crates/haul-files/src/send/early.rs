//! Before the receiver's word: what a sender that begins early keeps to itself until it is sure to go on.
//!
//! If all has to start again, the same files are read again and the same problems found: the user is to hear once of what was found and done.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use haul_units::Bytes;

use crate::clock::POLL;
use crate::locks::lock;
use haul_faults::{CopyError, FileProblem, Note, WirePath};

/// News that are kept; then whoever has more waits.
const MAX_HELD: usize = 1 << 14;

/// News of files.
pub(super) enum Held {
    Problem(FileProblem),
    /// A device, socket or named pipe in a tree.
    Special(WirePath),
    Note(Note),
    Finished(PathBuf, Bytes),
}

/// Whether the word has come, and what waits for it.
pub(super) struct Early {
    /// None once the word has come.
    held: Mutex<Option<Vec<Held>>>,
    changed: Condvar,
    given_up: AtomicBool,
}

impl Early {
    /// The word has not come.
    pub(super) fn open() -> Self {
        Self::new(Some(Vec::new()))
    }

    /// The word has come before anything was begun.
    pub(super) fn closed() -> Self {
        Self::new(None)
    }

    fn new(held: Option<Vec<Held>>) -> Self {
        Self { held: Mutex::new(held), changed: Condvar::new(), given_up: AtomicBool::new(false) }
    }

    /// Whether the word has not come.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.held).is_some()
    }

    /// Whether all that was begun is given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Gives up.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// The word has come, and all goes on: `tell` gets what was held, before anything newer is told.
    pub(super) fn confirm(&self, mut tell: impl FnMut(Held) -> Result<(), CopyError>) -> Result<(), CopyError> {
        let mut held = lock(&self.held);
        for news in held.take().into_iter().flatten() {
            tell(news)?;
        }
        drop(held);
        self.changed.notify_all();
        Ok(())
    }

    /// Keeps news until the word comes; gives them back if it has come.
    pub(super) fn hold(&self, news: Held, check: impl Fn() -> Result<(), CopyError>) -> Result<Option<Held>, CopyError> {
        let mut state = lock(&self.held);
        loop {
            match &mut *state {
                None => return Ok(Some(news)),
                Some(held) if held.len() < MAX_HELD => {
                    held.push(news);
                    return Ok(None);
                }
                Some(_) => check()?,
            }
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the word.
    pub(super) fn wait(&self, check: impl Fn() -> Result<(), CopyError>) -> Result<(), CopyError> {
        let mut state = lock(&self.held);
        loop {
            check()?;
            if state.is_none() {
                return Ok(());
            }
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
