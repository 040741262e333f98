//! The serving side of a tunnel.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use haul::{Connection, RecvStream, SendStream};
use haul_peer::keys::Stay;
use haul_peer::{ControlOut, Farewell, Place, Refusal, Reply, to_line};
use haul_units::{Cancel, PeerText};

use super::error::TunnelError;
use super::exchange::{Events, Stop, exchange, unless_cancelled};
use super::frame::{Frame, Status};
use super::local::Local;
use super::opening::{Ask, granted, read_ask};
use super::outlet::Outlet;
use super::transfer::{self, Outcome};
use super::{BEGIN, CLOSE_ABORTED, CLOSE_DONE, CLOSE_REFUSED, command, subsystem};
use crate::reset::resets_when_dropped;
use crate::visits::Record;

/// A client that has asked for something.
pub struct Session {
    /// The connection to it.
    pub(super) connection: Connection,
    /// What it wants.
    pub(super) ask: Ask,
    /// Answers and frames go here.
    control_out: ControlOut,
    /// Its place among the clients, and the watch over its key.
    pub(super) place: Option<Place>,
    pub(super) stay: Option<Stay>,
    /// The version of its program.
    pub(super) version: PeerText,
    /// What is kept of it, at a listener.
    pub(super) record: Option<Record>,
    _control_in: BufReader<RecvStream>,
}

impl Session {
    /// Waits for what the client asks.
    pub(super) fn accept(connection: Connection) -> io::Result<Self> {
        let (send, receive) = connection.accept_bi()?;
        let mut control_in = BufReader::new(receive);
        let (ask, version) = read_ask(&mut control_in)?;
        let control_out = ControlOut::new(send);
        Ok(Self { connection, ask, control_out, place: None, stay: None, version, record: None, _control_in: control_in })
    }

    /// Connects the client's streams with these, until both directions have ended. Then the client is waiting to be [parted](Self::part) from.
    pub fn carry(&mut self, local: Local, cancel: &Cancel) -> Result<Outcome, TunnelError> {
        let connection = self.connection.clone();
        let cut = connection.clone();
        // Also a client that opens no stream is not waited for.
        let _hook = cancel.on_cancel(move || cut.close(CLOSE_ABORTED, "interrupted"));
        let goes_on = || unless_cancelled(cancel);
        let moved = self
            .grant()
            .and_then(|streams| transfer::carry(&connection, streams, local, &Arc::default(), Events::new(), &goes_on));
        if let (Some(record), Ok(outcome)) = (&self.record, &moved) {
            record.moved(outcome.ends.sent, outcome.ends.received);
        }
        moved.map_err(|source| {
            connection.close(CLOSE_ABORTED, &source.to_string());
            if cancel.is_cancelled() {
                return TunnelError::Cancelled;
            }
            TunnelError::of(connection.remote_addr(), source)
        })
    }

    /// Lets the client hear that all is done, for as long as this is not cancelled.
    pub fn part(self, cancel: &Cancel) {
        self.end(CLOSE_DONE, "done", cancel);
    }

    /// Says yes; the data stream follows.
    fn grant(&mut self) -> io::Result<(SendStream, RecvStream)> {
        self.control_out.write_all(&granted())?;
        let (send, mut receive) = self.connection.accept_bi()?;
        receive.read_exact(&mut [0; BEGIN.len()])?;
        Ok((send, receive))
    }

    /// Says no, and waits until the client has heard it.
    pub(super) fn refuse(mut self, refusal: &Refusal) {
        let _ = self.control_out.write_all(&to_line(&Reply::Refused(refusal.clone())));
        self.end(CLOSE_REFUSED, &refusal.error, &Cancel::new());
    }

    /// Sees the last word off; then the client closes, or this side does.
    fn end(self, code: u64, reason: &str, hurry: &Cancel) {
        let Self { connection, control_out, .. } = self;
        Farewell { connection, control_out, code, reason: reason.to_owned() }.part(hurry);
    }
}

/// Serves somebody who has logged in as this user: everything that the user could do, unless it is to be refused. False if the client asked for nothing: it has lost the race
/// against itself over another address.
pub fn serve_account(connection: Connection, refusal: Option<Refusal>, cancel: &Cancel) -> io::Result<bool> {
    let Ok(mut session) = Session::accept(connection) else { return Ok(false) };
    if let Some(refusal) = refusal {
        session.refuse(&refusal);
        return Ok(true);
    }
    // A command that ssh's end finds running loses its connection, and with it its streams.
    let connection = session.connection.clone();
    let _hook = cancel.on_cancel(move || connection.close(CLOSE_ABORTED, "ssh has ended"));
    let result = match std::mem::replace(&mut session.ask, Ask::Pipe) {
        Ask::Command(line) => session.run(&line),
        Ask::Subsystem(name) => match subsystem::line(name.as_str()) {
            Ok(line) => session.run(&line),
            Err(refusal) => {
                session.refuse(&refusal);
                return Ok(true);
            }
        },
        Ask::Connect(to) => match TcpStream::connect(to.as_str()) {
            Ok(stream) => session.forward(&stream, cancel),
            Err(error) => {
                session.refuse(&Refusal { error: format!("{to}: {error}").into(), hint: None });
                return Ok(true);
            }
        },
        Ask::Stay => session.grant().map(|_streams| session.connection.closed()).map(drop),
        Ask::Pipe => {
            let error = "there is no program here to connect to".to_owned();
            session.refuse(&Refusal { error: error.into(), hint: Some("name a command after --".into()) });
            return Ok(true);
        }
    };
    match &result {
        Ok(()) => session.part(cancel),
        Err(error) => session.connection.close(CLOSE_ABORTED, &error.to_string()),
    }
    result.map(|()| true)
}

impl Session {
    fn run(&mut self, line: &[u8]) -> io::Result<()> {
        let streams = self.grant()?;
        command::serve(line, self.connection.clone(), streams, self.control_out.clone())
    }

    /// The client's streams are this connection's until both of its directions have ended.
    fn forward(&mut self, stream: &TcpStream, cancel: &Cancel) -> io::Result<()> {
        // As sshd does for what it forwards: small words of programs are not held back.
        stream.set_nodelay(true)?;
        resets_when_dropped(stream, true);
        let streams = self.grant()?;
        let (input, output) = (stream.try_clone()?, HalfClosed(stream.try_clone()?));
        let goes_on = || unless_cancelled(cancel);
        if let Err(error) = exchange(input, output, streams, Stop::AtEnd, Events::new(), &goes_on) {
            // Whoever still reads from it lets it go.
            let _ = stream.shutdown(Shutdown::Read);
            return Err(error);
        }
        resets_when_dropped(stream, false);
        Frame::Exit(Status::Code(0)).write_to(&mut self.control_out)?;
        self.control_out.finish()
    }
}

/// The way out of a TCP connection: its end is the end of what is sent there.
struct HalfClosed(TcpStream);

impl io::Write for HalfClosed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Outlet for HalfClosed {
    fn end(&mut self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
