//! `haul.copy`: one call of `haul cp`, as a job in a thread of its own that Python looks at.
//!
//! ```text
//!   operands -> hosts and jobs (operands.rs) -> for each: a Copier of haul-copy -> totals (outcome.rs)
//!   how: choices.rs                                observer: counts that Python looks at (progress.rs), manifest and log (records.rs)
//! ```

pub mod choices;
mod operands;
pub mod outcome;
mod progress;
mod records;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul::Fingerprint;
use haul_copy::{Copied, Copier, Job, NotCopied, PROTOCOL};
use haul_files::CopyError;
use haul_peer::Host;
use haul_units::Cancel;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::operands::{Operands, Source, lossy};
use self::outcome::Outcome;
use self::progress::Progress;
use self::records::Records;
use crate::errors::{Failure, OrRaise};
use crate::reach::{self, LastWords};
use crate::settings::{self, given};

/// Starts a copy; `kwargs` are what `haul.copy` was called with.
#[pyfunction]
pub fn copy(py: Python<'_>, sources: Vec<Source>, target: Vec<u8>, kwargs: &Bound<'_, PyDict>) -> PyResult<Copying> {
    let (copier, key, said) = settings(kwargs)?;
    let names: Vec<String> = sources.iter().map(ToString::to_string).chain([lossy(&target)]).collect();
    let jobs = Operands::new(sources, &target).or_raise(py)?.jobs(kwargs, key)?;
    let progress = Progress::new(Records::open(kwargs, &names)?);
    let shared = Arc::new(Shared { progress, ended: Mutex::new(None), over: Condvar::new() });
    let cancel = copier.connector.cancel.clone();
    let done = Arc::clone(&shared);
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(copier, &jobs, &done.progress)));
        let result = result.unwrap_or_else(|_| Err(Failure::new("LocalError", "a thread of the copy has failed")));
        let result = result.map_err(|failure| said.explain(failure));
        *done.lock() = Some(done.progress.records().close(result).map(Arc::new));
        done.over.notify_all();
    };
    thread::Builder::new().name("haul-copy".into()).spawn(run)?;
    Ok(Copying { shared, cancel })
}

/// A copy that was started.
#[pyclass(frozen, module = "haul._haul")]
pub struct Copying {
    shared: Arc<Shared>,
    cancel: Cancel,
}

struct Shared {
    progress: Progress,
    ended: Mutex<Option<Result<Arc<Outcome>, Failure>>>,
    over: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Result<Arc<Outcome>, Failure>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Copying {
    /// Waits for its end, for a while; true when it is over. A signal's handler may raise an exception here.
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::ZERO);
        let is_over = py.detach(|| {
            let ended = self.shared.lock();
            let wait = self.shared.over.wait_timeout_while(ended, timeout, |ended| ended.is_none());
            wait.unwrap_or_else(PoisonError::into_inner).0.is_some()
        });
        py.check_signals()?;
        Ok(is_over)
    }

    /// Ends it soon, in a state that the next one goes on from.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.cancel.cancel());
    }

    /// How it goes.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.shared.progress.look().told(py)
    }

    /// What was copied, or why it failed; once it is over.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Not under its lock: making an exception runs Python, and another thread may wait for the lock.
        let ended = py.detach(|| self.shared.lock().clone());
        ended.unwrap_or_else(|| Err(Failure::usage("the copy is not over"))).or_raise(py)?.told(py)
    }
}

/// How to copy, apart from what; a daemon's key, if one was given; and what ssh says.
fn settings(kwargs: &Bound<'_, PyDict>) -> PyResult<(Copier, Option<Fingerprint>, LastWords)> {
    let (connector, key, said) = reach::connector(kwargs, PROTOCOL)?;
    let limit = connector.transport.rate_limit;
    let reconnect = kwargs.get_item("reconnect")?.map_or(Ok(Duration::ZERO), |value| settings::seconds("reconnect", &value))?;
    let retries = given(kwargs, "retries")?.unwrap_or(0);
    let packs = choices::packs(kwargs)?;
    Ok((Copier { connector, limit, reconnect, retries, packs, hear_ssh: false, traces: false }, key, said))
}

/// One copy a host, in their order; the first that fails ends it.
fn run(mut copier: Copier, jobs: &[(Host, Job)], progress: &Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (index, (host, job)) in jobs.iter().enumerate() {
        // Not after the last: its counts stay what Python sees.
        if index > 0 {
            progress.next_copy();
        }
        let Copied { report, path, verdict, .. } = copier.copy(host, job, progress).map_err(|error| explained(error, host))?;
        outcome.add(&report, verdict, path);
    }
    outcome.would(progress.take_would());
    Ok(outcome)
}

fn explained(error: NotCopied, host: &Host) -> Failure {
    match error {
        NotCopied::Reach(error) | NotCopied::Connection(error) => error.into(),
        NotCopied::Copy(CopyError::Cancelled) => CopyError::Cancelled.into(),
        NotCopied::Copy(error) => Failure::from(error).about(host),
        NotCopied::Silence(_) | NotCopied::SshEnded => Failure::new("ConnectionLost", format_args!("{host}: {error}"))
            .hint("the same call goes on from where this one stopped"),
    }
}
