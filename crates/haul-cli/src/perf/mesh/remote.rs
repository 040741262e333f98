//! What runs on the hosts of a mesh, through ssh: a server on each, and one client at a time.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use haul_peer::{SshCommand, SshOptions, quoted_word, spawn, ssh_names};
use serde_json::Value;

use super::hosts::Site;
use crate::exit::Failure;
use crate::{clock, interrupt};

/// How long a server may take to be there: a login, and a start.
const START: Duration = Duration::from_secs(30);
/// How often to look whether a client has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Output that is kept of a client: its JSON is far below.
const MAX_OUTPUT: u64 = 64 << 20;

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
    /// Starts one, on this port or on any free one.
    pub fn start(site: &Site, ssh: &SshOptions, port: u16) -> Result<Self, Failure> {
        let words = format!("perf -s -p {port} --json-stream --until-input-ends --max-clients 2");
        let command = SshCommand::running(ssh, &site.ssh, &words);
        let mut start = command.start();
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = spawn(start);
        let mut child = child.map_err(|error| Failure::new(format!("{}: {error}", command.program().display())))?;
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
                Failure::new(why.unwrap_or_else(|| "no server there within 30 s".to_owned()))
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

/// Runs a client at a site against a server; `options` are words of `haul perf`. Returns its JSON document.
pub fn measure(site: &Site, ssh: &SshOptions, server: &Server, options: &str, limit: Duration) -> Result<Value, String> {
    let host = if server.address.contains(':') { format!("[{}]", server.address) } else { server.address.clone() };
    let target = quoted_word(&format!("{host}:{}", server.port));
    let words = format!("perf -c {target} --key {} -J {options}", quoted_word(&server.key));
    let command = SshCommand::running(ssh, &site.ssh, &words);
    let mut start = command.start();
    start.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn(start);
    let mut child = child.map_err(|error| format!("{}: {error}", command.program().display()))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { unreachable!("both are pipes") };
    let output = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.take(MAX_OUTPUT).read_to_end(&mut bytes);
        bytes
    });
    let said = keep_last_line(stderr);
    let ended = wait(&mut child, clock::now() + limit);
    let bytes = output.join().unwrap_or_default();
    let document: Option<Value> = serde_json::from_slice(&bytes).ok();
    match document {
        Some(document) => match document["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(document),
        },
        None if interrupt::requested() => Err("interrupted".to_owned()),
        None if !ended => Err(format!("no result within {} s", limit.as_secs())),
        None => Err(said.recv_timeout(Duration::from_secs(1)).ok().flatten().unwrap_or_else(|| "no result".to_owned())),
    }
}

/// Waits for the end; at the deadline, or when the user wants it, by force.
fn wait(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(None) if clock::now() < deadline && !interrupt::requested() => thread::park_timeout(LOOK),
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
fn keep_last_line(stderr: impl std::io::Read + Send + 'static) -> mpsc::Receiver<Option<String>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut kept: Option<String> = None;
        for line in BufReader::new(stderr).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if let Some(error) = line.strip_prefix("error: ") {
                kept = Some(error.to_owned());
                break;
            }
            kept = Some(line);
        }
        let _ = tell.send(kept);
    });
    told
}
