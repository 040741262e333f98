//! The client's side of members that call back: it listens, hears who was started, and takes up those and nobody else.
//!
//! The keys of members come by the start channel. A connection with another key ends in its handshake: nothing here hears of it ([`Callers`]). When the start is over nobody new is let in.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use haul::{ClientConfig, Connection, Fingerprint, Identity, TransportConfig};
use haul_peer::{
    BOOTSTRAP, ClientHello, KEEP_ALIVE, RemoteHello, SshCommand, SshEnded, SshHost, Tell, candidates, own_address, resolve,
    spawn, ssh_names,
};
use haul_units::{Cancel, PeerText};

use super::callers::{Callers, dial, dialling};
use super::error::{AbsentError, StartError};
use super::hosts::HostSpec;
use super::lead::{ENOUGH, Until};
use super::messages::{By, FLEET, Here, Invitation, Line, Order, OrderHost, Said, Summons, lines};
use super::named::NamedLines;
use super::spec::{StartSpec, Way};
use crate::clock;
use crate::member::Member;

/// Hosts whose way to this one is looked up: those of one fleet are mostly behind one address of this host.
const WAYS_LOOKED_UP: usize = 16;
/// Lines that were printed on a start channel and are kept.
const KEPT_LINES: usize = 5;

/// What one host has come to: a member is passed on at once.
type Outcome = Result<(), AbsentError>;

/// What happens meanwhile.
enum Event {
    /// On the start channel.
    Line(Line),
    /// There is nothing more to hear there; the status of ssh, if that was it.
    ChannelEnded(Option<i32>),
    /// A member has called, or has answered a call.
    Connected(usize, Connection),
    /// One that listens cannot be reached.
    Unreachable(usize, AbsentError),
}

/// Starts these hosts by one starter, and waits for them. Each that comes is passed on (`came`) by its place among them; those that do not are given back.
pub fn gather(
    spec: &StartSpec,
    by: By,
    hosts: &[HostSpec],
    tell: &Arc<dyn Tell>,
    cancel: &Cancel,
    came: &dyn Fn(usize, Member),
) -> Result<Vec<(usize, AbsentError)>, StartError> {
    let identity = Identity::generate();
    let own_key = identity.public_key().fingerprint();
    let callers = if spec.dial_out { Callers::default() } else { listen(spec, identity.clone())? };
    let port = callers.port();
    let call = port.map(|port| call_back(spec, hosts, port)).unwrap_or_default();
    // A login by ssh shows one more.
    if port.is_some() && call.is_empty() && by != By::Ssh && spec.launcher.on.is_none() {
        return Err(StartError::NoAddress);
    }
    let order = Order { port, ..order(spec, by, hosts, own_key, call) };
    let (tell_event, events) = mpsc::channel();
    let starter = Starter::start(spec, order, tell, tell_event.clone())?;
    let gathering = Gathering {
        spec,
        hosts,
        identity,
        callers,
        named: hosts.iter().enumerate().map(|(index, host)| (host.name.as_str(), index)).collect(),
        outcomes: hosts.iter().map(|_| None).collect(),
        started: hosts.iter().map(|_| false).collect(),
        printed: VecDeque::new(),
        tell: tell_event,
        came,
        cancel: cancel.clone(),
    };
    let outcomes = gathering.run(&events, &starter.name);
    let anybody = outcomes.iter().any(Result::is_ok);
    starter.end(anybody && !cancel.is_cancelled());
    let missing = outcomes.into_iter().enumerate().filter_map(|(at, outcome)| Some((at, outcome.err()?)));
    if cancel.is_cancelled() { Err(StartError::Interrupted) } else { Ok(missing.collect()) }
}

/// A start that is under way.
struct Gathering<'a> {
    spec: &'a StartSpec,
    hosts: &'a [HostSpec],
    identity: Identity,
    callers: Callers,
    named: HashMap<&'a str, usize>,
    outcomes: Vec<Option<Outcome>>,
    /// Who has said that it is there.
    started: Vec<bool>,
    /// Last lines on the start channel.
    printed: VecDeque<PeerText>,
    tell: mpsc::Sender<Event>,
    came: &'a dyn Fn(usize, Member),
    cancel: Cancel,
}

