//! The serving side of a copy.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haul::{Connection, RecvStream};
use haul_files::store::Space;
use haul_files::{Access, CopyError, Event, Link, Observer, Report};
use haul_peer::{ControlOut, Farewell, Refusal, Reply, SavedPath, from_line, to_line};
use haul_units::{BitRate, Cancel};

use super::adapter::ConnectionTransport;
use super::deadline::Deadline;
use super::opening::{Opening, Purpose};
use super::telemetry::{self, PathReport, ServerReport};
use super::{CLOSE_ABORTED, CLOSE_DONE, CLOSE_REFUSED, kept, stores};
use crate::errands;
use crate::keep::{Guest, Unwelcome, welcome_guests};
use crate::machine::MachineWatch;
use crate::parts::{Marks, Noting};
use crate::places::Places;
use crate::processor::ProcessorWatch;
use crate::status::{StatusReport, WorkReport};

/// A client that has opened its control stream.
pub struct ServerSession {
    connection: Connection,
    control_in: RecvStream,
    control_out: ControlOut,
    /// What the client said.
    pub opening: Opening,
    places: Places,
}

impl ServerSession {
    /// Waits for the client's opening, for five minutes; a client that nobody has admitted has less time for it. The connection of one that says nothing is closed.
    pub fn accept(connection: Connection) -> io::Result<Self> {
        Self::accept_within(connection, PATIENCE)
    }

