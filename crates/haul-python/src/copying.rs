//! `haul.copy`: one call of `haul cp`, as a job in a thread of its own that Python looks at.
//!
//! ```text
//!   operands -> hosts and jobs (operands.rs) -> for each: connect, run the engine, connect again if a daemon was restarted -> totals (outcome.rs)
//!                                                  observer: counts that Python looks at (tally.rs)
//! ```

mod operands;
mod outcome;
mod tally;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul::{ControllerChoice, Fingerprint};
use haul_copy::{ClientSession, Conditions, Job, PROTOCOL, ProcessorWatch, verdict};
use haul_files::{CopyError, Report};
use haul_peer::{Connected, Connector, Host, Memory, Moment, StateDir, Way};
use haul_units::{BitRate, Cancel};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::operands::{Operands, Source};
use self::outcome::Outcome;
use self::tally::Tally;
use crate::errors::{Failure, OrRaise};
use crate::reach;
use crate::settings;
use crate::waiting::now;

/// How often a copy looks whether ssh, which its connection depends on, still runs.
const LOOK: Duration = Duration::from_millis(200);
/// The far side's process may end a little before the copy here does: that long it does not matter.
const ORPHANED: Duration = Duration::from_secs(3);

/// Starts a copy; `words` are what `haul.copy` was called with.
#[pyfunction]
pub fn copy(py: Python<'_>, sources: Vec<Source>, target: Vec<u8>, words: &Bound<'_, PyDict>) -> PyResult<Copying> {
    let settings = Settings::of(words)?;
    let jobs = Operands::new(sources, &target).or_raise(py)?.jobs(words, settings.key)?;
    let shared = Arc::new(Shared { tally: Tally::default(), ended: Mutex::new(None), over: Condvar::new() });
    let cancel = settings.connector.cancel.clone();
    let done = Arc::clone(&shared);
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(settings, &jobs, &done.tally)));
        let result = result.unwrap_or_else(|_| Err(Failure::new("LocalError", "a thread of the copy has failed")));
        *done.lock() = Some(result);
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
    tally: Tally,
    ended: Mutex<Option<Result<Outcome, Failure>>>,
    over: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Result<Outcome, Failure>>> {
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
        self.shared.tally.look().told(py)
    }

    /// What was copied, or why it failed; once it is over.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &*self.shared.lock() {
            Some(Ok(outcome)) => outcome.told(py),
            Some(Err(failure)) => Err(failure.clone().into_py_err(py)),
            None => Err(Failure::usage("the copy is not over").into_py_err(py)),
        }
    }
}

/// How to copy, apart from what.
struct Settings {
    connector: Connector,
    limit: Option<BitRate>,
    reconnect: Duration,
    key: Option<Fingerprint>,
}

impl Settings {
    fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let (connector, key) = reach::connector(words, PROTOCOL)?;
        let limit = connector.transport.rate_limit;
        let reconnect = words.get_item("reconnect")?.map_or(Ok(Duration::ZERO), |value| settings::seconds(&value))?;
        Ok(Self { connector, limit, reconnect, key })
    }
}

/// One copy a host, in their order; the first that fails ends it.
fn run(mut settings: Settings, jobs: &[(Host, Job)], tally: &Tally) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    for (index, (host, job)) in jobs.iter().enumerate() {
        if index > 0 {
            tally.next_copy();
        }
        one(&mut settings, host, job, tally, &mut outcome)?;
    }
    Ok(outcome)
}

/// A copy, over as many connections as it takes.
fn one(settings: &mut Settings, host: &Host, job: &Job, tally: &Tally, outcome: &mut Outcome) -> Result<(), Failure> {
    let memory = memory(settings, host, job);
    settings.connector.transport.remembered = memory.as_ref().and_then(|(memory, name, way)| memory.look_up(name, *way));
    let begun = now();
    let mut connected = settings.connector.connect(host)?;
    let login = now() - begun;
    loop {
        let connection = connected.connection.clone();
        let error = match over(settings, connected, host, job, tally, outcome, login) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let deadline = now() + settings.reconnect.saturating_sub(connection.stats().silence);
        match host {
            Host::Daemon(daemon) if error.can_go_on && now() < deadline && !settings.connector.cancel.is_cancelled() => {
                tracing::warn!("{host}: the daemon was stopped or restarted: connecting again");
                connected = settings.connector.connect_by(daemon, deadline)?;
                tally.next_copy();
            }
            _ => return Err(error.failure),
        }
    }
}

/// Why a connection did not see the copy's end.
struct Broken {
    failure: Failure,
    can_go_on: bool,
}

/// A copy over one connection.
fn over(
    settings: &Settings,
    connected: Connected,
    host: &Host,
    job: &Job,
    tally: &Tally,
    outcome: &mut Outcome,
    login: Duration,
) -> Result<(), Broken> {
    let session = ClientSession::new(connected.connection.clone(), job);
    let path = session.path();
    tally.watch(Box::new(session.path()));
    let orphaned = Cancel::new();
    let all = &settings.connector.cancel;
    let inner = orphaned.clone();
    let _hook = all.on_cancel(move || inner.cancel());
    let processor = ProcessorWatch::start();
    let lifeline = connected.lifeline();
    let result = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut held = now();
            while !orphaned.is_cancelled() {
                thread::park_timeout(LOOK);
                if lifeline.holds() {
                    held = now();
                } else if now() - held > ORPHANED {
                    orphaned.cancel();
                }
                if tally.is_over() {
                    return;
                }
            }
        });
        tally.begin();
        let result = session.run(job, settings.limit, tally, &orphaned);
        tally.end();
        watcher.thread().unpark();
        result
    });
    let (view, own_busiest) = (path(), processor.busiest());
    if let (Some((memory, name, way)), Some(learned)) = (memory(settings, host, job), view.learned) {
        memory.keep(&name, way, learned);
    }
    let report: Report = match result {
        Ok(report) => report,
        Err(error) => {
            let can_go_on = job.can_go_on(&error, &connected.connection);
            let failure = match connected.cause() {
                Some(cause) => cause.into(),
                None if matches!(error, CopyError::Cancelled) && !all.is_cancelled() => {
                    Failure::new("ConnectionLost", format_args!("{host}: ssh ended in the middle of the copy"))
                        .hint("the same call goes on from where this one stopped")
                }
                None if matches!(error, CopyError::Cancelled) => error.into(),
                None => Failure::from(error).about(host),
            };
            return Err(Broken { failure, can_go_on });
        }
    };
    let (sender_busiest, receiver_busiest) = match job {
        Job::Push(_) => (own_busiest, view.server_busiest),
        Job::Pull(_) => (view.server_busiest, own_busiest),
    };
    let limit = settings.limit;
    let conditions = Conditions { report: &report, path: view.sender.as_ref(), limit, sender_busiest, receiver_busiest, login };
    outcome.add(&report, verdict(&conditions), view.sender);
    connected.part(false);
    Ok(())
}

/// Where a start that can use it finds what earlier copies learned.
fn memory(settings: &Settings, host: &Host, job: &Job) -> Option<(Memory, String, Way)> {
    let is_wanted = settings.connector.transport.controller == ControllerChoice::Quickstart;
    let state = is_wanted.then(|| StateDir::find(settings.connector.state.as_deref()).ok())??;
    let way = match job {
        Job::Push(_) => Way::To,
        Job::Pull(_) => Way::From,
    };
    // Without a directory the copy does without.
    let _ = state.create();
    Some((Memory::new(&state, Moment::now().since(Moment::of_unix_seconds(0)).as_secs()), host.to_string(), way))
}