impl Gathering<'_> {
    fn run(mut self, events: &mpsc::Receiver<Event>, starter: &str) -> Vec<Outcome> {
        let deadline = clock::now() + self.spec.timeout;
        while self.outcomes.iter().any(Option::is_none) && clock::now() < deadline && !self.cancel.is_cancelled() {
            let mut next = self.callers.next(events, &self.tell, Event::Connected);
            while let Some(event) = next {
                self.handle(event, starter);
                next = events.try_recv().ok();
            }
        }
        self.callers.expect_nobody();
        let waited = self.spec.timeout;
        let missing = |started: bool| if started { AbsentError::NoCall { waited } } else { AbsentError::Silent { waited } };
        let outcomes = self.outcomes.into_iter().zip(self.started);
        outcomes.map(|(outcome, started)| outcome.unwrap_or_else(|| Err(missing(started)))).collect()
    }

    fn handle(&mut self, event: Event, starter: &str) {
        match event {
            Event::Line(Line::Said(said)) => self.said(*said, starter),
            Event::Line(Line::Printed(text)) => {
                tracing::debug!(%text, "printed on the start channel");
                if self.printed.len() == KEPT_LINES {
                    self.printed.pop_front();
                }
                self.printed.push_back(text);
            }
            Event::ChannelEnded(status) => self.channel_ended(status, starter),
            Event::Connected(index, connection) => {
                let Some(host) = self.hosts.get(index).filter(|_| matches!(self.outcomes.get(index), Some(None))) else { return };
                self.settle(index, Ok(()));
                (self.came)(index, Member::called_back(&host.name, connection));
            }
            Event::Unreachable(index, why) => self.settle(index, Err(why)),
        }
    }

    /// What comes first about a host counts.
    fn settle(&mut self, index: usize, outcome: Outcome) {
        if let Some(slot @ None) = self.outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
    }

    fn said(&mut self, said: Said, starter: &str) {
        let (member, why) = match said {
            Said::Here(here) => return self.is_here(&here),
            Said::Failed { member, error, hint } => (member, AbsentError::Failed { error, hint }),
            Said::Ended { member, status, printed } => {
                (member, AbsentError::NotStarted { ended: SshEnded { status, remote: "haul remote".into(), printed } })
            }
            Said::Unable { error, .. } => {
                self.settle_unheard(|| AbsentError::NoStarter { starter: starter.to_owned(), why: error.clone() });
                return;
            }
        };
        if let Some(&index) = self.named.get(member.as_str()) {
            self.settle(index, Err(why));
        }
    }

    /// A member has been started: its key is invited from now on.
    fn is_here(&mut self, here: &Here) {
        let index = self.named.get(here.member.as_str()).copied();
        let Some((index, started)) = index.and_then(|index| Some((index, self.started.get_mut(index)?))) else {
            tracing::debug!(member = %here.member, "nobody of this name was invited");
            return;
        };
        // A second one of the same name is nobody.
        if std::mem::replace(started, true) {
            return;
        }
        tracing::debug!(member = %here.member, host = %here.host, rank = here.rank, version = %here.version, "started");
        let Ok(key) = here.key.parse::<Fingerprint>() else {
            return self.settle(index, Err(AbsentError::OtherVersion));
        };
        match &here.listens {
            None => self.callers.expect(key, index),
            Some(listens) => self.dial(index, key, listens.clone()),
        }
    }

    /// Dials a member that listens.
    fn dial(&self, index: usize, key: Fingerprint, listens: RemoteHello) {
        let Some(host) = self.hosts.get(index) else { return };
        let name = host.data.clone().unwrap_or_else(|| host.host.clone());
        let login = (self.spec.way == Way::Ssh && host.data.is_none()).then(|| SshCommand::new(&self.spec.ssh, &host.login()));
        let admission = BASE64.decode(listens.token.as_bytes()).ok();
        let config = ClientConfig { admission, ..dialling(&self.identity, key, transport(self.spec)) };
        let (tell, cancel, family) = (self.tell.clone(), self.cancel.clone(), self.spec.ssh.family);
        thread::spawn(move || {
            let name = login.map_or_else(|| name.clone(), |login| ssh_names(&login, &name));
            let addresses = candidates(&resolve(&name), &listens.addresses, listens.port, family);
            let _ = tell.send(match dial(&addresses, &config, &cancel) {
                Ok(connection) => Event::Connected(index, connection),
                Err(why) => Event::Unreachable(index, why),
            });
        });
    }

    /// Who has said nothing yet will say nothing any more.
    fn channel_ended(&mut self, status: Option<i32>, starter: &str) {
        let printed: Vec<PeerText> = self.printed.iter().cloned().collect();
        let ended = SshEnded { status, remote: OsString::from("haul remote"), printed };
        let why = PeerText::from(ended.to_string());
        let first_unheard = self.first_unheard();
        if self.spec.way == Way::Ssh && first_unheard == Some(0) {
            self.settle(0, Err(AbsentError::NotStarted { ended }));
        }
        self.settle_unheard(|| AbsentError::NoStarter { starter: starter.to_owned(), why: why.clone() });
    }

    fn first_unheard(&self) -> Option<usize> {
        self.outcomes.iter().zip(&self.started).position(|(outcome, started)| outcome.is_none() && !started)
    }

    fn settle_unheard(&mut self, why: impl Fn() -> AbsentError) {
        while let Some(index) = self.first_unheard() {
            self.settle(index, Err(why()));
        }
    }
}

