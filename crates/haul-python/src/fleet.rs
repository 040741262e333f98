//! `haul.fleet`: a session with many servers, and its jobs as things that Python looks at.
//!
//! ```text
//!   start_fleet, attach_fleet -> Fleet (haul_fleet::Session) -> download, upload -> FleetJob: a thread, and the last Snapshot that it has told
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_copy::{PROTOCOL, StatusReport};
use haul_fleet::{
    Absent, Begin, FleetName, GetError, GetJob, HostSpec, HostsError, JobEvent, JobObserver, JoinError, MemberState, MemberView,
    PutError, PutJob, ReplicasBy, Session, SessionError, SessionReport, Setup, Snapshot, StartError, StartSpec,
};
use haul_peer::{Connector, Tell, chain};
use haul_units::Cancel;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::copying::choices::{filter, options};
use crate::copying::outcome::Outcome;
use crate::errors::{Failure, OrRaise, class_of};
use crate::reach::{self, Logged};
use crate::settings::{self, given};
use crate::waiting::in_thread;

/// A name, and why it is not there.
type Missing = (String, String);

/// Starts a fleet of hosts in one of haul's ways; and who has not come, and why.
#[pyfunction]
pub fn start_fleet(py: Python<'_>, hosts: Vec<String>, kwargs: &Bound<'_, PyDict>) -> PyResult<(Fleet, Vec<Missing>)> {
    let (Connector { ssh, udp_port, state, transport, cancel, tell, .. }, _, _) = reach::connector(kwargs, PROTOCOL)?;
    let hosts = HostSpec::lists(&hosts).or_raise(py)?;
    let way: String = given(kwargs, "way")?.unwrap_or_else(|| "ssh-direct".to_owned());
    let way = way.parse().map_err(|error| Failure::usage(format_args!("{way}: {error}"))).or_raise(py)?;
    let timeout = kwargs.get_item("timeout")?.filter(|value| !value.is_none());
    let timeout = timeout.map_or(Ok(StartSpec::new(Vec::new()).timeout), |value| settings::seconds("timeout", &value))?;
    let dial_out = given(kwargs, "dial_out")?.unwrap_or(false);
    let mut setup = Setup::from(StartSpec { way, timeout, ssh, udp_port, state, transport, dial_out, ..StartSpec::new(hosts) });
    if let Some(dir) = given::<PathBuf>(kwargs, "logs")? {
        setup.set_dir(dir);
    }
    let stop = cancel.clone();
    let started = in_thread(py, &cancel, move || setup.start(&tell, &stop))?;
    let (session, absent) = started.or_raise(py)?;
    Ok((Fleet { session }, missing(&absent)))
}

/// Joins a fleet that another process of this user keeps.
#[pyfunction]
pub fn attach_fleet(py: Python<'_>, name: &str) -> PyResult<Fleet> {
    let name = FleetName::new(name).or_raise(py)?;
    let session = py.detach(|| Session::attach(&name, &(Arc::new(Logged::default()) as Arc<dyn Tell>))).or_raise(py)?;
    Ok(Fleet { session })
}

/// Servers that are kept for jobs.
#[pyclass(frozen, module = "haul._haul")]
pub struct Fleet {
    session: Session,
}

#[pymethods]
impl Fleet {
    /// Each job writes its log into a new directory in this one; none, if there is none.
    fn set_dir(&self, py: Python<'_>, dir: Option<PathBuf>) {
        py.detach(|| self.session.set_dir(dir));
    }

    /// Begins to fetch.
    fn download(&self, sources: Vec<PathBuf>, destination: PathBuf, kwargs: &Bound<'_, PyDict>) -> PyResult<FleetJob> {
        let py = kwargs.py();
        let by: String = given(kwargs, "replicas_by")?.unwrap_or_else(|| "time".to_owned());
        let job = GetJob {
            options: options(kwargs)?,
            filter: filter(kwargs)?,
            limit: limit(kwargs)?.into(),
            begin: if given(kwargs, "wait_for_all")?.unwrap_or(false) { Begin::WhenAllAreHeard } else { Begin::AtOnce },
            replicas_by: match by.as_str() {
                "time" => ReplicasBy::Time,
                "hash" => ReplicasBy::Hash,
                other => return Err(Failure::usage(format_args!("{other}: time and hash are possible")).into_py_err(py)),
            },
            ..GetJob::new(sources, destination)
        };
        let session = self.session.clone();
        FleetJob::start(move |watcher, cancel| session.download(&job, watcher, cancel))
    }

