//! The serving side of a tunnel.

use std::io::{self, BufReader, Write as _};
use std::thread;
use std::time::Duration;

use haul::{Connection, RecvStream, SendStream};
use haul_files::Cancel;
use haul_peer::{ControlOut, Farewell, Refusal, Reply, to_line};

use super::opening::{granted, read_ask};
use super::{Ask, CLOSE_ABORTED, CLOSE_DONE, CLOSE_REFUSED, command};

/// How often to look whether the tunnel is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A client that has asked for something.
pub struct Session {
    /// The connection to it.
    pub connection: Connection,
    /// What it wants.
    pub ask: Ask,
    /// Answers and frames go here.
    pub control_out: ControlOut,
    _control_in: BufReader<RecvStream>,
}

impl Session {
    /// Waits for what the client asks.
    pub fn accept(connection: Connection) -> io::Result<Self> {
        let (send, receive) = connection.accept_bi()?;
        let mut control_in = BufReader::new(receive);
        let ask = read_ask(&mut control_in)?;
        Ok(Self { connection, ask, control_out: ControlOut::new(send), _control_in: control_in })
    }

    /// Says yes; the data stream follows.
    pub fn grant(&mut self) -> io::Result<(SendStream, RecvStream)> {
        self.control_out.write_all(&granted())?;
        Ok(self.connection.accept_bi()?)
    }

    /// Says no, and waits until the client has heard it.
    pub fn refuse(mut self, refusal: &Refusal) {
        let _ = self.control_out.write_all(&to_line(&Reply::Refused(refusal.clone())));
        self.part(CLOSE_REFUSED, &refusal.error);
    }

    /// Sees the last word off; then the client closes, or this side does.
    pub fn part(self, code: u64, reason: &str) {
        let Self { connection, control_out, .. } = self;
        Farewell { connection, control_out, code, reason: reason.to_owned() }.part(&Cancel::new());
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
    end_when_cancelled(session.connection.clone(), cancel.clone());
    match std::mem::replace(&mut session.ask, Ask::Pipe) {
        Ask::Command(line) => {
            let streams = session.grant()?;
            let result = command::serve(&line, session.connection.clone(), streams, session.control_out.clone());
            match &result {
                Ok(()) => session.part(CLOSE_DONE, "done"),
                Err(error) => session.connection.close(CLOSE_ABORTED, &error.to_string()),
            }
            result.map(|()| true)
        }
        Ask::Pipe => {
            let error = "there is no program here to connect to".to_owned();
            session.refuse(&Refusal { error: error.into(), hint: Some("name a command after --".into()) });
            Ok(true)
        }
    }
}

/// A command that ssh's end finds running loses its connection, and with it its streams.
fn end_when_cancelled(connection: Connection, cancel: Cancel) {
    thread::spawn(move || {
        while !cancel.is_cancelled() {
            thread::park_timeout(LOOK);
        }
        connection.close(CLOSE_ABORTED, "ssh has ended");
    });
}