    fn accept_within(connection: Connection, patience: Duration) -> io::Result<Self> {
        let deadline = Deadline::start(&connection, patience, "nothing was asked for");
        let heard = connection.accept_bi().map_err(io::Error::from).and_then(|(send, mut control_in)| {
            let opening = from_line(&mut control_in)?;
            Ok((send, control_in, opening))
        });
        if deadline.has_passed() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it asked for nothing in time"));
        }
        let (send, control_in, opening) = heard?;
        Ok(Self { connection, control_in, control_out: ControlOut::new(send), opening, places: Places::default() })
    }

    /// Chooses among these places where the client names none (`any:NAME`), and may do all that the account of this process may.
    #[must_use]
    pub fn choosing(self, places: Places) -> Self {
        Self { places, ..self }
    }

    /// The connection to the client.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Serves the client's one request; `limit` is this side's own. What is left to do then is to part.
    pub fn serve(
        mut self,
        access: &Access,
        limit: Option<BitRate>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> (Result<Report, CopyError>, Farewell) {
        let asked = self.opening.limit_bps.map(BitRate::from_bps).filter(|&rate| rate > BitRate::ZERO);
        let most = [limit, asked].into_iter().flatten().min();
        if most.is_some() {
            self.connection.set_rate_limit(most);
        }
        let (telemetry, packs) = match self.opening.purpose {
            Purpose::Status(_) => return self.tell_status(access, Vec::new(), cancel),
            Purpose::Kept => return self.tell_kept(access, observer),
            Purpose::Keep => return self.refuse_to_be_kept(),
            Purpose::Errands => return self.run_errands(access, observer, cancel),
            Purpose::Copy { telemetry, packs } => (telemetry, packs),
        };
        let replied = self.control_out.write_all(&served(packs));
        let (connection, control_out) = (self.connection, self.control_out);
        let result = replied.map_err(CopyError::Connection).and_then(|()| {
            let marks = Arc::<Marks>::default();
            let reports = telemetry.then(|| Telemetry::start(connection.clone(), Arc::clone(&marks)));
            let observer = &WithRoom { observer, telemetry: reports.as_ref() };
            let observer = &Noting { observer, marks: &marks };
            let link = Link {
                control_in: Box::new(self.control_in),
                control_out: Box::new(control_out.clone()),
                transport: Arc::new(
                    ConnectionTransport::bounded(connection.clone(), most)
                        .packing(packs.then(|| Arc::new(true.into())))
                        .noting(Arc::clone(&marks)),
                ),
            };
            let places = &self.places;
            let result = stores::serve(link, access, |asking| places.resolve(access, asking, cancel), observer, cancel);
            if result.is_ok() {
                marks.is_over();
            }
            drop(reports);
            result
        });
        // Where it failed, the engine has told the client why, if it could: that too is to arrive.
        let (code, reason) = match &result {
            Ok(_) => (CLOSE_DONE, "done".to_owned()),
            Err(error) => (CLOSE_ABORTED, error.to_string()),
        };
        (result, Farewell { connection, control_out, code, reason })
    }

    fn refuse_to_be_kept(mut self) -> (Result<Report, CopyError>, Farewell) {
        let refusal = Refusal { error: "this server is not one to be kept".into(), hint: None };
        let told = self.control_out.write_all(&to_line(&Reply::Refused(refusal.clone())));
        let error = told.err().unwrap_or_else(|| io::Error::new(io::ErrorKind::Unsupported, refusal));
        let Self { connection, control_out, .. } = self;
        let farewell = Farewell { connection, control_out, code: CLOSE_REFUSED, reason: error.to_string() };
        (Err(CopyError::Connection(error)), farewell)
    }

    fn run_errands(mut self, access: &Access, observer: &dyn Observer, cancel: &Cancel) -> (Result<Report, CopyError>, Farewell) {
        let replied = self.control_out.write_all(&served(false));
        let ready = replied.and_then(|()| errands::welcome(&mut self.control_out));
        let Self { connection, control_out, .. } = self;
        let result = ready.map(|()| errands::serve(&connection, access, observer, cancel)).map_err(CopyError::Connection);
        (result, Farewell { connection, control_out, code: CLOSE_DONE, reason: "done".to_owned() })
    }

    /// Tells a client that asked for it ([`Purpose::Status`]) how this machine is, and what is done for others on other connections.
    pub fn tell_status(
        mut self,
        access: &Access,
        work: Vec<WorkReport>,
        cancel: &Cancel,
    ) -> (Result<Report, CopyError>, Farewell) {
        let replied = self.control_out.write_all(&served(false));
        let path = if let Purpose::Status(path) = &self.opening.purpose { path.as_ref() } else { None };
        let report = StatusReport { work, ..StatusReport::of(access, &self.places, path, cancel) };
        let told = replied.and_then(|()| self.control_out.write_all(&to_line(&report))).and_then(|()| self.control_out.flush());
        let Self { connection, control_out, .. } = self;
        let result = told.map(|()| Report::default()).map_err(CopyError::Connection);
        (result, Farewell { connection, control_out, code: CLOSE_DONE, reason: "done".to_owned() })
    }

    /// Lists or discards what interrupted copies have kept, for a client that asked for it ([`Purpose::Kept`]).
    fn tell_kept(self, access: &Access, observer: &dyn Observer) -> (Result<Report, CopyError>, Farewell) {
        let Self { connection, control_in, mut control_out, .. } = self;
        let deadline = Deadline::start(&connection, PATIENCE, "nothing was asked for");
        let told = kept::answer(control_in, &mut control_out, access, observer);
        drop(deadline);
        let (code, reason) = match &told {
            Err(CopyError::Connection(error)) => (CLOSE_ABORTED, error.to_string()),
            _ => (CLOSE_DONE, "done".to_owned()),
        };
        let result = told.map(|()| Report::default());
        (result, Farewell { connection, control_out, code, reason })
    }

    /// Is kept by a client that asked for it ([`Purpose::Keep`]): `welcome` is told whom it names, and admits them, until the client ends the connection or is gone.
    pub fn keep(self, welcome: &mut dyn FnMut(Guest) -> Result<(), Unwelcome>, cancel: &Cancel) {
        let Self { connection, control_in, control_out, .. } = self;
        let closes = connection.clone();
        let _hook = cancel.on_cancel(move || closes.close(CLOSE_ABORTED, "this server was told to end"));
        let result = welcome_guests(control_in, control_out, welcome);
        tracing::debug!(?result, "kept no longer");
        connection.close(CLOSE_DONE, "done");
    }

    /// Tells the client why it is not served.
    pub fn refuse(mut self, refusal: &Refusal) {
        // A client that has gone needs no reply.
        let _ = self.control_out.write_all(&to_line(&Reply::Refused(refusal.clone())));
        let Self { connection, control_out, .. } = self;
        Farewell { connection, control_out, code: CLOSE_REFUSED, reason: refusal.error.to_string() }.part(&Cancel::new());
    }
}

/// The line that says to a client that it is served.
fn served(unpacks: bool) -> Vec<u8> {
    to_line(&Reply::Served { version: env!("CARGO_PKG_VERSION").into(), unpacks })
}

/// Refuses a client, in the reply to its opening.
pub fn refuse(connection: Connection, refusal: &Refusal) {
    if let Ok(session) = ServerSession::accept(connection) {
        session.refuse(refusal);
    }
}

/// Hears of the room at the destination, for the client.
struct WithRoom<'a> {
    observer: &'a dyn Observer,
    telemetry: Option<&'a Telemetry>,
}

impl Observer for WithRoom<'_> {
    fn event(&self, event: Event<'_>) {
        if let (Event::Room(space), Some(telemetry)) = (event, self.telemetry) {
            telemetry.room(space);
        }
        self.observer.event(event);
    }

    fn wants_files(&self) -> bool {
        self.observer.wants_files()
    }
}

/// How long a client may take to say what it wants. One that copies alone does so as soon as it is connected; one that talks to many servers may begin when the last of them is there.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a client may take to let the last report go out; it waits for that as long.
const LAST_REPORT: Duration = Duration::from_secs(1);

