//! `haul perf`: arguments in, a measurement of haul-perf, and what people and programs read of it out.

mod json;
mod mesh;
mod server;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::sync::Arc;

use haul::{BitRate, Connection, MAX_BLOCK, Pacing, TransportConfig};
use haul_peer::{Again, Connected, Connector, DAEMON_PORT, DaemonHost, Host, Lifeline, SshOptions, is_gone};
use haul_perf::{
    About, Amount, Ask, Both, Bounds, Client, Document, End, IntervalRecord, Listener, MAX_TIME, Outcome, PROTOCOL, Plan, Start,
    TcpPlan, Ways, micros, pretty, system_info, text,
};
use serde_json::{Value, json};

use self::json::event;
use crate::args::{PerfArgs, PerfCommand, carriage_by};
use crate::exit::{Exit, Failure, explained};
use crate::meanwhile::User;
use crate::orders::Carried;
use crate::trace::Kept;
use crate::{clock, config, interrupt, logging, output};

/// What a client may do that has proved who it is.
pub const fn bounds(rate: Option<BitRate>, tcp_ports: RangeInclusive<u16>) -> Bounds {
    let mut bounds = Bounds::trusted(rate, tcp_ports);
    bounds.describe = Some(text::server_line);
    bounds
}

/// The arguments, with what the configuration file says of the host that is measured to.
pub fn configured(args: PerfArgs, arguments: Vec<OsString>) -> Result<PerfArgs, Failure> {
    if args.command.is_some() || args.server {
        return Ok(args);
    }
    Ok(config::command_line(arguments)?.of(Some(&host(&args)?))?)
}

/// Runs the command.
pub fn run(args: &PerfArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, args.show.verbose.saturating_sub(1), false);
    if args.command.is_none() && !args.server {
        interrupt::watch_connecting();
    } else {
        interrupt::watch();
    }
    match &args.command {
        Some(PerfCommand::Mesh(mesh)) => mesh::run(mesh),
        None if args.server => server::run(args),
        None => measure(args),
    }
}

fn measure(args: &PerfArgs) -> Result<Exit, Failure> {
    let report = Report { args, plan: plan(args)? };
    let kept = args.show.trace.as_deref().map(Kept::start).transpose()?;
    let exit = over_connections(&report).inspect_err(|failure| report.failed(failure))?;
    kept.map_or(Ok(()), |kept| kept.write())?;
    Ok(exit)
}

/// A measurement, over as many connections as it takes. One that breaks with its daemon begins again with the next one: figures of two connections, and of the time
/// between them, would be no measurement of a path.
fn over_connections(report: &Report<'_>) -> Result<Exit, Failure> {
    let (connector, host) = (connector(report.args)?, host(report.args)?);
    let (control, _orders) = takes_orders(report, &host);
    let mut connected = connector.connect(&host)?;
    loop {
        control.connected(&connected.connection);
        let result = one(report, &host.to_string(), &connected);
        let may_go_on = result.is_err() && is_gone(&connected.connection) && !interrupt::requested();
        let again = if may_go_on { Again::to(&host, &connected.connection, report.args.ssh.silence.timeout()) } else { None };
        connected.end();
        let Some(again) = again else { return result };
        output::print_hint(&format!("{again}; the measurement begins again"));
        connected = connector.connect_by(again.host, again.deadline)?;
    }
}

/// Orders from `haul ctl`, as long as what is given back with them is there.
fn takes_orders(report: &Report<'_>, host: &Host) -> (Arc<Carried>, impl Sized + use<>) {
    let plan = &report.plan;
    let rate = plan.rate().map(|rate| BitRate::from_bps(rate.as_bps().saturating_mul(plan.streams.into())));
    let stays = match plan {
        Plan { ways: Ways::Down, .. } => Some("the other side sends"),
        Plan { rate_bps: Some(_), .. } => Some("its rate is that of -b"),
        Plan { tcp: Some(_), .. } => Some("the kernel's TCP is not held back"),
        _ => None,
    };
    let measured = Carried::new("perf", &[host.to_string().into()], rate, report.is_text());
    measured.whose_rate_stays(stays).taking_orders()
}