    /// Begins to send.
    fn upload(&self, sources: Vec<PathBuf>, destination: PathBuf, kwargs: &Bound<'_, PyDict>) -> PyResult<FleetJob> {
        let job = PutJob {
            options: options(kwargs)?,
            filter: filter(kwargs)?,
            limit: limit(kwargs)?.into(),
            replicas: given(kwargs, "replicas")?.unwrap_or(1),
            ..PutJob::new(sources, destination)
        };
        let session = self.session.clone();
        FleetJob::start(move |watcher, cancel| session.upload(&job, watcher, cancel))
    }

    /// How the servers are, as a dictionary.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (session, cancel) = (self.session.clone(), Cancel::new());
        let stop = cancel.clone();
        let status = in_thread(py, &cancel, move || session.status(&stop))?.or_raise(py)?;
        let told = PyDict::new(py);
        told.set_item("up", status.up.as_secs_f64())?;
        told.set_item("pid", status.pid)?;
        told.set_item("absent", missing(&status.absent))?;
        let members = PyList::empty(py);
        for member in status.members {
            let server = PyDict::new(py);
            server.set_item("name", member.name)?;
            server.set_item("rtt", member.rtt.as_secs_f64())?;
            match member.report {
                Ok(report) => tell_server(&server, &report)?,
                Err(error) => server.set_item("error", chain(&error))?,
            }
            members.append(server)?;
        }
        told.set_item("members", members)?;
        Ok(told)
    }

    /// Ends the servers that were started for it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let (session, cancel) = (self.session.clone(), Cancel::new());
        let stop = cancel.clone();
        in_thread(py, &cancel, move || session.stop(&stop))?.or_raise(py)
    }
}

fn tell_server(told: &Bound<'_, PyDict>, report: &StatusReport) -> PyResult<()> {
    told.set_item("host", report.host.as_str())?;
    told.set_item("version", report.version.as_str())?;
    told.set_item("processors", report.machine.processors)?;
    told.set_item("load", report.machine.load1)?;
    told.set_item("memory_total", report.memory_total_bytes)?;
    told.set_item("memory_available", report.memory_available_bytes)?;
    let place = report.places.first();
    told.set_item("free_bytes", place.map(|place| place.free_bytes))
}

fn limit(kwargs: &Bound<'_, PyDict>) -> PyResult<Option<haul::BitRate>> {
    kwargs.get_item("limit")?.filter(|value| !value.is_none()).map(|value| settings::rate("limit", &value)).transpose()
}

fn missing(absent: &[Absent]) -> Vec<Missing> {
    absent.iter().map(|absent| (absent.name.clone(), chain(&absent.why))).collect()
}

/// A job with all servers, under way or over.
#[pyclass(frozen, module = "haul._haul")]
pub struct FleetJob {
    shared: Arc<Shared>,
    cancel: Cancel,
}

#[derive(Default)]
struct Shared {
    last: Mutex<(Snapshot, u64)>,
    ended: Mutex<Option<Result<Arc<SessionReport>, Failure>>>,
    over: Condvar,
}

/// Keeps what was told last: Python looks when it likes.
struct Watcher(Arc<Shared>);

impl JobObserver for Watcher {
    fn event(&self, event: &JobEvent<'_>) {
        let mut last = lock(&self.0.last);
        match event {
            JobEvent::Progress(snapshot) => last.0 = (*snapshot).clone(),
            JobEvent::Problem(_) => last.1 += 1,
            _ => {}
        }
    }
}

impl FleetJob {
    fn start(work: impl FnOnce(&Watcher, &Cancel) -> Result<SessionReport, SessionError> + Send + 'static) -> PyResult<Self> {
        let (shared, cancel) = (Arc::<Shared>::default(), Cancel::new());
        let (done, stop) = (Arc::clone(&shared), cancel.clone());
        let run = move || {
            let watcher = Watcher(Arc::clone(&done));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&watcher, &stop)));
            let result = result.unwrap_or(Err(SessionError::Failed));
            *lock(&done.ended) = Some(result.map(Arc::new).map_err(Failure::from));
            done.over.notify_all();
        };
        thread::Builder::new().name("haul-fleet".into()).spawn(run)?;
        Ok(Self { shared, cancel })
    }
}

