//! From a host's name to a connection: through ssh, or to a daemon whose key is known.

mod around;
mod error;
mod growth;
mod lifeline;
mod logins;
mod meeting;
mod through_relay;
mod through_ssh;
mod to_listener;
mod watched;
mod ways;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

pub use self::error::{Listener, ReachError, Unanswered};
pub use self::lifeline::{KEEP_ALIVE, Lifeline, is_heard, own_address};
use self::lifeline::{Routes, is_silent};
use self::watched::Watched;
use haul::{ClientConfig, ConnectError, Connection, Endpoint, Fingerprint, Identity, PeerTrust, TransportConfig};
use haul_units::Cancel;
use thiserror::Error;

use crate::carriage::{Carrying, Relayed};
use crate::chain::chain;
use crate::clock;
use crate::keys::{self, KeysError, Known, KnownHosts};
use crate::operand::{DaemonHost, SshHost};
use crate::outage::OutageWatch;
use crate::ports::PortRange;
use crate::returning::ReturnTokens;
use crate::ssh::{Family, SshOptions, SshSession, candidates, resolve};
use crate::state::StateDir;
use crate::tell::{Nobody, Tell};

/// Without any answer over UDP for so long, it counts as blocked.
const NO_ANSWER: Duration = Duration::from_secs(5);
/// How often to look for an interrupt meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// Head start of each address over the next one.
const HEAD_START: Duration = Duration::from_millis(300);

/// Held from reading what is known of hosts to writing what was answered: of many that are reached at once, one asks at a time.
static ASKING: Mutex<()> = Mutex::new(());

/// The machine at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Behind ssh.
    Ssh(SshHost),
    /// Behind a daemon, whose key must be known.
    Daemon(DaemonHost),
    /// Behind something that has this key and no other; it is to know ours.
    Pinned(DaemonHost, Fingerprint),
    /// A server that lets anyone in; if a key is given, only the one that has it.
    Open(DaemonHost, Option<Fingerprint>),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(host) => host.fmt(f),
            Self::Daemon(host) => write!(f, "haul://{host}"),
            Self::Pinned(host, _) | Self::Open(host, _) => host.fmt(f),
        }
    }
}

/// Connects to hosts.
#[derive(Clone)]
pub struct Connector {
    /// What is asked of the far side: an application protocol's name.
    pub service: &'static [u8],
    /// What is handed to ssh.
    pub ssh: SshOptions,
    /// UDP ports that the far side may use; any, unless it is said.
    pub udp_port: Option<PortRange>,
    /// Directory of keys, where it is not the usual one.
    pub state: Option<PathBuf>,
    /// How the connection behaves; the far side of ssh is told to use the same controller.
    pub transport: TransportConfig,
    /// Local address to connect from; any, unless it is said.
    pub bind: Option<IpAddr>,
    /// Name or address of the host for what goes over UDP, where it is another one than that for logging in.
    pub data: Option<String>,
    /// Whether outages are told of. Who shows progress sees them himself.
    pub tells_outages: bool,
    /// Who hears what happens meanwhile.
    pub tell: Arc<dyn Tell>,
    /// Ends what is under way here.
    pub cancel: Cancel,
}

/// A connection, and what must live as long.
pub struct Connected {
    /// The connection.
    pub connection: Connection,
    /// Advice on the systems of both sides.
    pub advice: Vec<String>,
    /// When ssh had logged in, where it had to.
    pub login: Option<Login>,
    endpoint: Endpoint,
    ssh: Option<Arc<Mutex<SshSession>>>,
    /// Tells of outages.
    outages: Option<OutageWatch>,
    /// How the peer was reached when ssh had logged in.
    routes: Routes,
    /// What is wrong if nothing is ever heard over UDP, where that was not waited for.
    no_answer: Option<Unanswered>,
    /// What is wrong if the other side refuses our key, where it may.
    key_refused: Option<(DaemonHost, Fingerprint)>,
    /// Somebody looks for another way where UDP falls silent.
    watched: Option<Watched>,
}

