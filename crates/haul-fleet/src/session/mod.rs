//! A fleet that stays up: members that are started once and do many jobs, one after another and at the same time.
//!
//! | the paper's call | here |
//! |---|---|
//! | `Initiate`, the first host is the representative | [`Setup::initiate`] |
//! | `SetDir` | [`Setup::set_dir`], [`Session::set_dir`] |
//! | `SetParameter`: buffers, window | [`Setup::set_parameters`]; rates: [`GetJob::limit`], [`PutJob::limit`] |
//! | `Start` | [`Setup::start`] |
//! | `MultiDownload` | [`Session::download`], [`Session::download_many`], [`Session::download_async`] |
//! | `MultiUpload` | [`Session::upload`], [`Session::upload_many`], [`Session::upload_async`] |
//! | `Status` | [`Session::status`] |
//! | `Stop` | [`Session::stop`] |
//!
//! ```text
//!   members  ==held by== Keep (this process, or a keeper's)        a connection each, that carries nothing but guests
//!      \\                  | messages: who is there, let me come
//!       ==a connection== Visit (this process, for one job)         reads, writes, shows
//! ```
//!
//! Each job has connections of its own, so it shares neither credit nor limits with others, and what ends one ends no other. With a fleet of another process ([`Session::attach`]) the job is done here all the same: the keeper
//! only has the members expect this process.

mod client;
mod error;
mod keep;
mod keeper;
pub mod messages;
mod pending;
mod place;
mod visit;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haul::TransportConfig;
use haul_peer::{Nobody, Tell};
use haul_units::Cancel;

use self::client::Client;
pub use self::error::{JoinError, SessionError};
use self::keep::Keep;
pub use self::messages::Gone;
use self::messages::{Ask, Reply, Terms};
pub use self::pending::Pending;
pub use self::place::{Claim, FleetName, KeeperSocket, claim};
use self::visit::Visit;
use crate::at_once::at_once;
use crate::get::{GetJob, get};
use crate::log::{JobLog, JobTitle};
use crate::member::Member;
use crate::observe::{JobEvent, JobObserver, JobReport, Unwatched};
use crate::put::{PutJob, put};
use crate::start::{Absent, Fleet, HostSpec, StartError, StartSpec};
use crate::status::{MemberStatus, status};

/// A fleet that is about to be started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How it is started.
    pub spec: StartSpec,
    dir: Option<PathBuf>,
}

impl Setup {
    /// These hosts; the first one is the representative, where the way of starting has one.
    pub fn initiate(hosts: Vec<HostSpec>) -> Self {
        Self { spec: StartSpec::new(hosts), dir: None }
    }

    /// Each job writes its log into a new directory in this one.
    pub fn set_dir(&mut self, dir: impl Into<PathBuf>) -> &mut Self {
        self.dir = Some(dir.into());
        self
    }

    /// How the connections behave: memory, windows, controller, timeouts.
    pub fn set_parameters(&mut self, transport: TransportConfig) -> &mut Self {
        self.spec.transport = transport;
        self
    }

    /// Starts the members. Those that did not come are named; before a later job they are tried again.
    pub fn start(self, tell: &Arc<dyn Tell>, cancel: &Cancel) -> Result<(Session, Vec<Absent>), StartError> {
        let (keep, absent) = Keep::start(self.spec, tell.clone(), cancel)?;
        Ok((Session::of(Source::Own(Arc::new(keep)), self.dir, tell.clone()), absent))
    }
}

impl From<StartSpec> for Setup {
    fn from(spec: StartSpec) -> Self {
        Self { spec, dir: None }
    }
}

/// A fleet that is up. Clones are the same one; jobs may run from several threads at once. Where it was started here, its members end with the last clone, or with [`Session::stop`].
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    source: Source,
    dir: Mutex<Option<PathBuf>>,
    tell: Arc<dyn Tell>,
}

enum Source {
    /// It is kept here.
    Own(Arc<Keep>),
    /// Another process keeps it.
    Running(FleetName),
}

/// What a job did.
#[derive(Debug)]
pub struct SessionReport {
    /// What it did.
    pub job: JobReport,
    /// Members that were not there for it.
    pub absent: Vec<Absent>,
}

/// How a fleet is.
#[derive(Debug)]
pub struct SessionStatus {
    /// Members that are there, and what they say.
    pub members: Vec<MemberStatus>,
    /// Those that are not.
    pub absent: Vec<Absent>,
    /// For how long it has been up.
    pub up: Duration,
    /// The process that keeps it.
    pub pid: u32,
}

/// One fleet of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpFleet {
    /// What it is called.
    pub name: FleetName,
    /// Members that are there.
    pub members: usize,
    /// Members that are not.
    pub gone: usize,
    /// For how long it has been up.
    pub up: Duration,
    /// The process that keeps it.
    pub pid: u32,
}

