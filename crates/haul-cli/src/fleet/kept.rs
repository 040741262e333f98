//! `haul fleet up`, `down`, `list`, and what uses a fleet that is up.
//!
//! ```text
//!   up           starts itself once more in a session of its own, waits for its word, and ends
//!     in_background   starts the members, says so on standard output, writes to its log file from then on, and keeps them
//! ```
//!
//! The keeper does nothing for a job but have the servers expect whoever runs it: `get --name` reads, writes and shows in its own process, with its own rights, mask and directory, and its end is the end of that job alone.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::TransportConfig;
use haul_fleet::told::since;
use haul_fleet::{Absent, Claim, Fleet, FleetName, JoinError, Session, SessionStatus, Setup, StartSpec, UpFleet, claim};
use haul_peer::{Tell, chain, spawn_apart};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::start::{NOBODY, hosts_spec, print_absent};
use crate::args::{FleetDownArgs, FleetListArgs, FleetUpArgs};
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::{clock, interrupt, logging, output};

/// How often is looked for an interrupt, or whether a fleet is still there.
const LOOK: Duration = Duration::from_millis(50);
/// How long the end of a fleet may take: members save what has arrived, and ssh parts.
const DOWN: Duration = Duration::from_secs(20);

/// Starts a fleet that stays.
pub fn up(args: &FleetUpArgs) -> Result<Exit, Failure> {
    let name = FleetName::new(&args.name)?;
    if args.foreground || args.in_background {
        return keep(args, &name);
    }
    logging::start(logging::Audience::Person, 0, false);
    // What is wrong with the words is said before anything starts.
    hosts_spec(&args.hosts)?;
    interrupt::watch_connecting();
    // The one that starts the servers has something to end.
    interrupt::under_way();
    let exe = env::current_exe().map_err(|error| Failure::new(format!("where is this program? {error}")))?;
    let mut command = Command::new(exe);
    command.args(env::args_os().skip(1)).arg("--in-background").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = spawn_apart(command).map_err(|error| Failure::new(format!("the keeper cannot be started: {error}")))?;
    let Some(stdout) = child.stdout.take() else { unreachable!("it was asked for as a pipe") };
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let events = BufReader::new(stdout).lines().map_while(Result::ok);
        events.filter_map(|line| serde_json::from_str::<Value>(&line).ok()).try_for_each(|event| tell.send(event))
    });
    let mut asked = false;
    let ready = loop {
        match told.recv_timeout(LOOK) {
            Ok(event) if event["event"] == "up" => break Some(event),
            Ok(event) if args.json => output::print_event(&event),
            Ok(_) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
        if interrupt::requested() && !std::mem::replace(&mut asked, true) {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
    };
    let Some(ready) = ready else {
        // It has said why.
        let _ = child.wait();
        return Ok(if asked { Exit::Interrupted } else { Exit::Failed });
    };
    if args.json {
        output::print_event(&ready);
    } else {
        let (servers, absent) = (ready["servers"].as_u64().unwrap_or(0), ready["absent"].as_u64().unwrap_or(0));
        let log = ready["log"].as_str().unwrap_or_default();
        output::print_line(&format!("{name} is up: {}; log: {log}", count(servers, absent)));
    }
    Ok(if ready["absent"] == 0 { Exit::Done } else { Exit::Partial })
}

fn count(servers: u64, absent: u64) -> String {
    let noun = if servers == 1 { "server" } else { "servers" };
    if absent == 0 { format!("{servers} {noun}") } else { format!("{servers} {noun}, {absent} left out") }
}

/// Is the keeper.
fn keep(args: &FleetUpArgs, name: &FleetName) -> Result<Exit, Failure> {
    interrupt::watch_connecting();
    let claim = claim(name)?;
    let log = if args.in_background { Some(log_file(args, &claim)?) } else { None };
    let spec = hosts_spec(&args.hosts)?;
    let transport = TransportConfig { controller: args.mode, ..spec.transport.clone() };
    let spec = StartSpec { ssh: args.hosts.ssh.options(false, false), transport, ..spec };
    let wanted = spec.hosts.len();
    let tell: Arc<dyn Tell> = Arc::new(User);
    let (session, absent) = Setup::from(spec).start(&tell, interrupt::cancel())?;
    let left_out = absent.len();
    for absent in absent {
        if args.json || args.in_background {
            output::print_event(&json!({ "event": "absent", "member": absent.name, "why": chain(&absent.why) }));
        }
        print_absent(absent);
    }
    if left_out >= wanted {
        return Err(Failure::new(NOBODY));
    }
    let servers = wanted - left_out;
    // From here on others find it: those who hear of it by the next line among them.
    let keeper = claim.open()?;
    if args.json || args.in_background {
        let path = log.as_ref().map(|(path, _)| path.display().to_string());
        let pid = std::process::id();
        let event = json!({ "event": "up", "name": args.name, "servers": servers, "absent": left_out, "pid": pid, "log": path });
        output::print_event(&event);
    } else {
        output::print_line(&format!("{name} is up: {}", count(servers as u64, left_out as u64)));
    }
    if let Some((path, file)) = &log {
        write_to(path, file)?;
    }
    // Where it is a file by now, without colours.
    logging::start(logging::Audience::Operator, 0, false);
    interrupt::under_way();
    tracing::info!(name = name.as_str(), servers, left_out, socket = %keeper.claim().socket().display(), "up");
    let gone = |gone: &haul_fleet::Gone| tracing::warn!(server = gone.name, why = gone.why, "gone");
    session.keep_at(keeper, &gone, interrupt::cancel())?;
    tracing::info!(name = name.as_str(), "down");
    Ok(Exit::Done)
}

fn log_file(args: &FleetUpArgs, claim: &Claim) -> Result<(PathBuf, File), Failure> {
    let path = args.log_file.clone().unwrap_or_else(|| claim.socket().with_file_name(format!("{}.log", claim.name())));
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = opened.map_err(|error| log_fails(&path, &error))?;
    Ok((path, file))
}

/// Has everything that is printed from now on go there; whoever waits for this process's word has it.
fn write_to(path: &Path, file: &File) -> Result<(), Failure> {
    let moved = rustix::stdio::dup2_stdout(file).and_then(|()| rustix::stdio::dup2_stderr(file));
    moved.map_err(|errno| log_fails(path, &errno.into()))
}

fn log_fails(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).hint("name another file with --log-file")
}

