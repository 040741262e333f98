//! One copy with a host, from its name to the verdict: over as many connections as it takes.
//!
//! ```text
//!   connect (ssh or daemon) -> session, the engine runs -> verdict
//!      ^                          | the daemon was restarted
//!      '--- Again ----------------'
//! ```
//!
//! Meanwhile a thread looks whether what the connection depends on, ssh, still runs: the transport would notice too, but only after its idle timeout. What a start that can use it learned of the path is looked up
//! before and kept after.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, ControllerChoice};
use haul_files::{CopyError, Observer, Report, Silent, Stop};
use haul_peer::{
    Again, Carrying, Connected, Connector, Host, Lifeline, Login, Memory, ReachError, Refusal, Relayed, StateDir, Way, is_stalled,
};
use haul_units::{BitRate, Cancel};
use thiserror::Error;

use crate::client::{ClientSession, Job};
use crate::clock;
use crate::parts::{Both, EVERY, Noted, Parts, Series, Told};
use crate::paths::{OnePath, each_path};
use crate::processor::ProcessorWatch;
use crate::telemetry::{PathReport, PathView};
use crate::verdict::{Conditions, verdict};

/// How often is looked whether ssh still runs, and which mode is wanted.
const LOOK: Duration = Duration::from_millis(100);
/// The far side's process may end a little before the copy here does: that long it does not matter.
const ORPHANED: Duration = Duration::from_secs(3);

/// Before the first further try; twice as long before each after it ..
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// .. up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Copies from and to hosts.
#[derive(Clone)]
pub struct Copier {
    /// How to reach them; its [`Cancel`] stops a copy in a state that the next one goes on from.
    pub connector: Connector,
    /// What may be sent at most; what is wanted meanwhile may be less ([`Observer::wishes`]).
    pub limit: Option<BitRate>,
    /// How long after it was last heard a daemon that was stopped or restarted is connected to again; zero: not at all.
    pub reconnect: Duration,
    /// How often a copy that lost its connection, or found none, is tried again; each time goes on where the last one was.
    pub retries: u32,
    /// Whether blocks are compressed on their way, where they become smaller by it and the link is what is waited for (`haul_squeeze::Judge`). A far side that does not know this gets, or sends, them as they are.
    pub packs: bool,
    /// Whether what ssh says at its end is waited for.
    pub hear_ssh: bool,
    /// Whether is looked where the time goes ([`Copied::parts`]).
    pub traces: bool,
}

/// Asks how the path does.
pub type PathProbe = Box<dyn Fn() -> PathView + Send>;

/// Hears of the connections of a copy besides what the engine tells.
pub trait CopyWatch: Observer {
    /// One has come about, and the engine is about to run on it.
    fn connected(&self, _path: PathProbe) {}

    /// The mode in which this side is to send, asked a few times a second; none: the one that it began with.
    fn mode(&self) -> Option<ControllerChoice> {
        None
    }

    /// The engine has ended, for better or worse.
    fn ended(&self) {}

    /// The copy is tried again after this time, as [`Copier::retries`] allows.
    fn retries(&self, _error: &NotCopied, _wait: Duration) {}

    /// The copy goes on over another connection: it finds everything again, and keeps what has arrived.
    fn again(&self, _again: &Again<'_>) {}
}

impl CopyWatch for Silent {}

/// What came of a copy.
#[derive(Debug)]
pub struct Copied {
    /// The engine's account, both sides together.
    pub report: Report,
    /// The path, as its sender saw it.
    pub path: Option<PathReport>,
    /// Each of several paths, or of those that leave by named interfaces.
    pub paths: Vec<OnePath>,
    /// What limited the speed.
    pub verdict: String,
    /// What carried it in the end.
    pub carried: Carried,
    /// Advice on the systems of both sides.
    pub advice: Vec<String>,
    /// Where the time went, if that was looked at.
    pub parts: Option<Parts>,
}

/// What carried a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// In the end.
    pub by: Carrying,
    /// How much of it a relay has forwarded, where that is what carried it.
    pub relayed: Option<Relayed>,
}

impl Carried {
    fn over(connected: &Connected) -> Self {
        Self { by: connected.carrying(), relayed: connected.relayed() }
    }
}

/// Why there was none.
#[derive(Debug, Error)]
pub enum NotCopied {
    /// No connection came about.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// Nothing could be done over this connection, for the connection's own reason.
    #[error(transparent)]
    Connection(ReachError),
    /// Over UDP nothing came for so long, and the far side gave up.
    #[error("nothing has come over UDP for {} s, and the far side has given up", .0.as_secs())]
    Silence(Duration),
    /// The ssh that the connection was made through ended first.
    #[error("ssh ended in the middle of the copy")]
    SshEnded,
    /// The engine's error.
    #[error(transparent)]
    Copy(CopyError),
}