impl Session {
    fn of(source: Source, dir: Option<PathBuf>, tell: Arc<dyn Tell>) -> Self {
        Self(Arc::new(Inner { source, dir: Mutex::new(dir), tell }))
    }

    /// Uses a fleet that another process of this user keeps.
    pub fn attach(name: &FleetName, tell: &Arc<dyn Tell>) -> Result<Self, JoinError> {
        place::connect(name)?;
        Ok(Self::of(Source::Running(name.clone()), None, tell.clone()))
    }

    /// From now on each job writes its log into a new directory in this one; none, if there is none.
    pub fn set_dir(&self, dir: Option<PathBuf>) {
        *self.0.dir.lock().unwrap_or_else(PoisonError::into_inner) = dir;
    }

    /// Connects with the members for one job, which may be given to [`get`], [`put`] or [`status`]. Those that have gone are started again first, if they can be; who is not there is named.
    pub fn join(&self, cancel: &Cancel) -> Result<Fleet, JoinError> {
        self.visit(true, cancel).map(|(fleet, _)| fleet)
    }

    /// Fetches files.
    pub fn download(&self, job: &GetJob, observer: &dyn JobObserver, cancel: &Cancel) -> Result<SessionReport, SessionError> {
        let sources = job.sources.iter().chain([&job.destination]);
        let about = sources.map(|path| path.to_string_lossy().into_owned()).collect();
        self.run(("get", about), observer, cancel, |members, observer| Ok(get(members, job, observer, cancel)?))
    }

    /// Sends files.
    pub fn upload(&self, job: &PutJob, observer: &dyn JobObserver, cancel: &Cancel) -> Result<SessionReport, SessionError> {
        let sources = job.sources.iter().chain([&job.destination]);
        let about = sources.map(|path| path.to_string_lossy().into_owned()).collect();
        self.run(("put", about), observer, cancel, |members, observer| Ok(put(members, job, observer, cancel)?))
    }

    /// Several downloads at the same time; what came of each, in their order.
    pub fn download_many(&self, jobs: &[GetJob], cancel: &Cancel) -> Vec<Result<SessionReport, SessionError>> {
        all_of(jobs, |job| self.download(job, &Unwatched, cancel))
    }

    /// Several uploads at the same time; what came of each, in their order.
    pub fn upload_many(&self, jobs: &[PutJob], cancel: &Cancel) -> Vec<Result<SessionReport, SessionError>> {
        all_of(jobs, |job| self.upload(job, &Unwatched, cancel))
    }

    /// As [`Session::download`], for any async executor.
    pub fn download_async(&self, job: GetJob, observer: Arc<dyn JobObserver>) -> Pending<SessionReport> {
        let session = self.clone();
        Pending::run(move |cancel| session.download(&job, &*observer, cancel))
    }

    /// As [`Session::upload`], for any async executor.
    pub fn upload_async(&self, job: PutJob, observer: Arc<dyn JobObserver>) -> Pending<SessionReport> {
        let session = self.clone();
        Pending::run(move |cancel| session.upload(&job, &*observer, cancel))
    }

    /// How the members are and what they do. Nobody is started for it.
    pub fn status(&self, cancel: &Cancel) -> Result<SessionStatus, JoinError> {
        let (fleet, terms) = match self.visit(false, cancel) {
            Err(JoinError::Empty { gone }) => {
                let absent = gone.into_iter().map(Absent::from).collect();
                let terms = self.terms(false, cancel)?;
                return Ok(SessionStatus { members: Vec::new(), absent, up: Duration::from_secs(terms.up_s), pid: terms.pid });
            }
            other => other?,
        };
        let members = status(fleet.members, cancel);
        Ok(SessionStatus { members, absent: fleet.absent, up: Duration::from_secs(terms.1), pid: terms.0 })
    }

    /// As [`Session::status`], for any async executor.
    pub fn status_async(&self) -> Pending<SessionStatus> {
        let session = self.clone();
        Pending::run(move |cancel| Ok(session.status(cancel)?))
    }

    /// Ends the fleet: its members, and the process that keeps it. Jobs that are under way find their members gone; what has arrived is kept.
    pub fn stop(&self, cancel: &Cancel) -> Result<(), JoinError> {
        match &self.0.source {
            Source::Own(keep) => {
                keep.stop();
                Ok(())
            }
            Source::Running(name) => match Client::new(place::connect(name)?)?.ask(Ask::Down, cancel)? {
                Reply::Down => Ok(()),
                _ => Err(nonsense()),
            },
        }
    }

