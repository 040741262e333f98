//! The connecting side: to a `haul pipe -l`, or through ssh to a command.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use haul::{Connection, RecvStream};
use haul_peer::{Connector, DaemonHost, Host, Refusal, RepliedStream};

use super::connector;
use super::transfer::{self, Outcome};
use crate::args::PipeArgs;
use crate::exit::{Exit, Failure, chain, explained, refused};
use crate::interrupt;
use crate::output::PeerOutput;
use crate::tunnel::{Ask, CLOSE_ABORTED, CLOSE_DONE, Frame, Status, ask};

/// Another host, and how to get there.
pub struct Far {
    /// How.
    pub connector: Connector,
    /// Where.
    pub host: Host,
}

/// Connects to one that listens.
pub fn connect(args: &PipeArgs, host: &DaemonHost) -> Result<Exit, Failure> {
    let host = args.key.map_or_else(|| Host::Daemon(host.clone()), |key| Host::Pinned(host.clone(), key));
    let far = Far { connector: connector(args), host };
    let (outcome, _) = far.run(Ask::Pipe, !args.detach)?;
    transfer::tell(args, &outcome);
    Ok(Exit::Done)
}

/// Has a command run; gives its exit status.
pub fn run_command(far: &Far, line: Vec<u8>, reads: bool, tell: &dyn Fn(&Outcome)) -> Result<u8, Failure> {
    let (outcome, status) = far.run(Ask::Command(line), reads)?;
    tell(&outcome);
    match status {
        Some(status) => Ok(status.code()),
        None => Err(Failure::new(format!("{}: the connection ended before the command", far.host))),
    }
}

impl Far {
    fn run(&self, what: Ask, reads: bool) -> Result<(Outcome, Option<Status>), Failure> {
        let host = &self.host;
        let connected = self.connector.connect(host)?;
        let connection = connected.connection.clone();
        let failed = |error: &io::Error| explained(&connected, Failure::new(format!("{host}: {}", chain(error))));
        let asked = ask(&connection, what).map_err(|error| failed(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let control = watch(asked.control, connection.clone(), Arc::clone(&stop));
        let result = transfer::run(&connection, (asked.send, asked.receive), reads, &stop);
        match result {
            Ok(outcome) => {
                let said = control.join().unwrap_or(Ok(None));
                connection.close(CLOSE_DONE, "done");
                connected.part(self.connector.ssh.verbose);
                Ok((outcome, said.map_err(|error| self.refused(&error))?))
            }
            Err(_) if interrupt::requested() => {
                connection.close(CLOSE_ABORTED, "interrupted");
                Err(Failure::new("interrupted"))
            }
            Err(error) => {
                let ssh_has_ended = connected.ssh_has_ended();
                connection.close(CLOSE_ABORTED, "failed");
                // The answer to what was asked explains more than the end of the connection.
                match control.join() {
                    Ok(Err(refusal)) if refusal.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()).is_some() => {
                        Err(self.refused(&refusal))
                    }
                    _ if ssh_has_ended => Err(Failure::new(format!("{host}: ssh ended in the middle"))),
                    _ => Err(failed(&error)),
                }
            }
        }
    }

    fn refused(&self, error: &io::Error) -> Failure {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
            Some(refusal) => refused(&self.host, &refusal),
            None => Failure::new(format!("{}: {}", self.host, chain(error))),
        }
    }
}

/// Follows the control stream: standard error goes to ours, the exit status ends our input, a refusal ends everything.
fn watch(control: RecvStream, connection: Connection, stop: Arc<AtomicBool>) -> JoinHandle<io::Result<Option<Status>>> {
    thread::spawn(move || {
        let mut control = RepliedStream::new(control);
        let (mut ended, mut errors) = (None, PeerOutput::default());
        loop {
            match Frame::read_from(&mut control) {
                Ok(Frame::Error(bytes)) => {
                    errors.pass(&bytes);
                }
                Ok(Frame::Exit(status)) => {
                    stop.store(true, Ordering::Relaxed);
                    ended = Some(status);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    connection.close(CLOSE_ABORTED, "refused");
                    return Err(error);
                }
                // The end of the stream; read to here, so that the other side knows that it arrived.
                Err(_) => return Ok(ended),
            }
        }
    })
}