impl NotCopied {
    /// Whether it may be otherwise a little later: the network, or the far side, was not there. Not what somebody would have to do something about first, such as keys, names and passwords.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Reach(error) | Self::Connection(error) => {
                matches!(
                    error,
                    ReachError::NoAnswer(_) | ReachError::Connect { .. } | ReachError::Ssh(_) | ReachError::NoSuchHost { .. }
                )
            }
            Self::Silence(_) | Self::SshEnded | Self::Copy(CopyError::Connection(_) | CopyError::Refused(Stop::Interrupted)) => {
                true
            }
            Self::Copy(_) => false,
        }
    }
}

impl Copier {
    /// Copies.
    pub fn copy(&mut self, host: &Host, job: &Job, watch: &dyn CopyWatch) -> Result<Copied, NotCopied> {
        let (begun, mut wait) = (clock::now(), FIRST_WAIT);
        let mut tried = begun;
        for _ in 0..self.retries {
            match self.attempt(host, job, watch, begun, tried) {
                Err(error) if error.may_pass() && job.can_be_resumed() && !self.connector.cancel.is_cancelled() => {
                    watch.retries(&error, wait);
                    self.wait(wait);
                    if self.connector.cancel.is_cancelled() {
                        return Err(error);
                    }
                    wait = (wait * 2).min(LONGEST_WAIT);
                    tried = clock::now();
                }
                result => return result,
            }
        }
        self.attempt(host, job, watch, begun, tried)
    }

    /// Waits, unless the user wants an end.
    fn wait(&self, time: Duration) {
        let (ended, is_over) = mpsc::channel::<()>();
        let _hook = self.connector.cancel.on_cancel(move || ended.send(()).unwrap_or_default());
        let _ = is_over.recv_timeout(time);
    }

    /// One try, at this moment, of a copy that was begun then.
    fn attempt(
        &mut self,
        host: &Host,
        job: &Job,
        watch: &dyn CopyWatch,
        begun: Instant,
        mut tried: Instant,
    ) -> Result<Copied, NotCopied> {
        let memory = self.memory(host, job);
        self.connector.transport.remembered = memory.as_ref().and_then(|(memory, name, way)| memory.look_up(name, *way));
        let connecting = clock::now();
        let mut connected = self.connector.connect(host)?;
        let mut since = clock::now();
        let login = since - connecting;
        let mut advice = Vec::new();
        loop {
            advice.append(&mut connected.advice);
            let (result, path, seen) = self.over(&connected, host, job, login, watch);
            match result {
                Ok((report, verdict)) => {
                    let paths = each_path(&connected.connection, report.elapsed);
                    let carried = Carried::over(&connected);
                    let logged_in = connected.login;
                    connected.part(self.hear_ssh);
                    let parts = seen.map(|seen| seen.parts(begun, tried, logged_in, since));
                    return Ok(Copied { report, path: path.sender, paths, verdict, carried, advice, parts });
                }
                Err(error) => {
                    let connection = &connected.connection;
                    let goes_on = job.can_go_on(&error, connection) && !self.connector.cancel.is_cancelled();
                    let Some(again) = goes_on.then(|| Again::to(host, connection, self.reconnect)).flatten() else {
                        return Err(self.explained(error, &connected, &path));
                    };
                    watch.again(&again);
                    tried = clock::now();
                    connected = self.connector.connect_by(again.host, again.deadline)?;
                    since = clock::now();
                }
            }
        }
    }

    /// A copy over one connection: what came of it, what limited it, the path at its end, and where the time went, if that is looked at.
    fn over(
        &self,
        connected: &Connected,
        host: &Host,
        job: &Job,
        login: Duration,
        watch: &dyn CopyWatch,
    ) -> (Result<(Report, String), CopyError>, PathView, Option<Seen>) {
        let session = ClientSession::new(connected.connection.clone(), job).packing(self.packs && job.may_be_packed());
        let cancel = Cancel::new();
        let inner = cancel.clone();
        let _hook = self.connector.cancel.on_cancel(move || inner.cancel());
        watch.connected(Box::new(session.path()));
        let processor = ProcessorWatch::start();
        let (result, path, series) = thread::scope(|scope| {
            let ((_over, is_over), (done, is_done)) = (mpsc::channel(), mpsc::channel());
            let (lifeline, cancel) = (connected.lifeline(), &cancel);
            let mut mode = self.connector.transport.controller;
            let mut look = move || {
                if let Some(wanted) = watch.mode().filter(|wanted| *wanted != mode && matches!(job, Job::Push(_))) {
                    connected.connection.set_controller(wanted);
                    mode = wanted;
                }
            };
            scope.spawn(move || attend(&lifeline, cancel, &is_over, &mut look));
            let sampler = self.traces.then(|| scope.spawn(move || sample(&connected.connection, job, &is_done)));
            let result = session.run(job, self.limit, watch, cancel);
            drop(done);
            let series = sampler.and_then(|sampler| sampler.join().ok());
            (result, (session.path())(), series)
        });
        let own_demand = processor.busiest();
        watch.ended();
        if let (Some((memory, name, way)), Some(learned)) = (self.memory(host, job), path.learned) {
            memory.keep(&name, way, learned);
        }
        let (sender_demand, receiver_demand) = match job {
            Job::Push(_) => (own_demand, path.server_demand),
            Job::Pull(_) => (path.server_demand, own_demand),
        };
        let result = result.map(|report| {
            let limit = watch.wishes().map_or(self.limit, |wishes| wishes.limit);
            let sender = path.sender.as_ref();
            let conditions = Conditions { report: &report, path: sender, limit, sender_demand, receiver_demand, login };
            let verdict = match connected.carrying() {
                _ if job.options().dry_run => String::new(),
                Carrying::Udp | Carrying::Punched => verdict(&conditions),
                Carrying::Relay => format!("{}; {}", verdict(&conditions), relayed(connected)),
                // Those rule the rate by themselves, and what was lost on the way there was lost to a firewall.
                Carrying::Tcp => "carried by TCP connections, which ruled the rate".to_owned(),
                Carrying::Ssh => "carried by ssh's own connection, which ruled the rate".to_owned(),
            };
            (report, verdict)
        });
        let seen = series.map(|series| {
            let (noted, told) = session.marks();
            // Without what stood in queues.
            let rtt_us = path.sender.map(|sender| sender.min_rtt_us).filter(|rtt_us| *rtt_us > 0).unwrap_or(path.rtt_us);
            Seen { sends: matches!(job, Job::Push(_)), rtt: Duration::from_micros(rtt_us), noted, told, series }
        });
        (result, path, seen)
    }

