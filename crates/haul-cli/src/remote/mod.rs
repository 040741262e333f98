//! `haul remote`: the far side of a copy, a measurement, a tunnel or a proxy, started through ssh.
//!
//! It takes a greeting, a word of its command line or a line of standard input, listens on a UDP port, says so on standard output, and serves one copy to the one key that the
//! greeting names, or is kept by it for several (`haul_fleet::Service`; not on Windows). When standard input ends, so does it: the near side has gone, or the copy is over. Where ssh's connection was lost and the near side is heard all the same, it
//! goes on: an address can change under both, and only one of them follows. What it may serve, its own options say (`haul_serve::Confined`).

#[cfg(windows)]
mod copies;
#[cfg(unix)]
mod fleet;

use std::env;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(windows)]
use copies::Service;
use haul::Connection;
use haul_copy::{CLOSE_REFUSED, PROTOCOL};
use haul_files::Cancel;
#[cfg(unix)]
use haul_fleet::Service;
use haul_peer::{ClientHello, FarSide, MAX_LINE, RemoteAnswer, RemoteHello, greeting_in};
use haul_serve::{Confined, Errand};
use haul_tunnel::{program, proxy};

use crate::args::RemoteArgs;
use crate::exit::{Exit, Failure, SAME_VERSION};
use crate::output::ProxyReport;
use crate::{clock, config, logging, perf, system};

/// What still hangs when everything has been told to end gets this long.
const LAST: Duration = Duration::from_secs(1);
/// sshd closes what it shares with a session one after the other.
const CLOSING: Duration = Duration::from_millis(200);

/// Runs the command.
pub fn run(args: &RemoteArgs) -> Result<Exit, Failure> {
    if io::stdin().is_terminal() {
        return Err(
            Failure::new("`haul remote` is the far side of a copy").hint("`haul cp` starts it through ssh; nobody else needs to")
        );
    }
    system::call_this_haul();
    // Silent unless RUST_LOG is set there: what it prints comes out at the user's side.
    logging::start(logging::Audience::Person, 0, true);
    #[cfg(unix)]
    if let Some(summons) = fleet::summons(args) {
        return fleet::answer(args, &summons);
    }
    let confined = Confined::new(&args.bounds()).map_err(Failure::from);
    let prepared = match &confined {
        Ok(confined) => {
            confined.lock_in();
            prepare(args)
        }
        Err(failure) => Err(failure.clone()),
    };
    let (far, answer) = match prepared {
        Ok((far, hello)) => {
            let start_us = u64::try_from(clock::since_begin().as_micros()).ok();
            (Some(far), RemoteAnswer::Ready(RemoteHello { start_us, ..hello }))
        }
        Err(Failure { message, hint }) => {
            // A person who has logged in reads this.
            let _ = writeln!(io::stderr(), "haul remote: {message}");
            (None, RemoteAnswer::Failed { error: message.into(), hint: hint.map(Into::into) })
        }
    };
    let mut stdout = io::stdout().lock();
    let said = stdout.write_all(answer.to_line().as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);
    match (far, confined) {
        (Some(far), Ok(confined)) if said.is_ok() => {
            let has_greeting = args.greeting.is_some() || env::var_os("SSH_ORIGINAL_COMMAND").is_some();
            Ok(serve(&far, confined, has_greeting))
        }
        _ => Ok(Exit::Failed),
    }
}

/// Everything up to the answer.
fn prepare(args: &RemoteArgs) -> Result<(FarSide, RemoteHello), Failure> {
    let protocols = [PROTOCOL, haul_perf::PROTOCOL, program::PROTOCOL, proxy::PROTOCOL];
    Ok(FarSide::listen(&greeting(args)?, &protocols, env::var("SSH_CONNECTION").ok().as_deref())?)
}

/// What the near side says first.
fn greeting(args: &RemoteArgs) -> Result<ClientHello, Failure> {
    let unclear = || other_version("its greeting cannot be understood");
    if let Some(word) = &args.greeting {
        return ClientHello::from_word(word).ok_or_else(unclear);
    }
    if let Some(command) = env::var_os("SSH_ORIGINAL_COMMAND") {
        let command = command.to_string_lossy();
        return greeting_in(&command).and_then(ClientHello::from_word).ok_or_else(for_haul_only);
    }
    let line = read_line()?;
    if line.is_empty() {
        return Err(for_haul_only());
    }
    ClientHello::from_line(&line).map_err(|_| unclear())
}

