//! `haul pipe`: standard input and output, connected to a program on another host.

use std::ffi::OsString;
use std::sync::Arc;

use haul::{BitRate, Bytes, TransportConfig};
use haul_peer::keys::Service;
use haul_peer::{Connector, DaemonHost, Host, SshHost, StateDir, keys};
use haul_serve::{Audit, Visitors};
use haul_tunnel::program::{self, Far, ListenSettings, Listener, Local, Outcome, Session};
use serde_json::json;

use crate::args::PipeArgs;
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::orders::Carried;
use crate::output::PeerOutput;
use crate::{config, interrupt, logging, output, system};

/// The arguments, with what the configuration file says of the host.
pub fn configured(args: PipeArgs, arguments: Vec<OsString>) -> Result<PipeArgs, Failure> {
    match Role::of(&args)? {
        Role::Listen { .. } => Ok(args),
        Role::Connect { host } => Ok(config::command_line(arguments)?.of(Some(&Host::Daemon(host)))?),
        Role::Command { host, .. } => Ok(config::command_line(arguments)?.of(Some(&Host::Ssh(host)))?),
    }
}

/// Runs the command.
pub fn run(args: &PipeArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    let role = Role::of(args)?;
    if args.audit.audit.is_some() && !args.listen {
        return Err(Failure::new("--audit is about who comes, so it goes with -l"));
    }
    match role {
        Role::Listen { .. } => interrupt::watch(),
        Role::Connect { .. } | Role::Command { .. } => interrupt::watch_connecting(),
    }
    match role {
        Role::Listen { port } => listen(args, port),
        Role::Connect { host } => connect(args, host),
        Role::Command { host, line } => {
            let far = Far { connector: connector(args), host: Host::Ssh(host) };
            run_command(&far, line, args).map(Exit::Code)
        }
    }
}

/// Waits for one client, or for one after another.
fn listen(args: &PipeArgs, port: u16) -> Result<Exit, Failure> {
    let state = StateDir::find(args.state.as_deref())?;
    let (identity, _) = keys::load_or_make(&state)?;
    let key = identity.public_key().fingerprint();
    let audit = Arc::new(Audit::open(args.audit.to().as_ref(), None)?);
    let listener = Listener::bind(ListenSettings {
        identity,
        authorized: (!args.anyone).then_some(state),
        address: args.source,
        family: args.ssh.usual.family(),
        port,
        transport: transport(args),
        guests: program::guests(),
        visits: Arc::new(Visitors::to(Service::Pipe, args.anyone, &audit)),
    })?;
    let _running = audit.started(listener.local_addr(), key);
    if !args.quiet {
        let port = listener.local_addr().port();
        output::print_line(&format!("listening on UDP port {port}; on the other host: haul pipe --key {key} THIS_HOST {port}"));
    }
    let mut served = 0;
    while let Some(session) = listener.next(interrupt::cancel())? {
        served += 1;
        match serve(args, session) {
            Ok(()) if args.keep => {}
            Err(failure) if args.keep && !interrupt::requested() => output::print_failure(&failure),
            result => return result.map(|()| Exit::Done),
        }
    }
    // With -k this is how it ends.
    if args.keep && served > 0 { Ok(Exit::Done) } else { Ok(Exit::Interrupted) }
}

fn serve(args: &PipeArgs, mut session: Session) -> Result<(), Failure> {
    let outcome = session.carry(standard(!args.detach)?, interrupt::cancel())?;
    tell(args, &outcome);
    session.part(interrupt::cancel());
    Ok(())
}

/// Connects to one that listens.
fn connect(args: &PipeArgs, host: DaemonHost) -> Result<Exit, Failure> {
    let host = match args.key {
        Some(key) => Host::Pinned(host, key),
        None => Host::Daemon(host),
    };
    let far = Far { connector: connector(args), host };
    let (control, _orders) = takes_orders(args);
    let outcome = far.pipe_told(standard(!args.detach)?, |connection| control.connected(connection))?;
    tell(args, &outcome);
    Ok(Exit::Done)
}

/// Has a command run; gives its exit status.
fn run_command(far: &Far, line: Vec<u8>, args: &PipeArgs) -> Result<u8, Failure> {
    let (control, _orders) = takes_orders(args);
    let on_connected = |connection: &haul::Connection| control.connected(connection);
    let ran = far.run(program::Ask::Command(line), standard(!args.detach)?, PeerOutput::default(), on_connected)?;
    tell(args, &ran.outcome);
    let ended_first = || Failure::new(format!("{}: the connection ended before the command", far.host));
    ran.status.map(program::Status::code).ok_or_else(ended_first)
}

/// Orders from `haul ctl`, as long as what is given back with them is there.
fn takes_orders(args: &PipeArgs) -> (Arc<Carried>, impl Sized) {
    let operands = args.operands.iter().map(OsString::from);
    let words: Vec<OsString> = operands.chain(args.command.iter().cloned()).collect();
    Carried::new("pipe", &words, args.limit.map(|limit| limit.0), !args.quiet).taking_orders()
}

/// Standard input, if it is to be read, and standard output, without buffers of their own.
pub fn standard(reads: bool) -> Result<Local, Failure> {
    system::standard(reads).map_err(|error| Failure::new(format!("standard input and output: {error}")))
}

