//! The listening side: lets one client in after another, each checked by its key.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{BitRate, Connection, Endpoint, ServerConfig};
use haul_peer::{Refusal, StateDir, keys};

use super::{transfer, transport};
use crate::args::PipeArgs;
use crate::exit::{Exit, Failure, chain};
use crate::tunnel::{self, Ask, CLOSE_ABORTED, CLOSE_DONE, Session};
use crate::{interrupt, output};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Clients that have asked and wait to be served; more are turned away.
const MOST_WAITING: usize = 16;

/// Runs the listening side.
pub fn run(args: &PipeArgs, port: u16) -> Result<Exit, Failure> {
    let state = StateDir::find(args.state.as_deref())?;
    let (identity, _) = keys::load_or_make(&state)?;
    let key = identity.public_key().fingerprint();
    let config = ServerConfig {
        protocols: vec![tunnel::PROTOCOL.to_vec()],
        transport: transport(args),
        reset_key: keys::reset_key(&identity, "pipe", args.source, port),
        admission: keys::admission(args.anyone),
        ..ServerConfig::new(identity, keys::may_knock((!args.anyone).then_some(&state)))
    };
    let endpoint = listen(args, port, &config)?;
    if !args.quiet {
        let port = endpoint.local_addr().port();
        output::print_line(&format!("listening on UDP port {port}; on the other host: haul pipe --key {key} THIS_HOST {port}"));
    }
    let waiting = doorkeeper(endpoint.clone(), (!args.anyone).then_some(state), args.limit.map(|limit| limit.0));
    let mut served = 0;
    while !interrupt::requested() {
        let Ok(session) = waiting.recv_timeout(LOOK) else { continue };
        served += 1;
        let result = serve(args, session);
        match result {
            Ok(()) if args.keep => {}
            Err(failure) if args.keep && !interrupt::requested() => output::print_failure(&failure),
            result => {
                endpoint.close();
                return result.map(|()| Exit::Done);
            }
        }
    }
    endpoint.close();
    // With -k this is how it ends.
    if args.keep && served > 0 { Ok(Exit::Done) } else { Ok(Exit::Interrupted) }
}

fn serve(args: &PipeArgs, mut session: Session) -> Result<(), Failure> {
    let connection = session.connection.clone();
    let who = connection.remote_addr();
    let stop = Arc::new(AtomicBool::new(false));
    let moved = session.grant().and_then(|streams| transfer::run(&connection, streams, !args.detach, &stop));
    match moved {
        Ok(outcome) => {
            transfer::tell(args, &outcome);
            session.part(CLOSE_DONE, "done");
            Ok(())
        }
        Err(error) => {
            connection.close(CLOSE_ABORTED, &error.to_string());
            if interrupt::requested() {
                return Err(Failure::new("interrupted"));
            }
            Err(Failure::new(format!("{who}: {}", chain(&error))))
        }
    }
}

/// Lets clients in, each in a thread of its own, so that one that says nothing keeps nobody out.
fn doorkeeper(endpoint: Endpoint, state: Option<StateDir>, limit: Option<BitRate>) -> mpsc::Receiver<Session> {
    let (ready, waiting) = mpsc::sync_channel(0);
    let tickets = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        while let Ok(connection) = endpoint.accept_stranger() {
            let (ready, state, tickets) = (ready.clone(), state.clone(), Arc::clone(&tickets));
            thread::spawn(move || {
                let Some(session) = admit(connection, state.as_ref(), limit) else { return };
                if tickets.fetch_add(1, Ordering::AcqRel) < MOST_WAITING {
                    session.connection.admit(None);
                    // Dropped if nobody waits for it any more.
                    let _ = ready.send(session);
                } else {
                    session.connection.close(tunnel::CLOSE_REFUSED, "too many wait here");
                }
                tickets.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    waiting
}

fn admit(connection: Connection, state: Option<&StateDir>, limit: Option<BitRate>) -> Option<Session> {
    let session = Session::accept(connection).ok()?;
    let admitted = state.map_or(Ok(None), |state| keys::admit(state, &session.connection).map(Some));
    let most = admitted.as_ref().ok().and_then(|admitted| admitted.as_ref()?.rights.max_rate);
    if let Some(lower) = [limit, most].into_iter().flatten().min() {
        session.connection.set_rate_limit(Some(lower));
    }
    let refusal = match admitted.map(|admitted| admitted.and_then(|admitted| admitted.refuses(keys::Service::Pipe))) {
        Err(refusal) | Ok(Some(refusal)) => refusal,
        _ if session.ask == Ask::Pipe => return Some(session),
        _ => Refusal { error: "this is a pipe: it runs no commands".into(), hint: None },
    };
    session.refuse(&refusal);
    None
}

fn listen(args: &PipeArgs, port: u16, config: &ServerConfig) -> Result<Endpoint, Failure> {
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, port), config.clone());
    let bound = args.source.map_or_else(|| args.ssh.usual.family().listen(on), on);
    bound.map_err(|error| {
        Failure::new(format!("UDP port {port}: {error}")).hint("name another port, or none: a free one is taken")
    })
}
