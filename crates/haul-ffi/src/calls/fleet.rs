//! Fleets: many servers and one client.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{slice, thread};

use haul::{BitRate, ControllerChoice};
use haul_fleet::{Absent, FleetName, GetJob, HostSpec, PutJob, Session, SessionStatus, Setup, StartSpec};
use haul_peer::{Nobody, Tell, chain};
use haul_units::Cancel;

use super::copy::{FLEET_FLAGS, copy_options, relay};
use crate::failure::{Code, Failure, Outcome, invalid};
use crate::pointers::{self, Given};
use crate::table::{self, Entry, Object, wrong_kind};
use crate::things::{Job, ProblemFn, ServerFn, TellFn, Watcher};
use crate::{border, signals};

/// `struct haul_fleet_request`.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulFleetRequest {
    pub size: u64,
    pub hosts: *const c_char,
    pub way: *const c_char,
    pub timeout_ms: u64,
    pub logs: *const c_char,
    pub controller: *const c_char,
    pub state: *const c_char,
    pub ssh_config: *const c_char,
    pub identity_file: *const c_char,
    pub absent: Option<AbsentFn>,
    pub context: *mut c_void,
    pub relay: *const c_char,
}

/// Hears of a server that is not there.
type AbsentFn = unsafe extern "C" fn(context: *mut c_void, name: *const c_char, why: *const c_char);

/// `struct haul_fleet_job`.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulFleetJob {
    pub size: u64,
    pub sources: *const *const c_char,
    pub source_count: usize,
    pub destination: *const c_char,
    pub flags: u64,
    pub replicas: u64,
    pub rate_limit_bps: u64,
    pub progress: Option<TellFn>,
    pub problem: Option<ProblemFn>,
    pub server: Option<ServerFn>,
    pub context: *mut c_void,
}

/// `struct haul_fleet_member`.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulFleetMember {
    pub size: u64,
    pub name: *const c_char,
    pub problem: *const c_char,
    pub rtt_us: u64,
    pub processors: u64,
    pub load_per_mille: u64,
    pub memory_total_bytes: u64,
    pub memory_available_bytes: u64,
    pub free_bytes: u64,
}

/// Hears how a server is.
type StatusFn = unsafe extern "C" fn(context: *mut c_void, status: *const HaulFleetMember);

/// A call that waits for the library's threads, in a thread that takes none of the application's signals.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Outcome<T> {
    let ended = thread::scope(|scope| signals::blocked(|| scope.spawn(work)).join());
    ended.map_err(|_| Failure::new(Code::Internal, "a bug in the library: a thread of the fleet panicked"))
}

fn insert(session: Session) -> Outcome<i64> {
    table::insert(Entry::new(Object::Fleet(session)))
}

fn with<T>(handle: i64, work: impl FnOnce(&Session) -> Outcome<T>) -> Outcome<T> {
    let entry = table::get(handle)?;
    match &entry.object {
        Object::Fleet(session) => work(session),
        _ => Err(wrong_kind(&entry, "a fleet")),
    }
}

fn nobody() -> Arc<dyn Tell> {
    Arc::new(Nobody)
}