/// One measurement over a connection.
fn one(report: &Report<'_>, host: &str, connected: &Connected) -> Result<Exit, Failure> {
    let connection = &connected.connection;
    let cookie = data_encoding::HEXLOWER.encode(&clock::unix_seconds().to_be_bytes());
    let ask = Ask {
        version: env!("CARGO_PKG_VERSION").into(),
        plan: report.plan.clone(),
        server_output: report.args.show.get_server_output,
        cookie: cookie.into(),
    };
    let mut client = Client::ask(connection, &ask)
        .map_err(Failure::from)
        .map_err(|failure| explained(connected, Failure { message: format!("{host}: {}", failure.message), ..failure }))?;
    interrupt::under_way();
    client.ping_idle(interrupt::cancel())?;
    let about = about(report, host, connected, &ask, &client);
    report.started(&about);
    let mut watch = Watch { report, lifeline: connected.lifeline() };
    let outcome = client.run(interrupt::cancel(), &mut watch)?;
    report.ended(&about, &outcome);
    Ok(match (outcome.interrupted, outcome.first_error()) {
        (true, _) => Exit::Interrupted,
        (false, Some(_)) => Exit::Partial,
        (false, None) => Exit::Done,
    })
}

/// Shows intervals as they come, and looks after ssh.
struct Watch<'a> {
    report: &'a Report<'a>,
    lifeline: Lifeline,
}

impl Listener for Watch<'_> {
    fn interval(&mut self, both: &Both) {
        self.report.interval(both);
    }

    fn is_alive(&mut self) -> bool {
        self.lifeline.holds()
    }
}

/// What the arguments ask for.
fn plan(args: &PerfArgs) -> Result<Plan, Failure> {
    let measure = &args.measure;
    /// As iperf3 has it for TCP.
    const TCP_BLOCK: u64 = 128 << 10;
    let default_block = if measure.tcp { TCP_BLOCK } else { 1 << 20 };
    let length = measure.length.map_or(default_block, haul_units::Bytes::as_u64);
    let every = args.show.every();
    let plan = Plan {
        ways: match (measure.reverse, measure.bidir) {
            (_, true) => Ways::Both,
            (true, false) => Ways::Down,
            (false, false) => Ways::Up,
        },
        streams: measure.parallel,
        block_bytes: u32::try_from(length)
            .ok()
            .filter(|&len| len as usize <= MAX_BLOCK)
            .ok_or_else(|| Failure::new(format!("-l {length}: {MAX_BLOCK} bytes are possible at most")))?,
        amount: measure.bytes.map_or(Amount::Time(micros(measure.time)), |bytes| Amount::Bytes(bytes.as_u64())),
        omit_us: micros(measure.omit),
        // iperf3's way to say: no reports but the last.
        interval_us: micros(if every.is_zero() { MAX_TIME } else { every }),
        rate_bps: measure.bitrate.map(BitRate::as_bps).filter(|&bps| bps > 0),
        mode: measure.mode.to_string().into(),
        tcp: measure.tcp.then(|| TcpPlan { congestion: measure.congestion.clone().map(Into::into) }),
    };
    plan.check(MAX_TIME)?;
    Ok(plan)
}

/// The way to connect that the arguments name.
fn connector(args: &PerfArgs) -> Result<Connector, Failure> {
    if let Some(ip) = args.bind {
        std::net::UdpSocket::bind((ip, 0))
            .map_err(|error| Failure::new(format!("-B {ip}: {error}")).hint("name an address of this machine"))?;
    }
    let ssh = args.ssh_args().options(false, args.show.verbose > 1);
    let pacing = if args.measure.no_pacing { Pacing::Off } else { Pacing::On };
    Ok(Connector {
        service: PROTOCOL,
        ssh: SshOptions { carriage: carriage_by(&args.measure.via, ssh.carriage), ..ssh },
        udp_port: args.ssh.udp_port,
        state: args.ssh.state.clone(),
        transport: TransportConfig {
            controller: args.measure.mode,
            pacing,
            paths: args.measure.paths,
            via: args.measure.via.clone(),
            scheduler: args.measure.scheduler,
            idle_timeout: args.ssh.silence.timeout(),
            // What is measured is the path, not how fast a window grows.
            stream_window: TransportConfig::default().memory,
            ..TransportConfig::default()
        },
        bind: args.bind,
        data: None,
        tells_outages: true,
        tell: Arc::new(User),
        cancel: interrupt::cancel().clone(),
    })
}

