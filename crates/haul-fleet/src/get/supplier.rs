//! The session of a member passes on what the member says.

use std::sync::mpsc::Sender;

use haul_files::protocol::{Digest, Entry, OrderEnd};
use haul_files::{CopyError, Customer, Delivery, FileProblem, Note};

use super::news::{Gate, News, Said};

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

    fn elsewhere(&self, files: Vec<u64>) -> Result<(), CopyError> {
        self.say(Said::Elsewhere(files))
    }

    fn listed(&self) -> Result<(), CopyError> {
        self.say(Said::Listed)
    }

    fn problem(&self, problem: FileProblem) -> Result<(), CopyError> {
        self.say(Said::Problem(problem))
    }

    fn left_out(&self, names: u64) -> Result<(), CopyError> {
        self.say(Said::LeftOut(names))
    }

    fn note(&self, note: Note) -> Result<(), CopyError> {
        self.say(Said::Note(note))
    }

    fn ended(&self, ends: Vec<OrderEnd>) -> Result<(), CopyError> {
        self.say(Said::Ended(ends))
    }

    fn digests(&self, digests: Vec<Digest>) -> Result<(), CopyError> {
        self.say(Said::Digests(digests))
    }

    fn delivered(&self, delivery: Delivery<B>) -> Result<(), CopyError> {
        self.say(Said::Delivered(delivery))
    }
}
