//! `haul pipe`: standard input and output, connected to a program on another host.
//!
//! ```text
//!   listen     -l: waits for the other side
//!   far        the other side: connects to one that listens, or has a command run by way of ssh
//!   transfer   bytes both ways, and how it went
//!   standard   standard input, which can be given up, and output
//! ```

mod far;
mod listen;
mod standard;
mod transfer;

use std::sync::Arc;

use haul::TransportConfig;
use haul_peer::{Connector, DaemonHost, Host, SshHost};

pub use self::far::{Far, run_command};
use crate::args::PipeArgs;
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::{interrupt, logging, tunnel};

/// Runs the command.
pub fn run(args: &PipeArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    let role = Role::of(args)?;
    match role {
        Role::Listen { .. } => interrupt::watch(),
        Role::Connect { .. } | Role::Command { .. } => interrupt::watch_connecting(),
    }
    match role {
        Role::Listen { port } => listen::run(args, port),
        Role::Connect { host } => far::connect(args, &host),
        Role::Command { host, line } => {
            let far = Far { connector: connector(args), host: Host::Ssh(host) };
            let code = run_command(&far, line, !args.detach, &|outcome| transfer::tell(args, outcome))?;
            Ok(Exit::Code(code))
        }
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
pub fn joined(words: &[std::ffi::OsString]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>().join(&b' ')
}

fn port(text: &str) -> Result<u16, Failure> {
    let port = text.parse().ok().filter(|&port: &u16| port > 0);
    port.ok_or_else(|| Failure::new(format!("{text}: not a port")).hint("a port is a number from 1 to 65535"))
}

fn connector(args: &PipeArgs) -> Connector {
    Connector {
        service: tunnel::PROTOCOL,
        ssh: args.ssh.options(args.quiet, args.verbose > 1),
        udp_port: args.udp_port,
        state: args.state.clone(),
        bind: None,
        transport: transport(args),
        tells_outages: !args.quiet,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
    }
}

fn transport(args: &PipeArgs) -> TransportConfig {
    TransportConfig { rate_limit: args.limit.map(|limit| limit.0), ..tunnel::transport(args.mode, args.silence) }
}

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