/// Says how it went, as much as was asked for.
fn tell(args: &PipeArgs, outcome: &Outcome) {
    let Outcome { ends, elapsed, rtt, loss } = outcome;
    let rate = BitRate::of(Bytes(ends.sent.max(ends.received)), *elapsed);
    if args.json {
        let line = json!({
            "sent_bytes": ends.sent, "received_bytes": ends.received, "elapsed_s": elapsed.as_secs_f64(), "rate_bps": rate.as_bps(),
            "rtt_us": rtt.as_micros() as u64, "loss": loss.as_f64(), "reader_gone": ends.reader_gone,
        });
        output::print_line(&line.to_string());
    } else if args.verbose > 0 {
        output::print_line(&format!(
            "sent {}, received {} in {:.1} s ({rate}); round-trip time {:.1} ms, loss {:.2} %",
            Bytes(ends.sent),
            Bytes(ends.received),
            elapsed.as_secs_f64(),
            rtt.as_secs_f64() * 1e3,
            loss.as_f64() * 100.0
        ));
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    Listen { port: u16 },
    Connect { host: DaemonHost },
    Command { host: SshHost, line: Vec<u8> },
}

impl Role {
    fn of(args: &PipeArgs) -> Result<Self, Failure> {
        let operands: Vec<&str> = args.operands.iter().map(String::as_str).collect();
        let usage = |what: &str| Failure::new(what).hint("`haul pipe --help` shows the three ways to call it");
        match (args.listen, &*operands, args.command.is_empty()) {
            (true, _, false) => Err(usage("-l and a command exclude each other")),
            (true, [], true) => Ok(Self::Listen { port: 0 }),
            (true, [text], true) => Ok(Self::Listen { port: port(text)? }),
            (true, ..) => Err(usage("-l takes a port alone; the address to listen on is given with -s")),
            (false, [host, text], true) => {
                let host = DaemonHost { host: host.trim_matches(['[', ']']).to_owned(), port: port(text)? };
                if host.host.contains('@') {
                    return Err(Failure::new(format!("{}: the other side knows keys, not users", host.host))
                        .hint("leave out the part before the @, or name a command after -- to go by way of ssh"));
                }
                Ok(Self::Connect { host })
            }
            (false, [host], false) => {
                let parsed = SshHost::parse(host.as_ref()).map_err(|error| Failure::new(error.to_string()))?;
                Ok(Self::Command { host: parsed, line: joined(&args.command) })
            }
            (false, [_], true) => Err(usage("a port is missing, or a command after --")),
            (false, [], _) => Err(usage("a host is missing, or -l to listen")),
            (false, ..) => Err(usage("a host and a command need no port: ssh finds the way")),
        }
    }
}

/// The words of a command as ssh sends them: the shell over there reads the line.
pub fn joined(words: &[OsString]) -> Vec<u8> {
    words.iter().map(|word| word.as_encoded_bytes()).collect::<Vec<_>>().join(&b' ')
}

fn port(text: &str) -> Result<u16, Failure> {
    let port = text.parse().ok().filter(|&port: &u16| port > 0);
    port.ok_or_else(|| Failure::new(format!("{text}: not a port")).hint("a port is a number from 1 to 65535"))
}

fn connector(args: &PipeArgs) -> Connector {
    Connector {
        ssh: args.ssh.options(args.quiet, args.verbose > 1),
        udp_port: args.udp_port,
        state: args.state.clone(),
        transport: transport(args),
        tells_outages: !args.quiet,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
        ..Connector::new(program::PROTOCOL)
    }
}

fn transport(args: &PipeArgs) -> TransportConfig {
    TransportConfig { rate_limit: args.limit.map(|limit| limit.0), ..program::transport(args.mode, args.silence.timeout()) }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse};

    fn role(line: &str) -> Result<Role, String> {
        let command = parse(line.split(' ').map(Into::into).collect()).map_err(|error| error.to_string())?;
        let Command::Pipe(args) = command else { panic!("not a pipe") };
        Role::of(&args).map_err(|failure| failure.to_string())
    }

    #[test]
    fn three_ways_to_call_it() {
        assert_eq!(role("haul pipe -l 9000"), Ok(Role::Listen { port: 9000 }));
        assert_eq!(role("haul pipe -l"), Ok(Role::Listen { port: 0 }));
        assert_eq!(role("haul pipe far 9000"), Ok(Role::Connect { host: DaemonHost { host: "far".into(), port: 9000 } }));
        let Ok(Role::Command { host, line }) = role("haul pipe me@far -- tar xC /data") else { panic!("refused") };
        assert_eq!((host.to_string().as_str(), &*line), ("me@far", &b"tar xC /data"[..]));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (line, what) in [
            ("haul pipe", "a host is missing"),
            ("haul pipe far", "a port is missing"),
            ("haul pipe far 0", "not a port"),
            ("haul pipe far ssh", "not a port"),
            ("haul pipe me@far 9000", "knows keys, not users"),
            ("haul pipe -l far 9000", "-l takes a port alone"),
            ("haul pipe -l 9000 -- cat", "exclude each other"),
            ("haul pipe far 9000 -- cat", "need no port"),
            ("haul pipe -k far 9000", "--listen"),
        ] {
            let error = role(line).expect_err(line);
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