    /// Where a start that can use it finds what earlier copies learned.
    fn memory(&self, host: &Host, job: &Job) -> Option<(Memory, String, Way)> {
        let is_wanted = self.connector.transport.controller == ControllerChoice::Quickstart && !job.options().dry_run;
        let state = is_wanted.then(|| StateDir::find(self.connector.state.as_deref()).ok())??;
        let way = match job {
            Job::Push(_) => Way::To,
            Job::Pull(_) => Way::From,
        };
        // Without a directory the copy does without.
        let _ = state.create();
        Some((Memory::new(&state, clock::unix_seconds()), host.to_string(), way))
    }

    /// The cause of an engine's error: the connection's own reason, if there is one; ssh's end explains a connection that broke, never a reason that the far side gave.
    fn explained(&self, error: CopyError, connected: &Connected, path: &PathView) -> NotCopied {
        if let Some(cause) = connected.cause() {
            return NotCopied::Connection(cause);
        }
        let unexplained = match &error {
            // One that refuses ends as soon as it has said so, and its ssh with it.
            CopyError::Connection(source) => source.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()).is_none(),
            error => matches!(error, CopyError::Cancelled) && !self.connector.cancel.is_cancelled(),
        };
        let Some(ended_for) = connected.ssh_ended_for().filter(|_| unexplained) else { return NotCopied::Copy(error) };
        // The far side gives a connection up as this one does, and ssh ends with it: that is not the cause. Where ssh ended while the far side was still heard, it is.
        let before = path.silence.saturating_sub(ended_for);
        if is_stalled(before, Duration::from_micros(path.rtt_us)) {
            NotCopied::Silence(path.silence)
        } else {
            NotCopied::SshEnded
        }
    }
}

/// What was seen of a copy over one connection.
struct Seen {
    sends: bool,
    rtt: Duration,
    noted: Noted,
    told: Option<Told>,
    series: Series,
}

impl Seen {
    /// Where the time went until now.
    fn parts(&self, begun: Instant, tried: Instant, login: Option<Login>, connected: Instant) -> Parts {
        let Self { sends, rtt, noted, told, series } = self;
        let (sends, rtt, told) = (*sends, *rtt, *told);
        Both { begun, tried, login, connected, over: clock::now(), sends, rtt, noted, told, series }.parts()
    }
}

/// Looks what has arrived, until it is over.
fn sample(connection: &Connection, job: &Job, is_over: &mpsc::Receiver<()>) -> Series {
    let mut series = Series::default();
    while is_over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let stats = connection.stats();
        let arrived = if matches!(job, Job::Push(_)) { stats.acknowledged } else { stats.received };
        series.push(clock::now(), arrived.as_u64());
    }
    series
}

/// How much a relay has carried.
fn relayed(connected: &Connected) -> String {
    let by = |relayed: Relayed| format!("by way of relay {}, {} of UDP payload", relayed.by, relayed.bytes);
    connected.relayed().map_or_else(|| "by way of a relay".to_owned(), by)
}

/// Until the copy is over: has a look at what is wanted, and stops it where its far side cannot live any more.
fn attend(lifeline: &Lifeline, cancel: &Cancel, is_over: &mpsc::Receiver<()>, look: &mut dyn FnMut()) {
    let mut held = clock::now();
    while is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        look();
        if lifeline.holds() {
            held = clock::now();
        } else if clock::now() - held > ORPHANED {
            return cancel.cancel();
        }
    }
}