/// The host that the arguments name, and the way to it.
fn host(args: &PerfArgs) -> Result<Host, Failure> {
    let text = match (&args.client, &args.host) {
        (Some(client), _) => client.clone(),
        (None, Some(host)) => host.to_string_lossy().into_owned(),
        (None, None) => return Err(Failure::new("no host named")),
    };
    if let Some(daemon) = text.strip_prefix("haul://") {
        if args.port.is_some() {
            return Err(
                Failure::new("-p is the port of a server for anyone, and a daemon is named").hint("write haul://HOST:PORT")
            );
        }
        let daemon = host_and_port(daemon.trim_end_matches('/'), DAEMON_PORT)?;
        return Ok(match args.ssh.key {
            Some(key) => Host::Pinned(daemon, key),
            None => Host::Daemon(daemon),
        });
    }
    if args.client.is_some() {
        return Ok(Host::Open(host_and_port(&text, args.port())?, args.ssh.key));
    }
    if args.port.is_some() {
        return Err(Failure::new("-p is the port of a server that runs, and ssh is to start the far side")
            .hint("the port of the ssh server is --ssh-port, that of the far side --udp-port; or -c HOST for a running server"));
    }
    if args.ssh.key.is_some() {
        return Err(Failure::new("--key is the key of a server that runs, and ssh is to start the far side")
            .hint("leave it out: ssh knows the host; or write -c HOST or haul://HOST"));
    }
    Ok(Host::Ssh(haul_perf::mesh::ssh_host(&text)?))
}

/// At this port, where none is named.
fn host_and_port(text: &str, port: u16) -> Result<DaemonHost, Failure> {
    DaemonHost::parse_or(text, port).map_err(|error| Failure::new(error).hint("write HOST, HOST:PORT or [ADDRESS]:PORT"))
}

fn about(report: &Report<'_>, host: &str, connected: &Connected, ask: &Ask, client: &Client) -> About {
    let connection: &Connection = &connected.connection;
    About {
        host: host.to_owned(),
        addresses: [connected.local_addr(), connection.remote_addr()],
        cookie: ask.cookie.to_string(),
        server_version: client.welcome().version.clone(),
        systems: [system_info(), client.welcome().system.clone()],
        server_key: connection.peer_key().map(|key| key.fingerprint().to_string()),
        title: report.args.show.title.clone(),
        paths: report.args.measure.paths,
        timestamp: clock::unix_seconds(),
    }
}

/// What --json-stream ends with: what ended the measurement early, if anything did, and the results all the same.
fn last_events(plan: &Plan, outcome: &Outcome) -> Vec<(&'static str, Value)> {
    let error = outcome.first_error().map(|error| ("error", json!(error)));
    error.into_iter().chain([("end", json!(End::new(plan, outcome)))]).collect()
}

/// Shows a measurement as the arguments want it.
struct Report<'a> {
    args: &'a PerfArgs,
    plan: Plan,
}