/// Sends reports until dropped.
struct Telemetry {
    /// Sends one now; dropped, it ends.
    now: Option<mpsc::SyncSender<()>>,
    room: Arc<Mutex<Option<Space>>>,
    /// Says nothing: its sender goes with the thread.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Telemetry {
    fn start(connection: Connection, marks: Arc<Marks>) -> Self {
        let (now, asked) = mpsc::sync_channel::<()>(1);
        let room = Arc::<Mutex<Option<Space>>>::default();
        let known = room.clone();
        let (ends, ended) = mpsc::channel();
        thread::spawn(move || {
            let _ends: mpsc::Sender<()> = ends;
            let (processor, mut machine) = (ProcessorWatch::start(), MachineWatch::start());
            let mut report = || ServerReport {
                path: PathReport::from(&connection.stats()),
                demand: processor.busiest(),
                learned: connection.learned().map(SavedPath::from),
                machine: Some(machine.report(*known.lock().unwrap_or_else(PoisonError::into_inner))),
                moments: marks.told(),
            };
            let Ok(mut stream) = connection.open_uni() else { return };
            // The first one says how busy the machine is with other things: the client may be about to decide whom to ask for what.
            if !report().write_to(&mut stream) {
                return;
            }
            while asked.recv_timeout(telemetry::INTERVAL) != Err(RecvTimeoutError::Disconnected) {
                if !report().write_to(&mut stream) {
                    return;
                }
            }
            // The last one is about the whole copy.
            report().write_to(&mut stream);
            let _ = stream.finish();
        });
        Self { now: Some(now), room, ended: Mutex::new(ended) }
    }

    /// So much room is left. The first time the client hears of it at once, for it may be about to decide what to send.
    fn room(&self, space: Space) {
        let before = self.room.lock().unwrap_or_else(PoisonError::into_inner).replace(space);
        if let Some(now) = self.now.as_ref().filter(|_| before.is_none()) {
            let _ = now.try_send(());
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        drop(self.now.take());
        // A client that gives no stream or no credit for it would be waited for without end. The end of the connection ends that thread, too.
        let _ = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).recv_timeout(LAST_REPORT);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig, TransportConfig};

    use super::*;
    use crate::clock;

    /// A listener, the end of a connection there, and the one that has called.
    pub fn connected() -> (Endpoint, Connection, Connection) {
        connected_to(TransportConfig::default())
    }

    /// The same, of one that has called with these settings.
    fn connected_to(transport: TransportConfig) -> (Endpoint, Connection, Connection) {
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = ClientConfig { transport, ..ClientConfig::new(PeerTrust::Anyone) };
        let client = here.connect(server.local_addr(), client).unwrap();
        let there = server.accept().unwrap();
        (server, there, client)
    }

    #[test]
    fn a_client_that_asks_for_nothing_is_parted_from() {
        let (_server, there, client) = connected();
        let result = ServerSession::accept_within(there, Duration::from_millis(50));
        assert_eq!(result.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        assert!(client.closed().to_string().contains("nothing was asked for"));
    }

    #[test]
    fn a_client_that_gives_no_stream_for_reports_is_not_waited_for() {
        let (_server, there, _client) = connected_to(TransportConfig { max_streams: 0, ..TransportConfig::default() });
        // Ends the connection, and so the wait, of a server that does wait.
        let deadline = Deadline::start(&there, Duration::from_secs(20), "it was waited for");
        drop(Telemetry::start(there, Arc::default()));
        assert!(!deadline.has_passed());
    }

    #[test]
    fn the_last_report_is_about_the_whole_copy() {
        let (_server, there, client) = connected();
        let marks = Arc::<Marks>::default();
        let reports = Telemetry::start(there.clone(), Arc::clone(&marks));
        marks.finishes(clock::now());
        marks.is_over();
        drop(reports);
        let latest = Mutex::new(None);
        telemetry::follow(client.accept_uni().unwrap(), &latest);
        let latest: Option<ServerReport> = *latest.lock().unwrap();
        assert!(latest.is_some_and(|report| report.moments.is_some()), "{latest:?}");
    }

    #[test]
    fn half_an_opening_is_none() {
        let (_server, there, client) = connected();
        let (mut control, _incoming) = client.open_bi().unwrap();
        control.write_all(b"{\"version\":").unwrap();
        let result = ServerSession::accept_within(there, Duration::from_millis(50));
        assert_eq!(result.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
    }

    #[test]
    fn an_opening_in_time_is_all_that_it_waits_for() {
        let (_server, there, client) = connected();
        let (mut control, _incoming) = client.open_bi().unwrap();
        control.write_all(&to_line(&Opening { version: "9".into(), ..Opening::default() })).unwrap();
        let session = ServerSession::accept_within(there, Duration::from_secs(600)).unwrap();
        assert_eq!(session.opening.version.to_string(), "9");
    }
}
