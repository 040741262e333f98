//! How a copy goes: counts that its threads write and Python reads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use haul_copy::PathView;
use haul_files::{Event, Observer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The counts of one call.
#[derive(Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// Of the copies before this one.
    before: Totals,
    now: Totals,
    current: Option<Vec<u8>>,
    path: Option<Box<dyn Fn() -> PathView + Send>>,
    is_over: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    found_files: u64,
    found: u64,
    arrived_files: u64,
    arrived: u64,
    kept_files: u64,
    kept: u64,
    problems: u64,
    complete: bool,
}

/// One look.
pub struct Look {
    totals: Totals,
    current: Option<Vec<u8>>,
    path: Option<PathView>,
}

impl Tally {
    /// How it goes.
    pub fn look(&self) -> Look {
        let counts = self.lock();
        let (before, now) = (counts.before, counts.now);
        let totals = Totals {
            found_files: before.found_files + now.found_files,
            found: before.found + now.found,
            arrived_files: before.arrived_files + now.arrived_files,
            arrived: before.arrived + now.arrived,
            kept_files: before.kept_files + now.kept_files,
            kept: before.kept + now.kept,
            problems: before.problems + now.problems,
            complete: now.complete,
        };
        Look { totals, current: counts.current.clone(), path: counts.path.as_ref().map(|path| path()) }
    }

    /// Where to ask how the path does.
    pub fn watch(&self, path: Box<dyn Fn() -> PathView + Send>) {
        self.lock().path = Some(path);
    }

    /// A run of the engine begins.
    pub fn begin(&self) {
        self.lock().is_over = false;
    }

    /// It has ended.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Whether it has.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// What follows counts from zero again, and comes on top.
    pub fn next_copy(&self) {
        let counts = &mut *self.lock();
        let now = std::mem::take(&mut counts.now);
        counts.before.problems += now.problems;
        // A copy that goes on over another connection finds everything again, and keeps what has arrived.
        if now.complete && now.arrived_files + now.kept_files >= now.found_files {
            let before = &mut counts.before;
            before.found_files += now.found_files;
            before.found += now.found;
            before.arrived_files += now.arrived_files;
            before.arrived += now.arrived;
            before.kept_files += now.kept_files;
            before.kept += now.kept;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Tally {
    fn event(&self, event: Event<'_>) {
        let counts = &mut *self.lock();
        let now = &mut counts.now;
        match event {
            Event::Found { files, bytes, complete } => {
                (now.found_files, now.found, now.complete) = (files, bytes.as_u64(), complete);
            }
            Event::Arrived { files, bytes } => (now.arrived_files, now.arrived) = (files, bytes.as_u64()),
            Event::Kept { files, bytes } => (now.kept_files, now.kept) = (files, bytes.as_u64()),
            Event::FileStarted { path, .. } => counts.current = Some(path.as_os_str().as_encoded_bytes().to_vec()),
            Event::Problem(problem) => {
                now.problems += 1;
                tracing::warn!("{problem}");
            }
            Event::Note(note) => tracing::info!("{note}"),
            _ => {}
        }
    }

    fn wants_files(&self) -> bool {
        true
    }
}

impl Look {
    /// For Python.
    pub fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(py);
        let totals = self.totals;
        told.set_item("files", totals.arrived_files + totals.kept_files)?;
        told.set_item("bytes", totals.arrived + totals.kept)?;
        told.set_item("arrived", totals.arrived)?;
        told.set_item("total_files", totals.found_files)?;
        told.set_item("total_bytes", totals.found)?;
        told.set_item("complete", totals.complete)?;
        told.set_item("problems", totals.problems)?;
        told.set_item("current", self.current.as_deref())?;
        let path = self.path.unwrap_or_default();
        told.set_item("rtt", path.rtt_us as f64 / 1e6)?;
        told.set_item("loss", path.sender.map(|sender| sender.loss))?;
        told.set_item("silence", path.silence.as_secs_f64())?;
        Ok(told)
    }
}
