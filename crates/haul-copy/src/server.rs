//! The serving side of a copy.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use haul::{Connection, RecvStream};
use haul_files::store::Space;
use haul_files::{Access, CopyError, Event, Link, Observer, Report};
use haul_peer::{ControlOut, Farewell, Refusal, Reply, SavedPath, from_line, to_line};
use haul_units::{BitRate, Cancel};

use super::adapter::ConnectionTransport;
use super::opening::Opening;
use super::telemetry::{self, PathReport, ServerReport};
use super::{CLOSE_ABORTED, CLOSE_DONE, CLOSE_REFUSED};
use crate::machine::MachineWatch;
use crate::processor::ProcessorWatch;

/// A client that has opened its control stream.
pub struct ServerSession {
    connection: Connection,
    control_in: RecvStream,
    control_out: ControlOut,
    /// What the client said.
    pub opening: Opening,
}

impl ServerSession {
    /// Waits for the client's opening; a client that nobody has admitted has little time for it.
    pub fn accept(connection: Connection) -> io::Result<Self> {
        let (send, mut control_in) = connection.accept_bi()?;
        let opening = from_line(&mut control_in)?;
        Ok(Self { connection, control_in, control_out: ControlOut::new(send), opening })
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
        if let Some(lower) = [limit, asked].into_iter().flatten().min() {
            self.connection.set_rate_limit(Some(lower));
        }
        let reply = to_line(&Reply::Served { version: env!("CARGO_PKG_VERSION").into() });
        let replied = self.control_out.write_all(&reply);
        let (connection, control_out) = (self.connection, self.control_out);
        let result = replied.map_err(CopyError::Connection).and_then(|()| {
            let reports = self.opening.telemetry.then(|| Telemetry::start(connection.clone()));
            let observer = &WithRoom { observer, telemetry: reports.as_ref() };
            let link = Link {
                control_in: Box::new(self.control_in),
                control_out: Box::new(control_out.clone()),
                transport: Arc::new(ConnectionTransport(connection.clone())),
            };
            let result = haul_files::serve(link, access, observer, cancel);
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

    /// Tells the client why it is not served.
    pub fn refuse(mut self, refusal: &Refusal) {
        // A client that has gone needs no reply.
        let _ = self.control_out.write_all(&to_line(&Reply::Refused(refusal.clone())));
        let Self { connection, control_out, .. } = self;
        Farewell { connection, control_out, code: CLOSE_REFUSED, reason: refusal.error.to_string() }.part(&Cancel::new());
    }
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

/// Sends reports until dropped.
struct Telemetry {
    /// Sends one now; dropped, it ends.
    now: Option<mpsc::SyncSender<()>>,
    room: Arc<Mutex<Option<Space>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Telemetry {
    fn start(connection: Connection) -> Self {
        let (now, asked) = mpsc::sync_channel::<()>(1);
        let room = Arc::<Mutex<Option<Space>>>::default();
        let known = room.clone();
        let thread = thread::spawn(move || {
            let (processor, mut machine) = (ProcessorWatch::start(), MachineWatch::start());
            let mut report = || ServerReport {
                path: PathReport::from(&connection.stats()),
                busiest: processor.busiest(),
                learned: connection.learned().map(SavedPath::from),
                machine: Some(machine.report(*known.lock().unwrap_or_else(PoisonError::into_inner))),
            };
            let Ok(mut stream) = connection.open_uni() else { return };
            while asked.recv_timeout(telemetry::INTERVAL) != Err(RecvTimeoutError::Disconnected) {
                if !report().write_to(&mut stream) {
                    return;
                }
            }
            // The last one is about the whole copy.
            report().write_to(&mut stream);
            let _ = stream.finish();
        });
        Self { now: Some(now), room, thread: Some(thread) }
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
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
