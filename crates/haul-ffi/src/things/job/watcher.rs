//! What the application hears of a copy: counts, a few times a second, and each file that was not copied.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_copy::CopyWatch;
use haul_files::{Cancel, Event, Observer};

use super::counts::{HaulCopyProgress, ProblemFn, TellFn};
use crate::pointers::Given;
use crate::waiting::now;

/// Between two calls.
const TELL_EVERY: Duration = Duration::from_millis(100);

pub struct Watcher {
    progress: Option<TellFn>,
    problem: Option<ProblemFn>,
    context: Given,
    cancel: Cancel,
    /// Held while the application is called: one call at a time.
    counts: Mutex<Counts>,
}

struct Counts {
    so_far: HaulCopyProgress,
    told: Option<Instant>,
}

impl Watcher {
    pub fn new(progress: Option<TellFn>, problem: Option<ProblemFn>, context: Given, cancel: Cancel) -> Self {
        let so_far = HaulCopyProgress { size: size_of::<HaulCopyProgress>() as u64, ..HaulCopyProgress::default() };
        Self { progress, problem, context, cancel, counts: Mutex::new(Counts { so_far, told: None }) }
    }

    /// Tells the last counts.
    pub fn last(&self) {
        self.tell(|_| true);
    }

    /// `count` changes the counts, and says whether they are told whatever the time.
    fn tell(&self, count: impl FnOnce(&mut HaulCopyProgress) -> bool) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        let at_once = count(&mut counts.so_far);
        let Some(progress) = self.progress.filter(|_| at_once || counts.told.is_none_or(|told| now - told >= TELL_EVERY)) else {
            return;
        };
        counts.told = Some(now);
        // SAFETY: the application's promise: its function takes its context, and counts for as long as the call.
        if unsafe { progress(self.context.pointer(), &raw const counts.so_far) } != 0 {
            self.cancel.cancel();
        }
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
            Event::Problem(problem) => {
                self.tell(|counts| {
                    counts.problems += 1;
                    false
                });
                let message = CString::new(problem.to_string().replace('\0', "\\0"));
                if let (Some(tell), Ok(message)) = (self.problem, message) {
                    let _one_at_a_time = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                    // SAFETY: the application's promise: its function takes its context and a text.
                    unsafe { tell(self.context.pointer(), message.as_ptr()) };
                }
            }
            _ => {}
        }
    }
}
