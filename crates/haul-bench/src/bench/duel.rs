//! A server on one host, a client on the other: the shape of every measurement in memory.

use std::io;
use std::process::Command;
use std::time::Duration;

use haul_lab::emulator::StartError;
use haul_lab::{Side, now};
use haul_units::Time;
use rustix::process::Signal;

use super::process::{Ended, Running, ScriptError};
use super::site::{Observer, Site};

/// Both programs, not started yet.
pub struct Duel {
    /// Runs on host b.
    pub server: Command,
    /// Runs on host a, once the server listens.
    pub client: Command,
    /// Where the server listens.
    pub listens: Listens,
    /// Asks a server to end that is still there when its time is over.
    pub end_by: Signal,
    /// From the start of the client to the end of the server, at most.
    pub at_most: Duration,
    /// How long the client may take to notice that the server has ended.
    pub farewell: Duration,
}

/// How to see that a server is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listens {
    /// At this TCP port.
    Tcp(u16),
    /// At this UDP port.
    Udp(u16),
}

/// What came of it.
pub struct Fought {
    /// What the server printed.
    pub server_output: String,
    /// What the client printed.
    pub client_output: String,
    /// How the server ended.
    pub server: Ended,
    /// How the client ended.
    pub client: Ended,
    /// Whether the server had to be asked to end.
    pub gave_up: bool,
}

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A program does not start, or cannot be waited for.
    #[error("cannot run {what}: {error}")]
    Start {
        /// Which one.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// It does not listen.
    #[error("the server does not listen: {0}")]
    NotListening(String),
    /// It ended with an error.
    #[error("the {who} ended with status {status}: {said}")]
    Ended {
        /// Server, client, or a program's name.
        who: &'static str,
        /// Its exit status.
        status: i32,
        /// Its last words.
        said: String,
    },
    /// A program that prepares has failed.
    #[error("{who}: {why}")]
    Script {
        /// Which program.
        who: &'static str,
        /// How.
        why: ScriptError,
    },
    /// What it printed is not understood.
    #[error("{who} printed something else than was expected: {said}")]
    Unexpected {
        /// Which program.
        who: &'static str,
        /// What is wrong with it.
        said: String,
    },
    /// What arrived is not what was sent.
    #[error("the files at the other end are not those that were sent: {0}")]
    Different(ScriptError),
    /// Somebody wants no more.
    #[error("interrupted")]
    Interrupted,
    /// No WAN.
    #[error("no WAN: {0}")]
    Site(StartError),
}

impl Duel {
    /// Runs both to their ends.
    pub fn fight(self, site: &dyn Site, observer: &dyn Observer) -> Result<Fought, MeasureError> {
        let start = |what, command| Running::start(command).map_err(|error| MeasureError::Start { what, error });
        let mut server = start("the server", self.server)?;
        wait_until_listening(site, &mut server, self.listens)?;
        let mut client = start("the client", self.client)?;
        let begin = now();
        let over = watch(&mut server, &mut client, begin + self.at_most, observer)?;
        let failed = |what| move |error| MeasureError::Start { what, error };
        if over == Over::ClientFailed {
            // What the server was waiting for does not come any more.
            let _ = server.end(Signal::KILL);
            let status = client.end(Signal::KILL).map_err(failed("the client"))?.status;
            return Err(MeasureError::Ended { who: "client", status, said: client.last_words() });
        }
        let gave_up = over == Over::TimeIsUp;
        let server_ended = server.end(self.end_by).map_err(failed("the server"))?;
        let client_ended = match client.wait_until(now() + self.farewell).map_err(failed("the client"))? {
            Some(ended) => ended,
            None => client.end(Signal::INT).map_err(failed("the client"))?,
        };
        if server_ended.status != 0 && !gave_up {
            return Err(MeasureError::Ended { who: "server", status: server_ended.status, said: server.last_words() });
        }
        Ok(Fought {
            server_output: server.stdout(),
            client_output: client.stdout(),
            server: server_ended,
            client: client_ended,
            gave_up,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    ServerEnded,
    ClientFailed,
    TimeIsUp,
}

/// Waits for the end of the server, for which a client that failed is another word.
fn watch(server: &mut Running, client: &mut Running, limit: Time, observer: &dyn Observer) -> Result<Over, MeasureError> {
    let failed = |error| MeasureError::Start { what: "a program", error };
    loop {
        if !observer.go_on() {
            return Err(MeasureError::Interrupted);
        }
        if server.wait_until(limit.min(now() + GLANCE)).map_err(failed)?.is_some() {
            return Ok(Over::ServerEnded);
        }
        let client_ended = client.wait_until(now()).map_err(failed)?;
        if client_ended.is_some_and(|ended| ended.status != 0) && server.wait_until(now() + GLANCE).map_err(failed)?.is_none() {
            return Ok(Over::ClientFailed);
        }
        if now() >= limit {
            return Ok(Over::TimeIsUp);
        }
    }
}

/// Waits until somebody listens at a port of host b.
pub fn wait_until_listening(site: &dyn Site, server: &mut Running, listens: Listens) -> Result<(), MeasureError> {
    let (option, port) = match listens {
        Listens::Tcp(port) => ("-Hlnt", port),
        Listens::Udp(port) => ("-Hlnu", port),
    };
    let failed = |error| MeasureError::Start { what: "ss", error };
    let limit = now() + START_LIMIT;
    while now() < limit {
        let mut command = site.command(Side::B, "ss".as_ref());
        command.args([option, &format!("sport = :{port}")]);
        if command.output().map_err(failed)?.stdout.contains(&b':') {
            return Ok(());
        }
        if let Some(ended) = server.wait_until(now() + GLANCE).map_err(failed)? {
            return Err(MeasureError::Ended { who: "server", status: ended.status, said: server.last_words() });
        }
    }
    Err(MeasureError::NotListening(server.last_words()))
}

/// How often other things than the end of a program are looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// A server that does not listen after this long never will.
const START_LIMIT: Duration = Duration::from_secs(10);