    /// Has other processes of this user use the fleet, through the socket of its name, until one of them wants it down or `cancel` is cancelled; then it ends. `gone` is told of members that have gone. Another process's fleet
    /// is up already.
    pub fn keep_at(&self, socket: KeeperSocket, gone: &dyn Fn(&Gone), cancel: &Cancel) -> Result<(), JoinError> {
        match &self.0.source {
            Source::Own(keep) => keeper::answer_at(socket, keep, gone, cancel),
            Source::Running(name) => Err(JoinError::UpAlready { name: name.to_string() }),
        }
    }

    fn terms(&self, revive: bool, cancel: &Cancel) -> Result<Terms, JoinError> {
        match &self.0.source {
            Source::Own(keep) => Ok(keep.terms(revive, cancel)),
            Source::Running(name) => ask_terms(&mut Client::new(place::connect(name)?)?, revive, cancel),
        }
    }

    /// Connects with everybody; and the keeper's process, and for how many seconds it has been up.
    fn visit(&self, revive: bool, cancel: &Cancel) -> Result<(Fleet, (u32, u64)), JoinError> {
        let prepared = |terms: Terms, usual| {
            if terms.members.is_empty() {
                return Err(JoinError::Empty { gone: terms.gone });
            }
            let told = (terms.pid, terms.up_s);
            Ok((Visit::prepare(terms, usual)?, told))
        };
        let (visit, refused, told) = match &self.0.source {
            Source::Own(keep) => {
                let (visit, told) = prepared(keep.terms(revive, cancel), keep.transport())?;
                let refused = keep.invite(visit.key(), visit.port());
                (visit, refused, told)
            }
            Source::Running(name) => {
                let mut client = Client::new(place::connect(name)?)?;
                let (visit, told) = prepared(ask_terms(&mut client, revive, cancel)?, TransportConfig::default())?;
                let ask = Ask::Invite { key: visit.key().to_string(), port: visit.port() };
                let Reply::Invited(refused) = client.ask(ask, cancel)? else { return Err(nonsense()) };
                (visit, refused, told)
            }
        };
        let fleet = visit.connect(refused, &self.0.tell, cancel);
        if cancel.is_cancelled() {
            fleet.part();
            return Err(JoinError::Interrupted);
        }
        if fleet.members.is_empty() {
            let gone = |absent: &Absent| Gone { name: absent.name.clone(), why: haul_peer::chain(&absent.why) };
            return Err(JoinError::Empty { gone: fleet.absent.iter().map(gone).collect() });
        }
        Ok((fleet, told))
    }

    fn run(
        &self,
        (kind, about): (&str, Vec<String>),
        observer: &dyn JobObserver,
        cancel: &Cancel,
        work: impl FnOnce(Vec<Member>, &dyn JobObserver) -> Result<JobReport, SessionError>,
    ) -> Result<SessionReport, SessionError> {
        let Fleet { members, absent } = self.join(cancel)?;
        let dir = self.0.dir.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let log = dir.map(|dir| {
            let members = members.iter().map(|member| member.name.clone()).collect();
            JobLog::create(&dir, JobTitle { kind: kind.to_owned(), about, members })
        });
        let log = log.transpose()?;
        let job = work(members, &Both { observer, log: log.as_ref() })?;
        Ok(SessionReport { job, absent })
    }
}

/// All jobs at the same time, however many.
fn all_of<J: Sync>(
    jobs: &[J],
    run: impl Fn(&J) -> Result<SessionReport, SessionError> + Sync,
) -> Vec<Result<SessionReport, SessionError>> {
    at_once(jobs, jobs.len(), run).into_iter().map(|done| done.unwrap_or(Err(SessionError::Failed))).collect()
}

/// The fleets of this user that are up.
pub fn up(cancel: &Cancel) -> Vec<UpFleet> {
    let look = |name: FleetName| {
        let session = Session::attach(&name, &(Arc::new(Nobody) as Arc<dyn Tell>)).ok()?;
        let terms = session.terms(false, cancel).ok()?;
        let (members, gone) = (terms.members.len(), terms.gone.len());
        Some(UpFleet { name, members, gone, up: Duration::from_secs(terms.up_s), pid: terms.pid })
    };
    place::names().into_iter().filter_map(look).collect()
}

fn ask_terms(client: &mut Client, revive: bool, cancel: &Cancel) -> Result<Terms, JoinError> {
    match client.ask(Ask::Terms { revive }, cancel)? {
        Reply::Terms(terms) => Ok(*terms),
        _ => Err(nonsense()),
    }
}

fn nonsense() -> JoinError {
    JoinError::Refused("the process that keeps the fleet says what was not asked".to_owned())
}

/// Whoever watches, and the log.
struct Both<'a> {
    observer: &'a dyn JobObserver,
    log: Option<&'a JobLog>,
}

impl JobObserver for Both<'_> {
    fn event(&self, event: &JobEvent<'_>) {
        self.observer.event(event);
        if let Some(log) = self.log {
            log.event(event);
        }
    }
}
