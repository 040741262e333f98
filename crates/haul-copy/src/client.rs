//! The client's side of a copy.

use std::io::{self, Write as _};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul::Connection;
use haul_files::{CopyError, Destination, Link, Observer, Options, PullJob, PushJob, Report, SourceSpec, Stop};
use haul_peer::{ControlOut, RepliedStream, is_gone, to_line, wait_for};
use haul_units::{BitRate, Cancel};

use super::adapter::ConnectionTransport;
use super::opening::{Opening, Purpose};
use super::telemetry::{PathReport, PathView, ServerReport, follow};
use super::{CLOSE_ABORTED, CLOSE_DONE, stores};
use crate::parts::{Marks, Noted, Noting, Told};

/// How long to wait for the server's last report on the path, once everything has arrived.
const LAST_REPORT: Duration = Duration::from_secs(1);

/// What is to be copied, and which way.
#[derive(Debug)]
pub enum Job {
    /// From here to the server.
    Push(PushJob),
    /// From the server to here.
    Pull(PullJob),
}

impl Job {
    /// Whether a copy that broke by `error` can go on over another connection: both sides have kept what is needed, and the server was stopped, restarted or has gone.
    pub fn can_go_on(&self, error: &CopyError, connection: &Connection) -> bool {
        let was_stopped = matches!(error, CopyError::Refused(Stop::Interrupted));
        // The connection ended, and not the copy for a reason of its own.
        let was_lost = is_gone(connection) && matches!(error, CopyError::Connection(_));
        (was_stopped || was_lost) && self.can_be_resumed()
    }

    /// How it is to be done.
    pub const fn options(&self) -> &Options {
        match self {
            Self::Push(push) => &push.options,
            Self::Pull(pull) => &pull.options,
        }
    }

    /// Blocks that wait for their turn, as those of a stream do, are as many as the transport has room for: they are not to become larger.
    pub(crate) const fn may_be_packed(&self) -> bool {
        match self {
            Self::Push(_) => true,
            Self::Pull(pull) => matches!(pull.destination, Destination::Path(_)),
        }
    }

    /// What was read from a stream or written to one is gone, and a copy that is not to be resumed would begin again.
    pub(crate) fn can_be_resumed(&self) -> bool {
        match self {
            Self::Push(push) => push.options.resume && push.sources.iter().all(|source| matches!(source, SourceSpec::Path(_))),
            Self::Pull(pull) => pull.options.resume && matches!(pull.destination, Destination::Path(_)),
        }
    }
}

/// A connection to a server, ready for one copy.
pub struct ClientSession {
    connection: Connection,
    /// What the server last said.
    reported: Arc<Mutex<Option<ServerReport>>>,
    receiving: bool,
    packs: bool,
    marks: Arc<Marks>,
}

/// An open session: what the engine runs on, and what is to be done when it is over.
pub struct Opened {
    /// For one run of the engine.
    pub link: Link<ConnectionTransport>,
    /// For afterwards.
    pub parting: Parting,
}

/// The end of a session.
pub struct Parting {
    connection: Connection,
    control: ControlOut,
    reports: mpsc::Receiver<()>,
    receiving: bool,
}

impl Parting {
    /// Lets the last words arrive, for a while and no longer once `hurry` is cancelled, and closes the connection.
    pub fn done(self, hurry: &Cancel) {
        let Self { connection, control, reports, receiving } = self;
        // The copy is complete whether or not the server hears of it: one that has gone is not waited for.
        let farewell = move || {
            // One that sent has heard the server's last words, and has none of its own.
            if receiving {
                let _ = control.see_off();
            }
            let _ = reports.recv_timeout(LAST_REPORT);
        };
        wait_for(farewell, hurry);
        tracing::debug!("the copy is over");
        connection.close(CLOSE_DONE, "done");
    }

    /// Closes the connection, and says why.
    pub fn failed(self, error: &CopyError) {
        self.connection.close(CLOSE_ABORTED, &error.to_string());
    }
}

impl ClientSession {
    /// Takes a connection for one job.
    pub fn new(connection: Connection, job: &Job) -> Self {
        Self::of(connection, matches!(job, Job::Pull(_)))
    }