fn listen(spec: &StartSpec, identity: Identity) -> Result<Callers, StartError> {
    let callers = Callers::listen(spec.ssh.family, spec.udp_port, identity, transport(spec));
    callers.map_err(|source| StartError::NoPort { source, ports_named: spec.udp_port.is_some() })
}

/// A member that rests is heard often: that it is there is seen by nothing else.
fn transport(spec: &StartSpec) -> TransportConfig {
    TransportConfig { keep_alive: Some(KEEP_ALIVE), ..spec.transport.clone() }
}

/// Where members call: what the user says, or the addresses of this host from which it reaches them. Its loopback comes last: it means another host elsewhere.
fn call_back(spec: &StartSpec, hosts: &[HostSpec], port: u16) -> Vec<SocketAddr> {
    let mut addresses: Vec<IpAddr> = spec.call_back.clone();
    if addresses.is_empty() {
        let starter = match spec.way {
            Way::Ssh => hosts.first().map(HostSpec::login),
            _ => spec.launcher.on.clone(),
        };
        let starter = starter.map(|login| ssh_names(&SshCommand::new(&spec.ssh, &login), &login.host.to_string_lossy()));
        let names = starter.into_iter().chain(hosts.iter().take(WAYS_LOOKED_UP).map(|host| host.host.clone()));
        for peer in names.flat_map(|name| resolve(&name)).filter(|ip| spec.ssh.family.admits(*ip)) {
            addresses.extend(own_address(SocketAddr::new(peer, port)).filter(|own| !own.is_unspecified()));
        }
        addresses.sort_by_key(IpAddr::is_loopback);
    }
    candidates(&addresses, &[], port, spec.ssh.family)
}