/// A login that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// ssh had brought the far side's answer.
    pub answered: Instant,
    /// What the far side took from its start to that, in its own words; none from one that does not say.
    pub far_start: Option<Duration>,
}

impl Connected {
    /// Why everything fails that is asked of this connection, where that is known: nothing came over UDP from the beginning, or the other side refused our key.
    pub fn cause(&self) -> Option<ReachError> {
        let end = self.connection.end();
        let no_answer = self.no_answer.as_ref().filter(|_| end.as_ref().is_some_and(haul::ConnectionError::is_unanswered));
        let key_refused = self.key_refused.as_ref().filter(|_| end.as_ref().is_some_and(haul::ConnectionError::is_key_refused));
        match (no_answer, key_refused) {
            (Some(unanswered), _) => Some(ReachError::NoAnswer(unanswered.clone())),
            (None, Some((host, key))) => Some(ReachError::KeyRefused { host: host.clone(), key: *key }),
            (None, None) => None,
        }
    }

    /// What carries the connection at present.
    pub fn carrying(&self) -> Carrying {
        self.watched.as_ref().map_or(Carrying::Udp, Watched::carrying)
    }

    /// What has gone by way of a relay, where one carries the connection at present.
    pub fn relayed(&self) -> Option<Relayed> {
        self.watched.as_ref()?.relayed(&self.connection)
    }

    /// Where the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Tells whether there is still somebody to wait for.
    pub fn lifeline(&self) -> Lifeline {
        Lifeline { connection: self.connection.clone(), ssh: self.ssh.clone() }
    }

    /// Whether the connection was made through ssh, and ssh has ended.
    pub fn ssh_has_ended(&self) -> bool {
        self.ssh_ended_for().is_some()
    }

    /// How long ago ssh was seen to have ended, if the connection was made through it.
    pub fn ssh_ended_for(&self) -> Option<Duration> {
        self.ssh.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).ended_for()
    }

    /// Lets the far side end once its work is done and told of. It is waited for only where what ssh still says is to come before our end.
    pub fn part(self, hear_ssh: bool) {
        if hear_ssh { self.end() } else { self.leave() }
    }

    fn leave(self) {
        if let Some(ssh) = &self.ssh {
            let is_cut_off = self.routes.has_changed(self.connection.remote_addr()) || is_silent(&self.connection);
            ssh.lock().unwrap_or_else(PoisonError::into_inner).leave(is_cut_off);
        }
    }

    /// Lets the far side end, and waits for it.
    pub fn end(self) {
        if let Some(ssh) = &self.ssh {
            ssh.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
    }
}

impl Connector {
    /// Asks for a service, as haul does where its user says no more.
    pub fn new(service: &'static [u8]) -> Self {
        Self {
            service,
            ssh: SshOptions::default(),
            udp_port: None,
            state: None,
            transport: TransportConfig::default(),
            bind: None,
            data: None,
            tells_outages: false,
            tell: Arc::new(Nobody),
            cancel: Cancel::new(),
        }
    }

    /// Connects, by whatever way the host asks for.
    pub fn connect(&self, host: &Host) -> Result<Connected, ReachError> {
        let connected = match host {
            Host::Ssh(host) => self.through_ssh(host),
            Host::Daemon(host) => self.to_daemon(host),
            Host::Pinned(host, key) => self.to_key(host, *key),
            Host::Open(host, key) => self.to_anyone(host, *key),
        }?;
        Ok(self.watched(connected))
    }

    fn watched(&self, mut connected: Connected) -> Connected {
        if self.tells_outages {
            connected.outages = Some(OutageWatch::start(connected.connection.clone(), Arc::clone(&self.tell)));
        }
        connected
    }

    /// Connects to a daemon that was there before, as soon as it answers again; until `deadline`, and tries once in any case.
    pub fn connect_by(&self, host: &DaemonHost, deadline: Instant) -> Result<Connected, ReachError> {
        loop {
            match self.to_daemon(host) {
                Err(ReachError::NoAnswer(_)) if clock::now() < deadline && !self.cancel.is_cancelled() => {
                    thread::park_timeout(LOOK);
                }
                result => return result.map(|connected| self.watched(connected)),
            }
        }
    }

