//! `haul proxy`: TCP connections across one haul connection.
//!
//! ```text
//!   program -- TCP --> near ==== one stream a connection ==== far -- TCP --> target
//!
//!   client, server       the two ends of the haul connection: who asks, and who is asked
//!   doors, near          ports to listen on; from a TCP connection to a stream
//!   far, dial, policy    from a stream to a TCP connection, where it may go
//!   relay                the bytes
//!   session, wire        what is said
//!   socks                what a SOCKS5 client says
//!   forward              the formats of the command line
//!   hub, report          what all connections of a side share, and who hears of them
//! ```
//!
//! Either side can be near or far: with `-R` the ports are on the side that is asked. Each TCP connection is a task; no thread waits for one.

mod client;
mod dial;
mod doors;
mod far;
mod forward;
mod hub;
mod near;
mod policy;
mod relay;
mod report;
mod server;
mod session;
mod socks;
mod wire;

use std::ffi::OsStr;

use std::sync::Arc;

use haul::{Bytes, Fingerprint, TransportConfig};
use haul_peer::{Connector, DaemonHost, Host, SshHost, Target};

use self::client::{Client, Door, opening};
use self::doors::Kind;
pub use self::forward::{Forward, Listen, RemoteForward};
use self::hub::Hub;
use self::near::Duty;
use self::policy::Policy;
use self::report::Report;
pub use self::server::serve_account;
pub use self::wire::PROTOCOL;
use self::wire::{Aim, RemoteListen};
use crate::args::{CarriageArgs, ForwardArgs, PROXY_PORT, PortRange, ProxyArgs, ProxyCommand, ProxyConnectArgs, SshArgs};
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::{interrupt, logging};

/// Bytes that a stream may send ahead of a reader that has taken nothing yet: a thousand of them fit the memory, and one that is read grows.
const STREAM_WINDOW: Bytes = Bytes::mib(1);

/// Runs the command.
pub fn run(args: &ProxyArgs) -> Result<Exit, Failure> {
    match &args.command {
        None => over_ssh(args),
        Some(ProxyCommand::Serve(args)) => {
            start(&args.carriage, interrupt::watch);
            server::run(args, transport(&args.carriage))
        }
        Some(ProxyCommand::Connect(args)) => connect(args),
    }
}

fn start(args: &CarriageArgs, watch: fn()) {
    // A program that reads events does not want to be told everything twice.
    logging::start(logging::Audience::Operator, args.verbose, args.quiet || args.json);
    watch();
}

fn transport(args: &CarriageArgs) -> TransportConfig {
    TransportConfig {
        controller: args.mode,
        rate_limit: args.limit.map(|limit| limit.0),
        idle_timeout: args.silence.timeout(),
        stream_window: STREAM_WINDOW,
        // Nobody knows when somebody comes, nor how much they bring.
        filler: true,
        ..TransportConfig::default()
    }
}

/// `haul proxy user@host -L .. -R .. -D ..`.
fn over_ssh(args: &ProxyArgs) -> Result<Exit, Failure> {
    let host = args.host.as_deref().ok_or_else(|| Failure::new("no host named"))?;
    let host = ssh_host(host)?;
    let doors = doors_of(&args.forwards);
    if doors.is_empty() && args.remote.is_empty() {
        return Err(Failure::new(format!("{host}: nothing to forward"))
            .hint("name ports with -L, -R or -D, for instance -L 8080:localhost:80; `haul proxy --help` shows all ways"));
    }
    start(&args.carriage, interrupt::watch_connecting);
    let asked = |remote: &RemoteForward| RemoteListen {
        listen: remote.listen.clone().opened(args.forwards.gateway_ports),
        socks: remote.target.is_none(),
    };
    let hub = Hub::new(
        // Whoever may use a SOCKS port over there goes where it likes from here: that was asked for.
        if args.remote.iter().any(|remote| remote.target.is_none()) { Policy::Everything } else { Policy::only([]) },
        args.remote.iter().filter_map(|remote| remote.target.clone()).collect(),
        Report { json: args.carriage.json },
        args.carriage.max_connections,
    );
    let client = Client {
        connector: connector(&args.carriage, &args.ssh, args.udp_port),
        host: Host::Ssh(host),
        opening: opening(args.remote.iter().map(asked).collect(), confines(&doors)),
        doors,
        hub,
        stays: false,
    };
    client.run()
}

