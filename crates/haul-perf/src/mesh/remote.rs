//! What runs on the hosts of a mesh, through ssh: a server on each, and one client at a time.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use haul_peer::{SshCommand, SshOptions, quoted_word, spawn, ssh_names};
use haul_units::{Cancel, PeerText};
use serde_json::Value;

use super::hosts::Site;
use crate::clock;

/// How long a server may take to be there: a login, and a start.
const START: Duration = Duration::from_secs(30);
/// How often to look whether a client has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Output that is kept of a client: its JSON is far below.
const MAX_OUTPUT: u64 = 64 << 20;

/// Why there is no server at a site.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// ssh cannot be started.
    #[error("{}: {source}", program.display())]
    Ssh {
        /// The program that was to be ssh.
        program: OsString,
        /// What the system says.
        source: io::Error,
    },
    /// ssh, or haul at the site, says this.
    #[error("{0}")]
    Said(PeerText),
    /// Nothing was heard of it.
    #[error("no server there within {} s", START.as_secs())]
    Late,
    /// The thread that was to start it is gone.
    #[error("starting it failed")]
    Lost,
}

/// Why there is no result of one measurement.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// ssh cannot be started.
    #[error("{}: {source}", program.display())]
    Ssh {
        /// The program that was to be ssh.
        program: OsString,
        /// What the system says.
        source: io::Error,
    },
    /// The measurement failed there, for this reason.
    #[error("{0}")]
    Failed(PeerText),
    /// ssh, or haul at the site, says this.
    #[error("{0}")]
    Said(PeerText),
    /// It was cut short.
    #[error("interrupted")]
    Interrupted,
    /// It took too long.
    #[error("no result within {} s", .0.as_secs())]
    Late(Duration),
    /// It ended without a word.
    #[error("no result")]
    Silent,
    /// It is not the result of a measurement.
    #[error("its results make no sense")]
    Nonsense,
}

/// Why a pair has no results.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// There is no server at the receiving site.
    #[error("no server at {site}: {why}")]
    NoServer {
        /// Its name.
        site: String,
        /// Why not.
        why: Arc<StartError>,
    },
    /// The sending site could not be reached either.
    #[error("{site} is not reached: {why}")]
    NotReached {
        /// Its name.
        site: String,
        /// Why not.
        why: Arc<StartError>,
    },
    /// A measurement has no result.
    #[error("{what}: {why}")]
    Run {
        /// Over what: `haul` or `TCP`.
        what: &'static str,
        /// Why not.
        #[source]
        why: RunError,
    },
}

/// A server that runs at a site, until this is dropped.
pub struct Server {
    child: Child,
    /// Where the other sites reach it.
    pub address: String,
    /// Its port, UDP and TCP.
    pub port: u16,
    /// Fingerprint of its key.
    pub key: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its standard input ends the server, and that ends ssh.
        drop(self.child.stdin.take());
        let deadline = clock::now() + Duration::from_secs(5);
        while clock::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::park_timeout(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts one, on this port or on any free one, for measurements of so long.
    pub fn start(site: &Site, ssh: &SshOptions, port: u16, longest: Duration) -> Result<Self, StartError> {
        let words = words(port, longest);
        let command = SshCommand::running(ssh, &site.ssh, &words);
        let mut start = command.start();
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = spawn(start);
        let mut child = child.map_err(|source| StartError::Ssh { program: command.program().to_owned(), source })?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { unreachable!("both are pipes") };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Read on, so that it never writes to a full pipe.
                let _ = tell.send(line);
            }
        });
        let said = keep_last_line(stderr);
        let address = site.address.clone().unwrap_or_else(|| ssh_names(&command, &site.ssh.host.to_string_lossy()));
        let mut server = Self { child, address, port: 0, key: String::new() };
        let deadline = clock::now() + START;
        loop {
            let line = told.recv_timeout(deadline.saturating_duration_since(clock::now())).map_err(|_| {
                let why = said.recv_timeout(Duration::from_secs(1)).ok().flatten();
                why.map_or(StartError::Late, StartError::Said)
            })?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            if event["event"] == "listening" {
                server.port = event["data"]["port"].as_u64().and_then(|port| port.try_into().ok()).unwrap_or(0);
                event["data"]["key"].as_str().unwrap_or_default().clone_into(&mut server.key);
                return Ok(server);
            }
        }
    }
}

/// What a server is started by. Its own bound of time is an hour.
fn words(port: u16, longest: Duration) -> String {
    let most = longest.as_secs() + 1;
    format!("perf -s -p {port} --json-stream --until-input-ends --max-clients 2 --max-time {most}")
}

/// Runs a client at a site against a server; `options` are words of `haul perf`. Returns its JSON document.
pub fn measure(
    site: &Site,
    ssh: &SshOptions,
    server: &Server,
    options: &str,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Value, RunError> {
    let host = if server.address.contains(':') { format!("[{}]", server.address) } else { server.address.clone() };
    let target = quoted_word(&format!("{host}:{}", server.port));
    let words = format!("perf -c {target} --key {} -J {options}", quoted_word(&server.key));
    let command = SshCommand::running(ssh, &site.ssh, &words);
    let mut start = command.start();
    start.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn(start);
    let mut child = child.map_err(|source| RunError::Ssh { program: command.program().to_owned(), source })?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { unreachable!("both are pipes") };
    let output = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.take(MAX_OUTPUT).read_to_end(&mut bytes);
        bytes
    });
    let said = keep_last_line(stderr);
    let ended = wait(&mut child, clock::now() + limit, cancel);
    let bytes = output.join().unwrap_or_default();
    let document: Option<Value> = serde_json::from_slice(&bytes).ok();
    match document {
        Some(document) => match document["error"].as_str() {
            Some(error) => Err(RunError::Failed(error.into())),
            None => Ok(document),
        },
        None if cancel.is_cancelled() => Err(RunError::Interrupted),
        None if !ended => Err(RunError::Late(limit)),
        None => Err(said.recv_timeout(Duration::from_secs(1)).ok().flatten().map_or(RunError::Silent, RunError::Said)),
    }
}

/// Waits for the end; at the deadline, or when it is cancelled, by force.
fn wait(child: &mut Child, deadline: Instant, cancel: &Cancel) -> bool {
    loop {
        match child.try_wait() {
            Ok(None) if clock::now() < deadline && !cancel.is_cancelled() => thread::park_timeout(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// The most telling line of what a program says to its user: its `error:`, else the last one.
fn keep_last_line(stderr: impl io::Read + Send + 'static) -> mpsc::Receiver<Option<PeerText>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut kept: Option<PeerText> = None;
        for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if let Some(error) = line.strip_prefix("error: ") {
                kept = Some(error.into());
                break;
            }
            kept = Some(line.into());
        }
        let _ = tell.send(kept);
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_allows_what_is_to_be_measured() {
        for (longest, most) in [(Duration::from_secs(7200), 7201), (Duration::from_millis(500), 1)] {
            assert!(words(0, longest).ends_with(&format!(" --max-time {most}")), "{}", words(0, longest));
        }
    }
}