    fn to_daemon(&self, host: &DaemonHost) -> Result<Connected, ReachError> {
        let (identity, state) = self.identity()?;
        let known_hosts = || {
            let path = state.known_hosts();
            KnownHosts::load(path.clone())
        };
        let (known, looked_up) = (known_hosts()?, host.clone());
        let judge = Judge::new(move |key| known.look_up(&looked_up, key) == Known::Trusted);
        let won = self.handshake(host, self.daemon(), &judge, Some(identity.clone()));
        let Some(key) = judge.refused() else { return won };
        self.admit(host, key, known_hosts)?;
        self.handshake(host, self.daemon(), &Judge::new(move |now| now == key), Some(identity))
    }

    fn to_key(&self, host: &DaemonHost, key: Fingerprint) -> Result<Connected, ReachError> {
        let judge = Judge::new(move |now| now == key);
        let won = self.handshake(host, self.daemon(), &judge, Some(self.identity()?.0));
        match judge.refused() {
            Some(other) => Err(ReachError::OtherKey { host: host.clone(), key: other, expected: key }),
            None => won,
        }
    }

    fn to_anyone(&self, host: &DaemonHost, pinned: Option<Fingerprint>) -> Result<Connected, ReachError> {
        let judge = Judge::new(move |key| pinned.is_none_or(|pinned| pinned == key));
        let won = self.handshake(host, Listener::Open, &judge, None);
        match judge.refused() {
            Some(key) => Err(ReachError::NotTheKeyGiven { host: host.clone(), key }),
            None => won,
        }
    }

    fn identity(&self) -> Result<(Identity, StateDir), ReachError> {
        let state = StateDir::find(self.state.as_deref())?;
        Ok((keys::load_or_make(&state)?.0, state))
    }

    /// Tries a host where `listener` should be found.
    fn handshake(
        &self,
        host: &DaemonHost,
        listener: Listener,
        judge: &Judge,
        identity: Option<Identity>,
    ) -> Result<Connected, ReachError> {
        let name = self.data.as_deref().unwrap_or(&host.host);
        let addresses = candidates(&resolve(name), &[], host.port, self.family());
        let key_refused = identity.as_ref().map(|identity| (host.clone(), identity.public_key().fingerprint()));
        let tokens = StateDir::find(self.state.as_deref()).ok().map(|state| ReturnTokens::of(&state));
        let admission = tokens.as_ref().and_then(|tokens| tokens.look_up(&addresses));
        let config = ClientConfig { identity, admission, ..self.config(judge) };
        let reached = self.to_listener(host, &addresses, &config);
        let (connection, endpoint, watched) = reached.map_err(|lost| match (lost, &key_refused) {
            (Lost::NoAddress, _) => ReachError::NoSuchHost { name: name.to_owned() },
            (Lost::NoAnswer, _) => ReachError::NoAnswer(unanswered(host.to_string(), &addresses, listener)),
            (Lost::Interrupted, _) => ReachError::Interrupted,
            (Lost::NoWay(source), _) => ReachError::NoWay { host: host.to_string(), carriage: self.ssh.carriage, source },
            (Lost::Other(error), Some((host, key))) if error.is_key_refused() => {
                ReachError::KeyRefused { host: host.clone(), key: *key }
            }
            (Lost::Other(error), _) => ReachError::Connect { host: host.to_string(), source: error.into() },
        })?;
        // What TCP carries comes from an address of its own.
        if let (Some(tokens), Some((server, token))) =
            (tokens, connection.way_back().filter(|(server, _)| addresses.contains(server)))
        {
            tokens.keep(server, &token, connection.stats().rtt);
        }
        let advice = endpoint.buffer_warning().into_iter().collect();
        Ok(Connected {
            connection,
            advice,
            login: None,
            endpoint,
            ssh: None,
            outages: None,
            routes: Routes::default(),
            no_answer: None,
            key_refused,
            watched,
        })
    }

