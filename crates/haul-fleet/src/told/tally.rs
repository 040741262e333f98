//! What a job tells, kept until somebody shows it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::look::Said;
use crate::clock::now;
use crate::observe::{JobEvent, JobObserver, Snapshot};
use crate::start::AbsentError;

/// What waits to be shown at most: ten thousand small files a tick are more than anybody reads.
const MAX_SAID: usize = 10_000;

/// Keeps what a job tells until it is shown. `F`: what a program says of a server that does not come.
#[derive(Debug)]
pub struct JobTally<F = ()> {
    /// Whether finished files and orders are wanted.
    names: bool,
    /// When the command began.
    begun: Instant,
    inner: Mutex<Inner<F>>,
}

#[derive(Debug)]
struct Inner<F> {
    latest: Snapshot,
    said: VecDeque<(Duration, Said<F>)>,
}

impl<F> JobTally<F> {
    /// `names`: whether finished files and orders are wanted.
    pub fn new(names: bool) -> Self {
        Self { names, begun: now(), inner: Mutex::new(Inner { latest: Snapshot::default(), said: VecDeque::new() }) }
    }

    /// How far the job was when it last said.
    pub fn latest(&self) -> Snapshot {
        self.lock().latest.clone()
    }

    /// Since the command began.
    pub fn elapsed(&self) -> Duration {
        now() - self.begun
    }

    /// A server that has not come up. It was told of to people as the failure that it is.
    pub fn absent(&self, member: &str, why: &AbsentError) {
        self.say(Said::Absent { member: member.to_owned(), why: why.to_string(), untold: None });
    }

    /// A server that does not come up, of which people are still to be told.
    pub fn left_out(&self, member: &str, why: String, untold: F) {
        self.say(Said::Absent { member: member.to_owned(), why, untold: Some(untold) });
    }

    fn say(&self, said: Said<F>) {
        let at = self.elapsed();
        let mut inner = self.lock();
        // What is wrong is never left out.
        if inner.said.len() < MAX_SAID || matches!(said, Said::Problem(_) | Said::Down { .. } | Said::Absent { .. }) {
            inner.said.push_back((at, said));
        }
    }

    /// What was told since the last call, and when.
    pub fn take_said(&self) -> VecDeque<(Duration, Said<F>)> {
        std::mem::take(&mut self.lock().said)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<F>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Send> JobObserver for JobTally<F> {
    fn event(&self, event: &JobEvent<'_>) {
        let said = match event {
            JobEvent::Progress(snapshot) => {
                self.lock().latest = (*snapshot).clone();
                return;
            }
            JobEvent::Up { member, rtt } => Said::Up { member: (*member).to_owned(), rtt: *rtt },
            JobEvent::Down { member, why } => Said::Down { member: (*member).to_owned(), why: (*why).to_owned() },
            JobEvent::Listed { member, files, bytes } => {
                Said::Listed { member: (*member).to_owned(), files: *files, bytes: *bytes }
            }
            JobEvent::Ordered { member, path, range, why } if self.names => {
                Said::Ordered { member: (*member).to_owned(), path: path.to_path_buf(), range: range.clone(), why: *why }
            }
            JobEvent::FileFinished { member, path, size } if self.names => {
                Said::File { member: member.map(str::to_owned), path: path.to_path_buf(), size: *size }
            }
            JobEvent::Problem(problem) => Said::Problem((*problem).clone()),
            JobEvent::Note { member, note } => Said::Note { member: member.map(str::to_owned), note: (*note).clone() },
            _ => return,
        };
        self.say(said);
    }
}