#[pymethods]
impl FleetJob {
    /// Waits for its end, for a while; true when it is over. A signal's handler may raise an exception here.
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::ZERO);
        let is_over = py.detach(|| {
            let wait = self.shared.over.wait_timeout_while(lock(&self.shared.ended), timeout, |ended| ended.is_none());
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
        let (snapshot, problems) = py.detach(|| lock(&self.shared.last).clone());
        let told = PyDict::new(py);
        told.set_item("seconds", snapshot.elapsed.as_secs_f64())?;
        told.set_item("files", snapshot.files_done)?;
        told.set_item("bytes", snapshot.bytes_done.as_u64())?;
        told.set_item("total_files", snapshot.files)?;
        told.set_item("total_bytes", snapshot.bytes.as_u64())?;
        told.set_item("kept_bytes", snapshot.bytes_kept.as_u64())?;
        told.set_item("problems", problems)?;
        let servers: PyResult<Vec<_>> = snapshot.members.iter().map(|view| told_view(py, view)).collect();
        told.set_item("servers", servers?)?;
        Ok(told)
    }

    /// What it did, or why it failed; once it is over.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Not under its lock: making an exception runs Python, and another thread may wait for the lock.
        let ended = py.detach(|| lock(&self.shared.ended).clone());
        let report = ended.unwrap_or_else(|| Err(Failure::usage("the job is not over"))).or_raise(py)?;
        let mut outcome = Outcome::default();
        outcome.add(&report.job.files, String::new(), None);
        let told = PyDict::new(py);
        told.set_item("files", outcome.told(py)?)?;
        told.set_item("seconds", report.job.elapsed.as_secs_f64())?;
        told.set_item("wasted_bytes", report.job.wasted.as_u64())?;
        told.set_item("absent", missing(&report.absent))?;
        let servers = PyList::empty(py);
        for member in &report.job.members {
            let server = PyDict::new(py);
            server.set_item("name", &member.name)?;
            server.set_item("bytes", member.delivered.as_u64())?;
            server.set_item("files", member.files)?;
            server.set_item("busy", member.busy.as_secs_f64())?;
            server.set_item("down", member.down.as_deref())?;
            servers.append(server)?;
        }
        told.set_item("servers", servers)?;
        Ok(told)
    }
}

fn told_view<'py>(py: Python<'py>, view: &MemberView) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("name", &view.name)?;
    told.set_item("state", state_name(view.state))?;
    told.set_item("bytes", view.delivered.as_u64())?;
    told.set_item("files", view.files)?;
    told.set_item("rate", view.rate.as_bps() as f64)?;
    told.set_item("rtt", view.path.rtt_us as f64 / 1e6)?;
    told.set_item("current", view.file.as_deref())?;
    Ok(told)
}

const fn state_name(state: MemberState) -> &'static str {
    match state {
        MemberState::Starting => "starting",
        MemberState::Listing => "listing",
        MemberState::Busy => "busy",
        MemberState::Idle => "idle",
        MemberState::Stalled => "stalled",
        MemberState::Done => "done",
        MemberState::Down => "down",
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<HostsError> for Failure {
    fn from(error: HostsError) -> Self {
        Self::usage(chain(&error)).hint("hosts are written host, me@host:/data, node[01-13] or haul://host/root")
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let class = match &error {
            StartError::Interrupted => "Cancelled",
            StartError::NoHosts => "UsageError",
            _ => "LocalError",
        };
        Self::new(class, chain(&error))
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let class = match &error {
            JoinError::BadName { .. } => "UsageError",
            JoinError::NotUp { .. } => "NotFound",
            JoinError::Interrupted => "Cancelled",
            JoinError::NotOurs { .. } | JoinError::Refused(_) => "Refused",
            JoinError::Empty { gone } => {
                let why: Vec<String> = gone.iter().map(|gone| format!("{}: {}", gone.name, gone.why)).collect();
                return Self::new("Unreachable", format_args!("no server of the fleet is there ({})", why.join("; ")));
            }
            _ => "LocalError",
        };
        Self::new(class, chain(&error))
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let interrupted =
            || Self::new("Cancelled", "interrupted; what has arrived is kept, and the same call goes on from there");
        let class = match error {
            SessionError::Join(error) => return error.into(),
            SessionError::Get(GetError::Cancelled) | SessionError::Put(PutError::Cancelled) => return interrupted(),
            SessionError::Get(GetError::Destination(error)) => return error.into(),
            SessionError::Get(GetError::Conflict { .. }) => "SourceError",
            SessionError::Get(GetError::Unsupported { .. }) => "PeerError",
            SessionError::Get(GetError::AllDown { .. } | GetError::OutOfReach { .. }) => "ConnectionLost",
            SessionError::Put(PutError::Replicas { .. } | PutError::NoSources) => "UsageError",
            SessionError::Put(ref error) => class_of(error.fault()),
            _ => "LocalError",
        };
        Self::new(class, chain(&error))
    }
}