fn in_c(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// # Safety
/// The request's pointers are null, or what haul.h says of them.
unsafe fn setup(request: &HaulFleetRequest) -> Outcome<Setup> {
    // SAFETY: the caller's promise, here and below: null or a text.
    let path = |text| unsafe { pointers::path(text) };
    // SAFETY: as above.
    let hosts = unsafe { pointers::text(request.hosts, "a list of hosts") }?;
    let mut spec = StartSpec::new(HostSpec::list(hosts).map_err(|error| invalid(chain(&error)))?);
    if !request.way.is_null() {
        // SAFETY: as above.
        let way = unsafe { pointers::text(request.way, "a way") }?;
        spec.way = way.parse().map_err(|error| invalid(format!("{way}: {error}")))?;
    }
    if request.timeout_ms > 0 {
        spec.timeout = Duration::from_millis(request.timeout_ms);
    }
    if !request.controller.is_null() {
        // SAFETY: as above.
        let name = unsafe { pointers::text(request.controller, "a controller") }?;
        spec.transport.controller = name.parse::<ControllerChoice>().map_err(|error| invalid(error.to_string()))?;
    }
    spec.state = path(request.state);
    spec.ssh.config = path(request.ssh_config);
    spec.ssh.identity = path(request.identity_file).into_iter().collect();
    // SAFETY: as above.
    spec.ssh.relay = unsafe { relay(request.relay) }?;
    let mut setup = Setup::from(spec);
    if let Some(logs) = path(request.logs) {
        setup.set_dir(logs);
    }
    Ok(setup)
}

fn tell_absent(absent: &[Absent], tell: Option<AbsentFn>, context: &Given) {
    for (absent, tell) in absent.iter().filter_map(|absent| Some((absent, tell?))) {
        let (name, why) = (in_c(&absent.name), in_c(&chain(&absent.why)));
        // SAFETY: the application's promise: its function takes its context and two texts.
        unsafe { tell(context.pointer(), name.as_ptr(), why.as_ptr()) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_start(request: *const HaulFleetRequest) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null, or a structure that begins with its size, all of whose fields may be zero.
        let request = unsafe { pointers::read_sized(request) }?;
        // SAFETY: C's promise.
        let setup = unsafe { setup(&request) }?;
        let (session, absent) = apart(|| setup.start(&nobody(), &Cancel::new()))??;
        tell_absent(&absent, request.absent, &Given(request.context));
        insert(session)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_attach(name: *const c_char) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null or a text.
        let name = unsafe { pointers::text(name, "the name of a fleet") }?;
        let name = FleetName::new(name)?;
        insert(apart(|| Session::attach(&name, &nobody()))??)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_set_dir(fleet: i64, logs: *const c_char) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null or a text.
        let logs = unsafe { pointers::path(logs) };
        with(fleet, |session| {
            session.set_dir(logs);
            Ok(())
        })
    })
}

/// What both ways have in common.
struct Parts {
    sources: Vec<PathBuf>,
    destination: PathBuf,
    options: haul_files::Options,
    limit: Option<BitRate>,
}

/// # Safety
/// The job's pointers are null, or what haul.h says of them.
unsafe fn parts(job: &HaulFleetJob) -> Outcome<Parts> {
    if job.sources.is_null() || !(1..=MAX_SOURCES).contains(&job.source_count) {
        return Err(invalid(format!("{} sources: 1 to {MAX_SOURCES} are possible, in an array", job.source_count)));
    }
    let missing = || invalid("a null pointer where a source or the destination is wanted");
    // SAFETY: the caller's promise: an array of so many.
    let sources = unsafe { slice::from_raw_parts(job.sources, job.source_count) };
    // SAFETY: the caller's promise: null or a text.
    let path = |text| unsafe { pointers::path(text) }.ok_or_else(missing);
    Ok(Parts {
        sources: sources.iter().map(|&source| path(source)).collect::<Outcome<_>>()?,
        destination: path(job.destination)?,
        options: copy_options(job.flags, FLEET_FLAGS)?,
        limit: (job.rate_limit_bps > 0).then(|| BitRate::from_bps(job.rate_limit_bps)),
    })
}

fn watcher(job: &HaulFleetJob, cancel: &Cancel) -> Watcher {
    Watcher::new(job.progress, job.problem, Given(job.context), cancel.clone()).of_servers(job.server)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_download(fleet: i64, job: *const HaulFleetJob) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null, or a structure that begins with its size, all of whose fields may be zero.
        let job = unsafe { pointers::read_sized(job) }?;
        // SAFETY: C's promise.
        let Parts { sources, destination, options, limit } = unsafe { parts(&job) }?;
        with(fleet, |session| {
            let (session, cancel) = (session.clone(), Cancel::new());
            let get = GetJob { options, limit: limit.into(), ..GetJob::new(sources, destination) };
            let started = Job::spawn(cancel.clone(), watcher(&job, &cancel), move |watcher| {
                Ok((&session.download(&get, watcher, &cancel)?.job.files).into())
            })?;
            table::insert(Entry::new(Object::Job(started)))
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_upload(fleet: i64, job: *const HaulFleetJob) -> i64 {
    border::call(|| {
        // SAFETY: C's promise: null, or a structure that begins with its size, all of whose fields may be zero.
        let job = unsafe { pointers::read_sized(job) }?;
        // SAFETY: C's promise.
        let Parts { sources, destination, options, limit } = unsafe { parts(&job) }?;
        let replicas = usize::try_from(job.replicas.max(1)).unwrap_or(usize::MAX);
        with(fleet, |session| {
            let (session, cancel) = (session.clone(), Cancel::new());
            let put = PutJob { options, limit: limit.into(), replicas, ..PutJob::new(sources, destination) };
            let started = Job::spawn(cancel.clone(), watcher(&job, &cancel), move |watcher| {
                Ok((&session.upload(&put, watcher, &cancel)?.job.files).into())
            })?;
            table::insert(Entry::new(Object::Job(started)))
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_fleet_status(fleet: i64, tell: Option<StatusFn>, context: *mut c_void) -> c_int {
    border::call(|| {
        let status = with(fleet, |session| Ok(apart(|| session.status(&Cancel::new()))??))?;
        if let Some(tell) = tell {
            tell_status(&status, tell, &Given(context));
        }
        Ok(c_int::try_from(status.members.len()).unwrap_or(c_int::MAX))
    })
}

fn tell_status(status: &SessionStatus, tell: StatusFn, context: &Given) {
    let nothing = || HaulFleetMember {
        size: size_of::<HaulFleetMember>() as u64,
        name: std::ptr::null(),
        problem: std::ptr::null(),
        rtt_us: 0,
        processors: 0,
        load_per_mille: 0,
        memory_total_bytes: 0,
        memory_available_bytes: 0,
        free_bytes: 0,
    };
    let say = |name: &str, problem: Option<String>, told: HaulFleetMember| {
        let (name, problem) = (in_c(name), problem.map(|problem| in_c(&problem)));
        let problem = problem.as_ref().map_or(std::ptr::null(), |problem| problem.as_ptr());
        let told = HaulFleetMember { name: name.as_ptr(), problem, ..told };
        // SAFETY: the application's promise: its function takes its context, and a structure for as long as the call.
        unsafe { tell(context.pointer(), &raw const told) };
    };
    for member in &status.members {
        let rtt_us = u64::try_from(member.rtt.as_micros()).unwrap_or(u64::MAX);
        match &member.report {
            Ok(report) => {
                let told = HaulFleetMember {
                    rtt_us,
                    processors: report.machine.processors.into(),
                    load_per_mille: (report.machine.load1 * 1e3) as u64,
                    memory_total_bytes: report.memory_total_bytes,
                    memory_available_bytes: report.memory_available_bytes,
                    free_bytes: report.places.first().and_then(|place| place.free_bytes).unwrap_or(0),
                    ..nothing()
                };
                say(&member.name, None, told);
            }
            Err(error) => say(&member.name, Some(chain(error)), HaulFleetMember { rtt_us, ..nothing() }),
        }
    }
    for absent in &status.absent {
        say(&absent.name, Some(chain(&absent.why)), nothing());
    }
}

#[unsafe(no_mangle)]
extern "C" fn haul_fleet_stop(fleet: i64) -> c_int {
    border::done(|| with(fleet, |session| Ok(apart(|| session.stop(&Cancel::new()))??)))
}

const MAX_SOURCES: usize = 1 << 20;