    /// Takes a connection for a job in which the server receives.
    pub fn sending(connection: Connection) -> Self {
        Self::of(connection, false)
    }

    /// Takes a connection for a job in which the server sends.
    pub fn receiving(connection: Connection) -> Self {
        Self::of(connection, true)
    }

    fn of(connection: Connection, receiving: bool) -> Self {
        Self { connection, reported: Arc::default(), receiving, packs: false, marks: Arc::default() }
    }

    /// Lets blocks be packed where that gains ([`Copier::packs`](crate::Copier::packs)).
    #[must_use]
    pub fn packing(self, packs: bool) -> Self {
        Self { packs, ..self }
    }

    /// Something that tells how the path does, at any time.
    pub fn path(&self) -> impl Fn() -> PathView + Send + Sync + 'static {
        let (connection, reported, receiving) = (self.connection.clone(), Arc::clone(&self.reported), self.receiving);
        move || {
            let stats = connection.stats();
            let own = PathReport::from(&stats);
            let server = *reported.lock().unwrap_or_else(PoisonError::into_inner);
            let sender = if receiving { server.map(|server| server.path) } else { Some(own) };
            let server_demand = server.map(|server| server.demand).unwrap_or_default();
            let told = server.and_then(|server| server.learned?.learned());
            let learned = if receiving { told } else { connection.learned() };
            let rtt_us = sender.map_or(own.rtt_us, |sender| sender.rtt_us);
            let machine = server.and_then(|server| server.machine);
            let (received, silence, timeout) = (stats.received_stream, stats.silence, stats.idle_timeout);
            PathView { rtt_us, received, silence, timeout, sender, server_demand, learned, machine }
        }
    }

    /// What this side has noted, and what the other side tells of that, once both are at their end.
    pub(crate) fn marks(&self) -> (Noted, Option<Told>) {
        let told = self.reported.lock().unwrap_or_else(PoisonError::into_inner).and_then(|reported| reported.moments);
        (self.marks.noted(), told)
    }

    /// Copies.
    pub fn run(&self, job: &Job, limit: Option<BitRate>, observer: &dyn Observer, cancel: &Cancel) -> Result<Report, CopyError> {
        let Opened { link, parting } = self.open(limit).map_err(CopyError::Connection)?;
        let observer = &Noting { observer, marks: &self.marks };
        let result = match job {
            Job::Push(job) => stores::push(link, job, observer, cancel),
            Job::Pull(job) => stores::pull(link, job, observer, cancel),
        };
        match &result {
            Ok(_) => parting.done(cancel),
            Err(error) => parting.failed(error),
        }
        result
    }

    /// Opens the session without running the engine: who drives that itself runs it on the link, and then parts. `limit` is what the server may send at most.
    pub fn open(&self, limit: Option<BitRate>) -> io::Result<Opened> {
        let (mut send, receive) = self.connection.open_bi()?;
        let limit_bps = limit.filter(|_| self.receiving).map(BitRate::as_bps);
        let opening = Opening { limit_bps, ..Opening::new(Purpose::Copy { telemetry: true, packs: self.packs }) };
        send.write_all(&to_line(&opening))?;
        let reports = self.follow_telemetry();
        let control = ControlOut::new(send);
        let unpacks = Arc::new(AtomicBool::new(false));
        let packing = self.packs.then(|| Arc::clone(&unpacks));
        let link = Link {
            control_in: Box::new(RepliedStream::telling(receive, unpacks)),
            control_out: Box::new(control.clone()),
            transport: Arc::new(
                ConnectionTransport::new(self.connection.clone()).packing(packing).noting(Arc::clone(&self.marks)),
            ),
        };
        let (connection, receiving) = (self.connection.clone(), self.receiving);
        Ok(Opened { link, parting: Parting { connection, control, reports, receiving } })
    }

    /// Reads reports until there are no more; then the channel says so.
    fn follow_telemetry(&self) -> mpsc::Receiver<()> {
        let (connection, reported) = (self.connection.clone(), Arc::clone(&self.reported));
        let (ended, when_ended) = mpsc::channel();
        thread::spawn(move || {
            if let Ok(stream) = connection.accept_uni() {
                follow(stream, &reported);
            }
            let _ = ended.send(());
        });
        when_ended
    }
}