fn order(spec: &StartSpec, by: By, hosts: &[HostSpec], own_key: Fingerprint, call: Vec<SocketAddr>) -> Order {
    let usual = TransportConfig::default();
    let transport = &spec.transport;
    let seconds = |time: Duration| time.as_secs_f64().ceil().max(1.0) as u32;
    let hello = ClientHello {
        bootstrap: BOOTSTRAP,
        version: env!("CARGO_PKG_VERSION").into(),
        client: own_key.to_string().into(),
        family: spec.ssh.family,
        udp_ports: spec.udp_port.filter(|_| spec.dial_out).map(haul_peer::PortRange::ends),
        controller: (transport.controller != usual.controller).then(|| transport.controller.to_string().into()),
        stream_window: None,
        dead_after_s: (transport.idle_timeout != usual.idle_timeout).then(|| seconds(transport.idle_timeout)),
        filler: transport.filler,
        remembered: None,
        opening: None,
        carries: false,
        meets: false,
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let host = |host: &HostSpec| OrderHost {
        member: host.name.as_str().into(),
        host: host.host.as_str().into(),
        user: host.user.as_deref().map(PeerText::from),
        port: host.port,
        data: host.data.as_ref().and_then(|data| data.parse().ok()),
    };
    Order {
        by,
        hosts: hosts.iter().map(host).collect(),
        invitation: Invitation {
            fleet: FLEET,
            member: None,
            hello,
            call,
            data: None,
            patience_s: seconds(spec.timeout),
            stay: false,
        },
        port: None,
        haul: spec.ssh.remote_haul.as_ref().map(text),
        program: spec.launcher.program.as_ref().map(text),
        arguments: spec.launcher.arguments.iter().map(text).collect(),
    }
}

/// What starts the members: ssh to a host that does, or a launcher that is called here.
struct Starter {
    name: String,
    ssh: Option<(Child, ChildStdin)>,
    until: Until,
}

impl Starter {
    fn start(spec: &StartSpec, order: Order, tell: &Arc<dyn Tell>, events: mpsc::Sender<Event>) -> Result<Self, StartError> {
        let on = match spec.way {
            Way::Ssh => order.hosts.first().and_then(OrderHost::login),
            _ => spec.launcher.on.clone(),
        };
        match on {
            Some(host) => Self::through_ssh(spec, &host, &order, tell, events),
            None => Ok(Self::here(spec, order, events)),
        }
    }

    /// The representative is a `haul remote` that reads the order.
    fn through_ssh(
        spec: &StartSpec,
        host: &SshHost,
        order: &Order,
        tell: &Arc<dyn Tell>,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, StartError> {
        let summons = Summons::Lead { fleet: FLEET, version: env!("CARGO_PKG_VERSION").into() };
        let ssh = SshCommand::running(&spec.ssh, host, &format!("remote {}", summons.to_word()));
        let mut command = ssh.start();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command).map_err(|source| StartError::NotStarted { program: ssh.program().to_owned(), source })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all were asked for as pipes")
        };
        let name = host.to_string();
        let mut shown = NamedLines::new(&name, tell.ssh_says());
        let said = thread::spawn(move || {
            let _ = io::copy(&mut stderr, &mut shown);
        });
        // If ssh has ended, the end of its output says so.
        let _ = stdin.write_all(order.to_line().as_bytes()).and_then(|()| stdin.flush());
        let pid = rustix::process::Pid::from_child(&child);
        thread::spawn(move || {
            lines(BufReader::new(stdout), |line| {
                let _ = events.send(Event::Line(line));
            });
            let _ = said.join();
            let status = rustix::process::waitid(
                rustix::process::WaitId::Pid(pid),
                rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
            );
            let status = status.ok().flatten().and_then(|status| status.exit_status());
            let _ = events.send(Event::ChannelEnded(status));
        });
        Ok(Self { name, ssh: Some((child, stdin)), until: Until::default() })
    }

    /// A launcher is called here.
    fn here(spec: &StartSpec, order: Order, events: mpsc::Sender<Event>) -> Self {
        let until = Until::default();
        let told = until.clone();
        // Nobody is started on this host by ssh: that is for the representative.
        let apart = |_: &str| std::process::Command::new("haul");
        thread::spawn(move || {
            let say_to = Mutex::new(events);
            let say = |said: Said| {
                let _ = say_to.lock().unwrap_or_else(PoisonError::into_inner).send(Event::Line(Line::Said(Box::new(said))));
            };
            order.carry_out(&apart, &say, &told);
        });
        Self { name: spec.way.to_string(), ssh: None, until }
    }

    /// The start is over; `enough` have come, or nobody is wanted any more.
    fn end(self, enough: bool) {
        if enough {
            self.until.enough.cancel();
        } else {
            self.until.given_up.cancel();
        }
        let Some((mut child, mut stdin)) = self.ssh else { return };
        if enough {
            let _ = stdin.write_all(ENOUGH.as_bytes()).and_then(|()| stdin.flush());
        }
        drop(stdin);
        thread::spawn(move || child.wait());
    }
}
