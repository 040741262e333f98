//! `haul proxy`: TCP connections across one haul connection.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use haul::{Fingerprint, TransportConfig};
use haul_peer::keys::Service;
use haul_peer::{Connector, DaemonHost, Host, PortRange, SshHost, StateDir, keys};
use haul_serve::{Audit, Visitors};
use haul_tunnel::proxy::{
    self, Aim, Bind, Client, Duty, Kind, Listen, LocalForward, Observer, RemoteForward, Server, ServerSettings,
};

use crate::args::{CarriageArgs, ForwardArgs, PROXY_PORT, ProxyArgs, ProxyCommand, ProxyConnectArgs, ProxyServeArgs, SshArgs};
use crate::exit::{Exit, Failure};
use crate::meanwhile::User;
use crate::orders::Carried;
use crate::output::ProxyReport;
use crate::{config, interrupt, logging};

/// The arguments, with what the configuration file says of the host; a side that serves has none.
pub fn configured(args: ProxyArgs, arguments: Vec<OsString>) -> Result<ProxyArgs, Failure> {
    match &args.command {
        Some(ProxyCommand::Serve(_)) => Ok(args),
        Some(ProxyCommand::Connect(connect)) => {
            let host = remote(&connect.remote, connect.key)?;
            let connect = config::command_line_of("connect", arguments)?.of(Some(&host))?;
            Ok(ProxyArgs { command: Some(ProxyCommand::Connect(Box::new(connect))), ..args })
        }
        None => {
            let host = ssh_host(args.host.as_deref().unwrap_or_default())?;
            Ok(config::command_line(arguments)?.of(Some(&Host::Ssh(host)))?)
        }
    }
}

/// Runs the command.
pub fn run(args: &ProxyArgs) -> Result<Exit, Failure> {
    match &args.command {
        None => over_ssh(args),
        Some(ProxyCommand::Serve(args)) => serve(args),
        Some(ProxyCommand::Connect(args)) => connect(args),
    }
}

/// `haul proxy user@host -L .. -R .. -D ..`.
fn over_ssh(args: &ProxyArgs) -> Result<Exit, Failure> {
    let host = args.host.as_deref().ok_or_else(|| Failure::new("no host named"))?;
    let host = ssh_host(host)?;
    let local = local_forwards(&args.forwards);
    if local.is_empty() && args.remote.is_empty() {
        return Err(Failure::new(format!("{host}: nothing to forward"))
            .hint("name ports with -L, -R or -D, for instance -L 8080:localhost:80; `haul proxy --help` shows all ways"));
    }
    let opened = |remote: &RemoteForward| RemoteForward {
        listen: remote.listen.clone().opened(args.forwards.gateway_ports),
        target: remote.target.clone(),
    };
    let client = Client {
        connector: connector(&args.carriage, &args.ssh, args.udp_port),
        host: Host::Ssh(host),
        local,
        remote: args.remote.iter().map(opened).collect(),
        most_connections: args.carriage.max_connections,
        stays: false,
        observer: report(&args.carriage),
    };
    ask(client, &args.carriage)
}

/// `haul proxy connect`.
fn connect(args: &ProxyConnectArgs) -> Result<Exit, Failure> {
    let host = remote(&args.remote, args.key)?;
    if matches!(host, Host::Ssh(_)) && !args.listen.is_empty() && args.to.is_none() {
        return Err(Failure::new(format!("{host}: over ssh the other side has no target of its own"))
            .hint("name one with --to HOST:PORT, or with -L PORT:HOST:HOSTPORT"));
    }
    let aim = args.to.clone().map_or(Aim::Numbered(0), Aim::Named);
    let to_target = |listen: &Listen| LocalForward {
        listen: listen.clone().opened(args.forwards.gateway_ports),
        kind: Kind::Plain,
        duty: Duty::To(aim.clone()),
    };
    let onwards = args.transparent.map(|port| LocalForward {
        listen: Listen { bind: Bind::All, port },
        kind: Kind::Transparent,
        duty: Duty::Onwards,
    });
    let client = Client {
        connector: connector(&args.carriage, &args.ssh, args.udp_port),
        host,
        local: args.listen.iter().map(to_target).chain(onwards).chain(local_forwards(&args.forwards)).collect(),
        remote: Vec::new(),
        most_connections: args.carriage.max_connections,
        stays: true,
        observer: report(&args.carriage),
    };
    ask(client, &args.carriage)
}