    /// What has a key of its own and this service.
    const fn daemon(&self) -> Listener {
        Listener::Daemon(self.service)
    }

    /// What to do about a key that is not trusted: refuse a changed one, ask about a new one.
    fn admit(
        &self,
        host: &DaemonHost,
        key: Fingerprint,
        known_hosts: impl Fn() -> Result<KnownHosts, KeysError>,
    ) -> Result<(), ReachError> {
        let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancel.is_cancelled() {
            return Err(ReachError::Interrupted);
        }
        // What others were told while this one waited is in it.
        let mut known = known_hosts()?;
        let (host, state) = (host.clone(), self.state.clone());
        match known.look_up(&host, key) {
            Known::Trusted => Ok(()),
            Known::Changed(trusted) => Err(ReachError::KeyChanged { host, trusted, now: key, state }),
            Known::Unknown => match self.tell.trusts(&host, key) {
                Some(true) => known.trust(&host, key).map_err(|source| ReachError::KeyNotKept { source }),
                Some(false) => Err(ReachError::KeyNotTrusted { host }),
                None => Err(ReachError::KeyUnknown { host, key, state }),
            },
        }
    }

    fn family(&self) -> Family {
        self.ssh.family
    }

    fn config(&self, judge: &Judge) -> ClientConfig {
        ClientConfig {
            protocols: vec![self.service.to_vec()],
            transport: self.transport.clone(),
            connect_timeout: NO_ANSWER,
            ..ClientConfig::new(judge.trust())
        }
    }
}

/// Decides on a key, and remembers one that it refused.
struct Judge {
    trusts: Arc<dyn Fn(Fingerprint) -> bool + Send + Sync>,
    refused: Arc<Mutex<Option<Fingerprint>>>,
}

impl Judge {
    fn new(trusts: impl Fn(Fingerprint) -> bool + Send + Sync + 'static) -> Self {
        Self { trusts: Arc::new(trusts), refused: Arc::default() }
    }

    fn trust(&self) -> PeerTrust {
        let (trusts, refused) = (Arc::clone(&self.trusts), Arc::clone(&self.refused));
        PeerTrust::Callback(Arc::new(move |key| {
            let key = key.fingerprint();
            let trusted = trusts(key);
            if !trusted {
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
            }
            trusted
        }))
    }

