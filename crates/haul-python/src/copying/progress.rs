//! How a copy goes: counts that its threads write and Python reads.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haul_copy::{CopyWatch, Counts, NotCopied, PathProbe, PathView, Tally};
use haul_files::{Event, Observer, Would};
use haul_peer::Again;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::records::Records;

/// Of what a dry run finds, so much is kept; the rest is counted.
const MAX_WOULD: usize = 100_000;

/// The counts of one call.
pub struct Progress {
    tally: Tally,
    path: Mutex<Option<PathProbe>>,
    records: Records,
    would: Mutex<(Vec<Would>, u64)>,
}

/// One look.
pub struct Look {
    counts: Counts,
    current: Option<Vec<u8>>,
    path: Option<PathView>,
}

impl Progress {
    /// Nothing has happened.
    pub fn new(records: Records) -> Self {
        Self { tally: Tally::new(true), path: Mutex::default(), records, would: Mutex::default() }
    }

    /// What is kept of the copy besides.
    pub const fn records(&self) -> &Records {
        &self.records
    }

    /// What a dry run has found: the first of it, and how much it is.
    pub fn take_would(&self) -> (Vec<Would>, u64) {
        std::mem::take(&mut *self.would.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How it goes.
    pub fn look(&self) -> Look {
        let current = self.tally.active().map(|(file, _)| file.path.as_os_str().as_encoded_bytes().to_vec());
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        Look { counts: self.tally.counts(), current, path: path.as_ref().map(|path| path()) }
    }

    /// One copy is over; what follows comes on top.
    pub fn next_copy(&self) {
        self.tally.next_copy();
    }
}

impl Observer for Progress {
    fn event(&self, event: Event<'_>) {
        self.records.event(&event);
        if let Event::Would(would) = event {
            let mut found = self.would.lock().unwrap_or_else(PoisonError::into_inner);
            found.1 += 1;
            if found.0.len() < MAX_WOULD {
                found.0.push(would.clone());
            }
        }
        self.tally.event(event);
        self.tally.take_finished();
        for problem in self.tally.take_problems() {
            tracing::warn!("{problem}");
        }
        for note in self.tally.take_notes() {
            tracing::info!("{note}");
        }
    }

    fn wants_files(&self) -> bool {
        true
    }

    fn wants_content(&self) -> bool {
        self.records.wants_content()
    }
}

impl CopyWatch for Progress {
    fn connected(&self, path: PathProbe) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
    }

    fn retries(&self, error: &NotCopied, wait: Duration) {
        tracing::warn!("{error}: trying again in {} s", wait.as_secs());
        self.tally.over_again();
        // The next try finds all of it again.
        self.take_would();
    }

    fn again(&self, again: &Again<'_>) {
        tracing::warn!("{again}");
        self.tally.over_again();
        self.take_would();
    }
}

impl Look {
    /// For Python.
    pub fn told<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(py);
        let counts = self.counts;
        told.set_item("files", counts.present_files())?;
        told.set_item("bytes", counts.present().as_u64())?;
        told.set_item("arrived", counts.arrived.as_u64())?;
        told.set_item("total_files", counts.found_files)?;
        told.set_item("total_bytes", counts.found.as_u64())?;
        told.set_item("complete", counts.complete)?;
        told.set_item("problems", counts.problems)?;
        told.set_item("current", self.current.as_deref())?;
        let path = self.path.unwrap_or_default();
        told.set_item("rtt", path.rtt_us as f64 / 1e6)?;
        told.set_item("loss", path.sender.map(|sender| sender.loss))?;
        told.set_item("silence", path.silence.as_secs_f64())?;
        Ok(told)
    }
}
