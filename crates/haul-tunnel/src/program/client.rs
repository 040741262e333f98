//! The asking side: to one that listens, or through ssh to a command.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use haul::{Connection, RecvStream};
use haul_peer::{Connected, Connector, Host, Refusal, RepliedStream};

use super::error::TunnelError;
use super::exchange::{CommandEnd, Events, unless_cancelled};
use super::frame::{Frame, Status};
use super::local::Local;
use super::opening::{Ask, Asked, ask};
use super::own_end::OwnEnd;
use super::transfer::{self, Outcome};
use super::{BEGIN, CLOSE_ABORTED, CLOSE_DONE};

/// Another host, and how to get there.
#[derive(Clone)]
pub struct Far {
    /// How: for [`PROTOCOL`](super::PROTOCOL), with [`transport`](super::transport). What it is cancelled by also ends what runs here.
    pub connector: Connector,
    /// Where.
    pub host: Host,
}

/// How a command went.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// What was moved.
    pub outcome: Outcome,
    /// How it ended; none if the connection ended before it.
    pub status: Option<Status>,
}

impl Far {
    /// Connects this side's streams with those of the program that listens there, until both directions have ended.
    pub fn pipe(&self, local: Local) -> Result<Outcome, TunnelError> {
        self.pipe_told(local, |_| {})
    }

    /// The same; `on_connected` is called once, when the connection is there.
    pub fn pipe_told(&self, local: Local, on_connected: impl FnOnce(&Connection)) -> Result<Outcome, TunnelError> {
        Ok(self.run(Ask::Pipe, local, io::sink(), on_connected)?.outcome)
    }

    /// Has a line run by the user's shell there, over ssh; it has this side's streams until it ends. Its standard error goes to `errors` as it comes: a stranger's bytes, which whatever shows
    /// them cleans first. That nobody takes them any more does not end the command.
    pub fn command(&self, line: Vec<u8>, local: Local, errors: impl Write + Send + 'static) -> Result<Ran, TunnelError> {
        self.run(Ask::Command(line), local, errors, |_| {})
    }

    /// The same for whatever can be asked for; `on_connected` is called once, when the login is over and the connection is there.
    pub fn run(
        &self,
        what: Ask,
        local: Local,
        errors: impl Write + Send + 'static,
        on_connected: impl FnOnce(&Connection),
    ) -> Result<Ran, TunnelError> {
        let cancel = &self.connector.cancel;
        let connected = self.connector.connect(&self.host)?;
        let connection = connected.connection.clone();
        on_connected(&connection);
        let asked = ask(&connection, what).map_err(|error| self.broken(&connected, error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let Asked { control, control_out: _control_out } = asked;
        let events = Events::new();
        let control = watch(control, connection.clone(), Arc::clone(&stop), events.command_end(), errors);
        let streams = connection.open_bi().map_err(io::Error::from).and_then(|(mut send, receive)| {
            send.write_all(&BEGIN)?;
            Ok((send, receive))
        });
        let lifeline = connected.lifeline();
        let goes_on = || {
            unless_cancelled(cancel)?;
            if lifeline.holds() { Ok(()) } else { Err(io::Error::other("ssh has ended, and nobody is heard")) }
        };
        match streams.and_then(|streams| transfer::carry(&connection, streams, local, &stop, events, &goes_on)) {
            Ok(outcome) => {
                let said = control.join().unwrap_or(Ok(None));
                connection.close(CLOSE_DONE, "done");
                connected.part(self.connector.ssh.verbose);
                Ok(Ran { outcome, status: said.map_err(|refusal| self.refused(refusal))? })
            }
            Err(_) if cancel.is_cancelled() => {
                connection.close(CLOSE_ABORTED, "interrupted");
                Err(TunnelError::Cancelled)
            }
            Err(error) => {
                let ssh_has_ended = connected.ssh_has_ended();
                connection.close(CLOSE_ABORTED, "failed");
                // The answer to what was asked explains more than the end of the connection.
                match control.join() {
                    Ok(Err(refusal)) => Err(self.refused(refusal)),
                    _ if ssh_has_ended && !OwnEnd::is_in(&error) => Err(TunnelError::SshEnded { host: self.host.to_string() }),
                    _ => Err(self.broken(&connected, error)),
                }
            }
        }
    }

    fn refused(&self, refusal: Refusal) -> TunnelError {
        TunnelError::Refused { host: self.host.to_string(), refusal }
    }

    fn broken(&self, connected: &Connected, source: io::Error) -> TunnelError {
        match connected.cause() {
            Some(error) => TunnelError::Unreached(error),
            None => TunnelError::of(&self.host, source),
        }
    }
}

/// Follows the control stream: a command's standard error is passed on, its exit status ends our input, a refusal ends everything.
fn watch(
    control: RecvStream,
    connection: Connection,
    stop: Arc<AtomicBool>,
    end: CommandEnd,
    mut errors: impl Write + Send + 'static,
) -> JoinHandle<Result<Option<Status>, Refusal>> {
    thread::spawn(move || {
        let mut control = RepliedStream::new(control);
        let mut ended = None;
        loop {
            match Frame::read_from(&mut control) {
                Ok(Frame::Error(bytes)) => drop(errors.write_all(&bytes).and_then(|()| errors.flush())),
                Ok(Frame::Exit(status)) => {
                    stop.store(true, Ordering::Relaxed);
                    end.tell();
                    ended = Some(status);
                }
                Err(error) => match refusal_in(error) {
                    Some(refusal) => {
                        connection.close(CLOSE_ABORTED, "refused");
                        return Err(refusal);
                    }
                    // The end of the stream; read to here, so that the other side knows that it arrived.
                    None => return Ok(ended),
                },
            }
        }
    })
}

fn refusal_in(error: io::Error) -> Option<Refusal> {
    error.into_inner()?.downcast::<Refusal>().ok().map(|refusal| *refusal)
}