    fn refused(&self) -> Option<Fingerprint> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no address led to a connection.
#[derive(Debug, Error)]
pub enum Lost {
    /// There is none.
    #[error("no address")]
    NoAddress,
    /// Nothing came back.
    #[error("no answer over UDP within {} s", NO_ANSWER.as_secs())]
    NoAnswer,
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// What is to carry the connection did not come about.
    #[error("no connection over TCP: {0}")]
    NoWay(std::io::Error),
    /// Something came back, and it was no connection.
    #[error("{}", chain(.0))]
    Other(ConnectError),
}

/// Tries the addresses, each with a small head start over the next; the first connection wins. Those that lose end without a word.
pub fn race(
    addresses: &[SocketAddr],
    bind: Option<IpAddr>,
    config: &ClientConfig,
    cancel: &Cancel,
) -> Result<(Connection, Endpoint), Lost> {
    let deadline = clock::now() + NO_ANSWER;
    let (report, results) = mpsc::channel();
    let mut waiting = addresses.iter();
    let mut next_start = clock::now();
    let mut running = 0;
    let mut lost = Lost::NoAddress;
    loop {
        let now = clock::now();
        if (running == 0 || now >= next_start)
            && let Some(&address) = waiting.next()
        {
            let left = deadline.saturating_duration_since(now);
            let (config, report) = (ClientConfig { connect_timeout: left, ..config.clone() }, report.clone());
            thread::spawn(move || report.send(attempt(address, bind, config)));
            (running, next_start) = (running + 1, now + HEAD_START);
        }
        if running == 0 {
            return Err(lost);
        }
        match results.recv_timeout(LOOK) {
            Ok(Ok(won)) => return Ok(won),
            Ok(Err(error)) => (running, lost) = (running - 1, worse(lost, error)),
            Err(_) if cancel.is_cancelled() => return Err(Lost::Interrupted),
            Err(_) if now >= deadline => return Err(worse(lost, Lost::NoAnswer)),
            Err(_) => {}
        }
    }
}

fn attempt(address: SocketAddr, bind: Option<IpAddr>, config: ClientConfig) -> Result<(Connection, Endpoint), Lost> {
    let any: IpAddr = if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    // A machine without this family cannot bind: as far from an answer as a silent peer.
    let endpoint = Endpoint::bind(SocketAddr::new(bind.unwrap_or(any), 0)).map_err(|_| Lost::NoAnswer)?;
    match endpoint.connect(address, config) {
        Ok(connection) => Ok((connection, endpoint)),
        Err(ConnectError::TimedOut { .. }) => Err(Lost::NoAnswer),
        Err(error) => Err(Lost::Other(error)),
    }
}

/// The more telling of two failures: an answer of any kind says more than none.
fn worse(one: Lost, other: Lost) -> Lost {
    let weight = |lost: &Lost| match lost {
        Lost::NoAddress => 0,
        Lost::NoAnswer | Lost::NoWay(_) => 1,
        Lost::Other(_) => 2,
        Lost::Interrupted => 3,
    };
    if weight(&other) > weight(&one) { other } else { one }
}

fn unanswered(host: String, addresses: &[SocketAddr], listener: Listener) -> Unanswered {
    Unanswered { host, tried: addresses.iter().map(SocketAddr::ip).collect(), listener }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn host(name: &str) -> DaemonHost {
        DaemonHost::parse(name).unwrap()
    }

    /// Says yes, and counts.
    struct Yes {
        known_hosts: PathBuf,
        asked: AtomicUsize,
        inside: AtomicUsize,
    }

    impl Tell for Yes {
        fn trusts(&self, asked: &DaemonHost, key: Fingerprint) -> Option<bool> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            assert!(ASKING.try_lock().is_err(), "nobody else can ask now");
            // Another command, meanwhile.
            let other = host(&format!("beside-{}", asked.host));
            KnownHosts::load(self.known_hosts.clone()).unwrap().trust(&other, key).unwrap();
            self.inside.fetch_sub(1, Ordering::SeqCst);
            Some(true)
        }
    }

    #[test]
    fn of_many_hosts_one_asks_at_a_time_and_each_answer_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_hosts");
        let known_hosts = || KnownHosts::load(path.clone());
        let tell = Arc::new(Yes { known_hosts: path.clone(), asked: AtomicUsize::new(0), inside: AtomicUsize::new(0) });
        let connector = Connector { state: Some(dir.path().to_owned()), tell: tell.clone(), ..Connector::new(b"x") };
        let key = Identity::generate().public_key().fingerprint();
        // Two are disks of one machine.
        let names = ["a", "b", "a"];
        let together = Barrier::new(names.len());
        thread::scope(|scope| {
            for name in names {
                let (connector, together) = (&connector, &together);
                scope.spawn(move || {
                    together.wait();
                    connector.admit(&host(name), key, known_hosts).unwrap();
                });
            }
        });
        let known = known_hosts().unwrap();
        for name in ["a", "b", "beside-a", "beside-b"] {
            assert_eq!(known.look_up(&host(name), key), Known::Trusted, "{name}");
        }
        assert_eq!(tell.asked.load(Ordering::SeqCst), 2, "what is known by now is not asked");
        connector.cancel.cancel();
        assert!(matches!(connector.admit(&host("c"), key, known_hosts), Err(ReachError::Interrupted)));
        assert_eq!(tell.asked.load(Ordering::SeqCst), 2, "who has given up asks nothing");
    }
}