impl Report<'_> {
    fn is_text(&self) -> bool {
        !self.args.show.json && !self.args.show.json_stream
    }

    fn started(&self, about: &About) {
        if self.args.show.json_stream {
            return event("start", &Start::new(&self.plan, about));
        }
        if self.is_text() {
            let [local, remote] = about.addresses;
            let key = about.server_key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
            self.line(&format!("Connected to {} at {remote} from port {}{key}", about.host, local.port()));
            self.line(&text::header(&self.plan));
        }
    }

    fn interval(&self, both: &Both) {
        if self.args.show.json_stream {
            event("interval", &IntervalRecord::new(&self.plan, &[both]));
        } else if self.is_text() {
            self.lines(&text::interval(&self.plan, both));
        }
    }

    fn ended(&self, about: &About, outcome: &Outcome) {
        if self.args.show.json_stream {
            return last_events(&self.plan, outcome).iter().for_each(|(name, data)| event(name, data));
        }
        if self.args.show.json {
            return output::out_json(&pretty(&Document::new(&self.plan, about, outcome)));
        }
        self.lines(&text::totals(&self.plan, outcome));
        self.lines(&text::report(&self.plan, outcome));
        if let Some(server) = outcome.done.as_ref().and_then(|done| done.output.as_ref()) {
            self.line("");
            self.line("Server output:");
            for line in server {
                self.line(line);
            }
        }
        if let Some(error) = outcome.first_error() {
            output::print_error(error);
        }
        if let Some(advice) = text::advice(&self.plan, outcome) {
            output::print_hint(&advice);
        }
    }

    /// iperf3 tells failures in the JSON too.
    fn failed(&self, failure: &Failure) {
        if self.args.show.json_stream {
            event("error", &json!(failure.message));
        } else if self.args.show.json {
            output::out_json(&pretty(&json!({ "start": {}, "intervals": [], "end": {}, "error": failure.message })));
        }
    }

    fn lines(&self, lines: &[String]) {
        for line in lines {
            self.line(line);
        }
    }

    fn line(&self, text: &str) {
        match &self.args.show.title {
            Some(title) => output::out_wrapped(&format!("{title}:  {text}")),
            None => output::out_wrapped(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_perf::{CpuUse, Direction, Pings, Role, Total};

    use super::*;
    use crate::args::{Command, parse};

    fn host_of(line: &str) -> Result<Host, String> {
        let Command::Perf(args) = parse(line.split(' ').map(Into::into).collect()).expect("sound") else { panic!("no perf") };
        host(&args).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_key_is_of_a_server_that_runs_and_a_port_of_one_for_anyone() {
        let key = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let daemon = |port| DaemonHost { host: "far".into(), port };
        let pinned = host_of(&format!("haul perf haul://far --key {key}"));
        assert!(matches!(pinned, Ok(Host::Pinned(host, _)) if host == daemon(DAEMON_PORT)));
        assert!(matches!(host_of("haul perf haul://far"), Ok(Host::Daemon(_))));
        let open = host_of(&format!("haul perf -c far -p 9 --key {key}"));
        assert!(matches!(open, Ok(Host::Open(host, Some(_))) if host == daemon(9)));
        assert!(matches!(host_of("haul perf -c far"), Ok(Host::Open(host, None)) if host == daemon(7701)));
        assert!(matches!(host_of("haul perf me@far"), Ok(Host::Ssh(_))));
        for (line, why) in [
            ("haul perf haul://far -p 9".to_owned(), "a daemon is named"),
            ("haul perf far -p 9".to_owned(), "-p is the port of a server that runs"),
            (format!("haul perf far --key {key}"), "--key is the key of a server that runs"),
        ] {
            let error = host_of(&line).map(|host| host.to_string()).expect_err(&line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn what_ended_a_measurement_early_is_told_before_its_end() {
        let outcome = |error: Option<&str>| {
            let total = Total {
                direction: Direction::Up,
                role: Role::Receiver,
                time_us: 1,
                bytes: vec![1],
                paths: Vec::new(),
                spreads: None,
                congestion: None,
                error: error.map(Into::into),
            };
            let (cpu, pings) = (CpuUse::default(), Pings::default());
            Outcome { intervals: Vec::new(), totals: vec![total], cpu, done: None, interrupted: false, pings }
        };
        let told = |error| last_events(&Plan::default(), &outcome(error));
        let early = told(Some("TCP: timed out"));
        assert_eq!(early[0], ("error", json!("TCP: timed out")));
        assert_eq!(early[1..].iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["end"]);
        assert_eq!(told(None).iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["end"]);
    }
}
