//! The serving side of a copy.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::{Connection, RecvStream};
use haul_files::{Access, Cancel, CopyError, Link, Observer, Report};
use haul_units::BitRate;

use super::adapter::{ConnectionTransport, ControlOut};
use super::greeting::{Opening, Refusal, Reply, from_line, to_line};
use super::telemetry::{self, PathReport, ServerReport};
use super::{CLOSE_ABORTED, CLOSE_DONE, CLOSE_REFUSED};
use crate::processor::ProcessorWatch;

/// How long a client may take to close after the last word.
const FAREWELL: Duration = Duration::from_secs(2);

/// A client that has opened its control stream.
pub struct ServerSession {
    connection: Connection,
    control_in: RecvStream,
    control_out: ControlOut,
    /// What the client said.
    pub opening: Opening,
}

impl ServerSession {
    /// Waits for the client's opening.
    pub fn accept(connection: Connection) -> io::Result<Self> {
        let (send, mut control_in) = connection.accept_bi()?;
        let opening = from_line(&mut control_in)?;
        Ok(Self { connection, control_in, control_out: ControlOut::new(send), opening })
    }

    /// Serves the client's one request; `limit` is this side's own.
    pub fn serve(
        mut self,
        access: &Access,
        limit: Option<BitRate>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Report, CopyError> {
        let asked = self.opening.limit_bps.map(BitRate::from_bps).filter(|&rate| rate > BitRate::ZERO);
        if let Some(lower) = [limit, asked].into_iter().flatten().min() {
            self.connection.set_rate_limit(Some(lower));
        }
        let reply = to_line(&Reply::Served { version: env!("CARGO_PKG_VERSION").to_owned() });
        self.control_out.write_all(&reply).map_err(CopyError::Connection)?;
        let reports = self.opening.telemetry.then(|| Telemetry::start(self.connection.clone()));
        let link = Link {
            control_in: Box::new(self.control_in),
            control_out: Box::new(self.control_out.clone()),
            transport: Arc::new(ConnectionTransport(self.connection.clone())),
        };
        let result = haul_files::serve(link, access, observer, cancel);
        drop(reports);
        match &result {
            Ok(_) => {
                let _ = self.control_out.see_off();
                close_after_client(&self.connection, CLOSE_DONE, "done");
            }
            Err(error) => {
                // The engine has told the client why, where it could.
                let _ = self.control_out.see_off();
                close_after_client(&self.connection, CLOSE_ABORTED, &error.to_string());
            }
        }
        result
    }

    /// Tells the client why it is not served.
    pub fn refuse(mut self, refusal: &Refusal) {
        let reply = to_line(&Reply::Refused(refusal.clone()));
        if self.control_out.write_all(&reply).is_ok() {
            let _ = self.control_out.see_off();
        }
        close_after_client(&self.connection, CLOSE_REFUSED, &refusal.error);
    }
}

/// Refuses a client, in the reply to its opening.
pub fn refuse(connection: Connection, refusal: &Refusal) {
    if let Ok(session) = ServerSession::accept(connection) {
        session.refuse(refusal);
    }
}

/// The client closes when it has read everything; one that does not is cut off.
fn close_after_client(connection: &Connection, code: u64, reason: &str) {
    let (closed, when_closed) = mpsc::channel();
    let waiting = connection.clone();
    thread::spawn(move || {
        waiting.closed();
        let _ = closed.send(());
    });
    let _ = when_closed.recv_timeout(FAREWELL);
    connection.close(code, reason);
}

/// Sends reports until dropped.
struct Telemetry {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Telemetry {
    fn start(connection: Connection) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let processor = ProcessorWatch::start();
            let report = || ServerReport { path: PathReport::from(&connection.stats()), busiest: processor.busiest() };
            let Ok(mut stream) = connection.open_uni() else { return };
            while stopped.recv_timeout(telemetry::INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if !report().write_to(&mut stream) {
                    return;
                }
            }
            // The last one is about the whole copy.
            report().write_to(&mut stream);
            let _ = stream.finish();
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