/// `haul proxy connect`.
fn connect(args: &ProxyConnectArgs) -> Result<Exit, Failure> {
    let host = remote(&args.remote, args.key)?;
    if matches!(host, Host::Ssh(_)) && !args.listen.is_empty() && args.to.is_none() {
        return Err(Failure::new(format!("{host}: over ssh the other side has no target of its own"))
            .hint("name one with --to HOST:PORT, or with -L PORT:HOST:HOSTPORT"));
    }
    start(&args.carriage, interrupt::watch_connecting);
    let aim = args.to.clone().map_or(Aim::Numbered(0), Aim::Named);
    let to_target = |listen: &Listen| Door {
        listen: listen.clone().opened(args.forwards.gateway_ports),
        kind: Kind::Plain,
        duty: Duty::To(aim.clone()),
    };
    let onwards = args.transparent.map(|port| Door {
        listen: Listen { bind: forward::Bind::All, port },
        kind: Kind::Transparent,
        duty: Duty::Onwards,
    });
    let doors: Vec<Door> = args.listen.iter().map(to_target).chain(onwards).chain(doors_of(&args.forwards)).collect();
    let client = Client {
        connector: connector(&args.carriage, &args.ssh, args.udp_port),
        host,
        opening: opening(Vec::new(), confines(&doors)),
        doors,
        hub: Hub::new(Policy::only([]), Vec::new(), Report { json: args.carriage.json }, args.carriage.max_connections),
        stays: true,
    };
    client.run()
}

/// The ports of `-L` and `-D`.
fn doors_of(args: &ForwardArgs) -> Vec<Door> {
    let door = |listen: &Listen, duty| Door { listen: listen.clone().opened(args.gateway_ports), kind: Kind::Plain, duty };
    let local = args.local.iter().map(|forward| door(&forward.listen, Duty::To(Aim::Named(forward.target.clone()))));
    local.chain(args.dynamic.iter().map(|listen| door(listen, Duty::Socks))).collect()
}

/// The targets that these ports can lead to, if that is known beforehand.
fn confines(doors: &[Door]) -> Option<Vec<Target>> {
    let targets = doors.iter().map(|door| match &door.duty {
        Duty::To(Aim::Named(target)) => Some(Some(target.clone())),
        Duty::To(Aim::Numbered(_)) => Some(None),
        Duty::Socks | Duty::Onwards => None,
    });
    Some(targets.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

fn connector(args: &CarriageArgs, ssh: &SshArgs, udp_port: Option<PortRange>) -> Connector {
    Connector {
        service: PROTOCOL,
        ssh: ssh.options(args.quiet, args.verbose > 1),
        udp_port,
        state: args.state.clone(),
        bind: None,
        transport: transport(args),
        tells_outages: !args.quiet,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
    }
}

/// `haul://HOST[:PORT]`, `HOST[:PORT]` or `USER@HOST`.
fn remote(text: &str, key: Option<Fingerprint>) -> Result<Host, Failure> {
    if let Some(daemon) = text.strip_prefix("haul://") {
        return daemon_host(daemon.trim_end_matches('/'), key);
    }
    if text.contains('@') {
        return ssh_host(text.as_ref()).map(Host::Ssh);
    }
    daemon_host(text, key)
}

fn daemon_host(text: &str, key: Option<Fingerprint>) -> Result<Host, Failure> {
    let parsed = DaemonHost::parse_or(text, PROXY_PORT);
    let host = |host| match key {
        Some(key) => Host::Pinned(host, key),
        None => Host::Daemon(host),
    };
    parsed.map(host).map_err(|error| {
        Failure::new(error).hint("write HOST[:PORT] of a `haul proxy serve`, or USER@HOST to be reached through ssh")
    })
}

fn ssh_host(text: &OsStr) -> Result<SshHost, Failure> {
    SshHost::parse(text).map_err(|error| Failure::new(error).hint("write [USER@]HOST, as for ssh"))
}