fn read_line() -> Result<Vec<u8>, Failure> {
    let mut line = Vec::new();
    let read = io::stdin().lock().take(MAX_LINE).read_until(b'\n', &mut line);
    read.map_err(|error| Failure::new(format!("reading the greeting: {error}")))?;
    Ok(line)
}

fn serve(far: &FarSide, confined: Confined, has_greeting: bool) -> Exit {
    end_with_stdin(far.clone(), has_greeting);
    let ports = far.ports();
    let side = far.clone();
    let service = Service::new(confined.access(), config::places(), confined.refuses(Errand::Cp));
    let served = far.serve(move |connection, cancel| match errand(&connection) {
        Errand::Cp => service.serve_at(&side, connection, cancel),
        errand if side.is_of_client(&connection) => serve_one(connection, errand, ports.clone(), &confined, cancel),
        _ => {
            connection.close(CLOSE_REFUSED, "guests of a client copy, and do nothing else");
            false
        }
    });
    if served { Exit::Done } else { Exit::Failed }
}

/// What a connection is for.
fn errand(connection: &Connection) -> Errand {
    match connection.protocol().as_deref() {
        Some(haul_perf::PROTOCOL) => Errand::Perf,
        Some(proxy::PROTOCOL) => Errand::Proxy,
        Some(program::PROTOCOL) => Errand::Tunnel,
        _ => Errand::Cp,
    }
}

/// Serves what is no copy. True if this was what the client had come for, however it went; the client tells its user.
fn serve_one(
    connection: Connection,
    errand: Errand,
    tcp_ports: RangeInclusive<u16>,
    confined: &Confined,
    cancel: &Cancel,
) -> bool {
    let refusal = confined.refuses(errand);
    match errand {
        Errand::Perf => match refusal {
            Some(refusal) => haul_perf::refuse(&connection, &refusal),
            None => measure_one(&connection, tcp_ports, cancel),
        },
        Errand::Proxy => {
            let report = Arc::new(ProxyReport { json: false });
            proxy::serve_account(&connection, refusal, report, cancel).unwrap_or_else(|error| {
                connection.close(program::CLOSE_ABORTED, &error.to_string());
                true
            })
        }
        Errand::Tunnel => program::serve_account(connection, refusal, cancel).unwrap_or_else(|error| {
            tracing::debug!(%error, "the tunnel broke");
            true
        }),
        Errand::Cp => false,
    }
}

/// As [`serve_one`], for `haul perf`.
fn measure_one(connection: &Connection, tcp_ports: RangeInclusive<u16>, cancel: &Cancel) -> bool {
    let mut asked = false;
    let served = haul_perf::serve(connection, &perf::bounds(None, tcp_ports), cancel, |_| {
        asked = true;
        Ok(())
    });
    if let Err(error) = served {
        tracing::debug!(%error, "the measurement failed");
    }
    asked
}

/// Follows standard input, which may carry what UDP does not: its end is the near side's. `has_greeting`: that stands there once more.
fn end_with_stdin(far: FarSide, has_greeting: bool) {
    thread::spawn(move || {
        far.follow(io::stdin(), io::stdout(), has_greeting);
        // The near side ends this one by closing standard input alone; where both are closed, ssh itself is gone.
        far.end(system::is_stdout_gone(CLOSING));
        // If something still hangs, nobody is left to wait for it.
        thread::park_timeout(LAST);
        std::process::exit(i32::from(Exit::Failed.code()));
    });
}

/// The login was used for something else.
fn for_haul_only() -> Failure {
    Failure::new("this login serves haul only: no shell, no other commands")
        .hint("haul cp, perf, proxy, pipe and rsync reach it by themselves")
}

fn other_version(why: &str) -> Failure {
    Failure::new(format!("the haul that called is of another version: {why}")).hint(SAME_VERSION)
}