fn ask(client: Client, args: &CarriageArgs) -> Result<Exit, Failure> {
    start_log(args);
    interrupt::watch_connecting();
    let forwarded = client.local.iter().map(|forward| format!("port {}", forward.listen.port).into());
    let words: Vec<OsString> = [client.host.to_string().into()].into_iter().chain(forwarded).collect();
    let (control, _orders) = Carried::new("proxy", &words, args.limit.map(|limit| limit.0), !args.quiet).taking_orders();
    Client { observer: Arc::new(Held { observer: Arc::clone(&client.observer), control }), ..client }.run()?;
    Ok(Exit::Done)
}

/// What is reported, and who is told to go slower.
struct Held {
    observer: Arc<dyn Observer>,
    control: Arc<Carried>,
}

impl Observer for Held {
    fn event(&self, event: proxy::Event<'_>) {
        self.observer.event(event);
    }

    fn connection(&self, connection: &haul::Connection) {
        self.control.connected(connection);
    }
}

/// `haul proxy serve`.
fn serve(args: &ProxyServeArgs) -> Result<Exit, Failure> {
    start_log(&args.carriage);
    interrupt::watch();
    let state = StateDir::find(args.carriage.state.as_deref())?;
    let (identity, _) = keys::load_or_make(&state)?;
    let audit = Arc::new(Audit::open(args.audit.to().as_ref(), None)?);
    let key = identity.public_key().fingerprint();
    let server = Server::bind(ServerSettings {
        identity,
        authorized: (!args.anyone).then_some(state),
        address: args.bind,
        port: args.port,
        targets: args.to.clone(),
        allow: args.allow.clone(),
        most_connections: args.carriage.max_connections,
        transport: transport(&args.carriage),
        guests: args.guests.places(args.max_clients),
        observer: report(&args.carriage),
        visits: Arc::new(Visitors::to(Service::Proxy, args.anyone, &audit)),
    })?;
    let _running = audit.started(server.local_addr(), key);
    server.run(interrupt::cancel())?;
    Ok(Exit::Done)
}

fn start_log(args: &CarriageArgs) {
    // A program that reads events does not want to be told everything twice.
    logging::start(logging::Audience::Operator, args.verbose, args.quiet || args.json);
}

fn report(args: &CarriageArgs) -> Arc<dyn Observer> {
    Arc::new(ProxyReport { json: args.json })
}

fn transport(args: &CarriageArgs) -> TransportConfig {
    proxy::transport(args.mode, args.limit.map(|limit| limit.0), args.silence.timeout())
}

/// The ports of `-L` and `-D`.
fn local_forwards(args: &ForwardArgs) -> Vec<LocalForward> {
    let forwarded =
        |listen: &Listen, duty| LocalForward { listen: listen.clone().opened(args.gateway_ports), kind: Kind::Plain, duty };
    let local = args.local.iter().map(|forward| forwarded(&forward.listen, Duty::To(Aim::Named(forward.target.clone()))));
    local.chain(args.dynamic.iter().map(|listen| forwarded(listen, Duty::Socks))).collect()
}

fn connector(args: &CarriageArgs, ssh: &SshArgs, udp_port: Option<PortRange>) -> Connector {
    Connector {
        ssh: ssh.options(args.quiet, args.verbose > 1),
        udp_port,
        state: args.state.clone(),
        transport: transport(args),
        tells_outages: !args.quiet,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
        ..Connector::new(proxy::PROTOCOL)
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
