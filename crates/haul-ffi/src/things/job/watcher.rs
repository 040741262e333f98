//! What the application hears of a copy: counts, a few times a second, and each file that was not copied.

use std::ffi::{CString, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul_copy::CopyWatch;
use haul_files::{Cancel, Change, Event, FileProblem, Observer, Would};
use haul_fleet::{JobEvent, JobObserver, MemberState, MemberView, Snapshot};

use super::counts::{HaulCopyProgress, HaulFleetServer, ProblemFn, ServerFn, TellFn, WouldFn};
use super::inside::Hearing;
use crate::pointers::Given;
use crate::waiting::now;

/// Between two calls.
const TELL_EVERY: Duration = Duration::from_millis(100);

pub struct Watcher {
    progress: Option<TellFn>,
    problem: Option<ProblemFn>,
    server: Option<ServerFn>,
    would: Option<WouldFn>,
    context: Given,
    cancel: Cancel,
    /// Held while the application is called: one call at a time.
    counts: Mutex<Counts>,
    hearing: Arc<Hearing>,
}

struct Counts {
    so_far: HaulCopyProgress,
    told: Option<Instant>,
}

impl Watcher {
    pub fn new(progress: Option<TellFn>, problem: Option<ProblemFn>, context: Given, cancel: Cancel) -> Self {
        let so_far = HaulCopyProgress { size: size_of::<HaulCopyProgress>() as u64, ..HaulCopyProgress::default() };
        let counts = Mutex::new(Counts { so_far, told: None });
        Self { progress, problem, server: None, would: None, context, cancel, counts, hearing: Arc::default() }
    }

    /// Whether the application hears anything.
    pub fn hearing(&self) -> Arc<Hearing> {
        Arc::clone(&self.hearing)
    }

    /// The same with a function that hears of the servers of a fleet.
    pub fn of_servers(self, server: Option<ServerFn>) -> Self {
        Self { server, ..self }
    }

    /// The same with a function that hears what a dry run would do.
    pub fn of_dry_runs(self, would: Option<WouldFn>) -> Self {
        Self { would, ..self }
    }

    /// Tells the last counts.
    pub fn last(&self) {
        self.tell(|_| true);
    }

    /// `count` changes the counts, and says whether they are told whatever the time.
    fn tell(&self, count: impl FnOnce(&mut HaulCopyProgress) -> bool) {
        let mut counts = self.one_at_a_time();
        let now = now();
        let at_once = count(&mut counts.so_far);
        let Some(progress) = self.progress.filter(|_| at_once || counts.told.is_none_or(|told| now - told >= TELL_EVERY)) else {
            return;
        };
        counts.told = Some(now);
        // SAFETY: the application's promise: its function takes its context, and counts for as long as the call.
        let answer = self.hearing.call(|| unsafe { progress(self.context.pointer(), &raw const counts.so_far) });
        if answer.is_some_and(|answer| answer != 0) {
            self.cancel.cancel();
        }
    }

    fn one_at_a_time(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CopyWatch for Watcher {}

impl Observer for Watcher {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Found { files, bytes, complete } => self.tell(|counts| {
                (counts.files_found, counts.bytes_found, counts.complete) = (files, bytes.as_u64(), complete.into());
                false
            }),
            Event::Arrived { files, bytes } => self.tell(|counts| {
                (counts.files_arrived, counts.bytes_arrived) = (files, bytes.as_u64());
                false
            }),
            Event::Kept { files, bytes } => self.tell(|counts| {
                (counts.files_kept, counts.bytes_kept) = (files, bytes.as_u64());
                false
            }),
            Event::Problem(problem) => self.tell_problem(problem),
            Event::Would(would) => self.tell_would(would),
            _ => {}
        }
    }
}

impl JobObserver for Watcher {
    fn event(&self, event: &JobEvent<'_>) {
        match event {
            JobEvent::Found { complete, .. } => self.tell(|counts| {
                counts.complete = (*complete).into();
                false
            }),
            JobEvent::Progress(snapshot) => {
                self.tell(|counts| {
                    count(snapshot, counts);
                    false
                });
                snapshot.members.iter().for_each(|view| self.tell_server(view));
            }
            JobEvent::Problem(problem) => self.tell_problem(problem),
            _ => {}
        }
    }
}

fn count(snapshot: &Snapshot, counts: &mut HaulCopyProgress) {
    (counts.files_found, counts.bytes_found) = (snapshot.files, snapshot.bytes.as_u64());
    counts.bytes_kept = snapshot.bytes_kept.as_u64();
    counts.files_arrived = snapshot.files_done;
    counts.bytes_arrived = snapshot.bytes_done.as_u64().saturating_sub(counts.bytes_kept);
}

impl Watcher {
    fn tell_problem(&self, problem: &FileProblem) {
        self.tell(|counts| {
            counts.problems += 1;
            false
        });
        let message = CString::new(problem.to_string().replace('\0', "\\0"));
        if let (Some(tell), Ok(message)) = (self.problem, message) {
            let _one_at_a_time = self.one_at_a_time();
            // SAFETY: the application's promise: its function takes its context and a text.
            self.hearing.call(|| unsafe { tell(self.context.pointer(), message.as_ptr()) });
        }
    }

    fn tell_would(&self, Would { path, change }: &Would) {
        let (what, bytes): (c_int, u64) = match change {
            Change::New(bytes) => (1, *bytes),
            Change::Replaced(bytes) => (2, *bytes),
            Change::Directory => (3, 0),
            Change::Link => (4, 0),
            Change::Removed => (5, 0),
            // Nothing here asks for attributes to be kept.
            Change::Attributes => return,
        };
        if let (Some(tell), Ok(path)) = (self.would, CString::new(path.0.clone())) {
            let _one_at_a_time = self.one_at_a_time();
            // SAFETY: the application's promise: its function takes its context and a text.
            self.hearing.call(|| unsafe { tell(self.context.pointer(), what, path.as_ptr(), bytes) });
        }
    }

    fn tell_server(&self, view: &MemberView) {
        let name = CString::new(view.name.replace('\0', "\\0"));
        let (Some(tell), Ok(name)) = (self.server, name) else { return };
        let told = HaulFleetServer {
            size: size_of::<HaulFleetServer>() as u64,
            name: name.as_ptr(),
            state: match view.state {
                MemberState::Starting => 0,
                MemberState::Listing => 1,
                MemberState::Busy => 2,
                MemberState::Idle => 3,
                MemberState::Stalled => 4,
                MemberState::Done => 5,
                MemberState::Down => 6,
            },
            files: view.files,
            bytes: view.delivered.as_u64(),
            rate_bps: view.rate.as_bps(),
            rtt_us: view.path.rtt_us,
        };
        let _one_at_a_time = self.one_at_a_time();
        // SAFETY: the application's promise: its function takes its context, and a structure for as long as the call.
        self.hearing.call(|| unsafe { tell(self.context.pointer(), &raw const told) });
    }
}