/// Ends a fleet.
pub fn down(args: &FleetDownArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, 0, false);
    interrupt::watch_connecting();
    attach(&args.name)?.stop(interrupt::cancel())?;
    // Its socket goes last.
    let until = clock::now() + DOWN;
    while attach(&args.name).is_ok() {
        if clock::now() > until {
            return Err(Failure::new(format!("{} has been told to end, and has not yet", args.name)));
        }
        if interrupt::requested() {
            return Ok(Exit::Interrupted);
        }
        clock::pause(LOOK);
    }
    Ok(Exit::Done)
}

/// Shows what is up.
pub fn list(args: &FleetListArgs) -> Exit {
    logging::start(logging::Audience::Person, 0, false);
    interrupt::watch_connecting();
    let fleets = haul_fleet::up(interrupt::cancel());
    if args.json {
        for fleet in &fleets {
            let UpFleet { name, members, gone, up, pid } = fleet;
            let (name, up_s) = (name.as_str(), up.as_secs());
            output::print_event(&json!({ "name": name, "servers": members, "gone": gone, "up_s": up_s, "pid": pid }));
        }
        return Exit::Done;
    }
    if fleets.is_empty() {
        output::print_line("no fleet is up");
        return Exit::Done;
    }
    let width = fleets.iter().map(|fleet| fleet.name.as_str().len()).max().unwrap_or(0).max(4);
    output::out_lines(&format!("{:<width$}  {:>7}  {:>4}  {:>9}  {:>8}", "NAME", "SERVERS", "GONE", "UP", "PID"));
    for UpFleet { name, members, gone, up, pid } in &fleets {
        output::out_lines(&format!("{:<width$}  {members:>7}  {gone:>4}  {:>9}  {pid:>8}", name.as_str(), since(up.as_secs())));
    }
    Exit::Done
}

/// Connects with the servers of a fleet that is up, for one job.
pub fn join(name: &str, absent: &mut dyn FnMut(&Absent)) -> Result<Fleet, Failure> {
    let mut fleet = attach(name)?.join(interrupt::cancel())?;
    for left_out in std::mem::take(&mut fleet.absent) {
        absent(&left_out);
        print_absent(left_out);
    }
    Ok(fleet)
}

/// How a fleet that is up is.
pub fn status(name: &str) -> Result<SessionStatus, Failure> {
    Ok(attach(name)?.status(interrupt::cancel())?)
}

fn attach(name: &str) -> Result<Session, JoinError> {
    let tell: Arc<dyn Tell> = Arc::new(User);
    Session::attach(&FleetName::new(name)?, &tell)
}
