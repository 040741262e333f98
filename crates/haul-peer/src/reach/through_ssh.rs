//! To a host behind ssh.
//!
//! ssh logs in and starts `haul remote`; its two lines carry the handshake too, so that the connection is there when the far side's line is, and what is written leaves at once. Whether
//! UDP comes through is known a round trip later: if nothing is heard, whoever uses the connection sees it end ([`Connected::explained`]). Where
//! the line brings no answer to the handshake, it is done over UDP, in a race of the addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use haul::{ClientConfig, Connection, ControllerChoice, Endpoint, Fingerprint, Identity, Opening, TransportConfig};

use super::around::{SshWay, TcpWay};
use super::lifeline::{KEEP_ALIVE, Routes};
use super::logins::LoginsWay;
use super::meeting::RelayWay;
use super::watched::Watched;
use super::ways::{SILENT, Ways};
use super::{Connected, Connector, Judge, Listener, Login, Lost, NO_ANSWER, ReachError, race, unanswered};
use crate::bootstrap::Bootstrap;
use crate::carriage::{Carriage, Carrying};
use crate::clock;
use crate::memory::SavedPath;
use crate::operand::SshHost;
use crate::ports::PortRange;
use crate::ssh::{
    BOOTSTRAP, ClientHello, Forward, RemoteHello, SshCommand, SshError, SshOptions, SshSession, candidates, resolve, ssh_names,
};

impl Connector {
    pub(super) fn through_ssh(&self, host: &SshHost) -> Result<Connected, ReachError> {
        let command = SshCommand::new(&self.ssh, host);
        let identity = Identity::generate();
        let client = identity.public_key().fingerprint();
        // Known when ssh has brought it.
        let server = Arc::new(OnceLock::new());
        let judge = Judge::new({
            let server = Arc::clone(&server);
            move |key| server.get() == Some(&key)
        });
        let mut config = ClientConfig { identity: Some(identity), ..self.config(&judge) };
        config.transport.keep_alive = Some(KEEP_ALIVE);
        let opening = Opening::new(config.clone()).map_err(|error| ReachError::Opening { source: error.into() })?;
        // While ssh logs in.
        let resolved = thread::spawn({
            let (command, given, data) = (command.clone(), host.host.to_string_lossy().into_owned(), self.data.clone());
            move || data.map_or_else(|| resolve(&ssh_names(&command, &given)), |data| resolve(&data))
        });
        let (ssh, remote) = self.log_in(&command, host, &self.hello(client, &opening))?;
        let login = Login { answered: clock::now(), far_start: remote.start_us.map(Duration::from_micros) };
        let unclear = || SshError::Unclear { host: host.to_string() };
        let key: Fingerprint = remote.server.parse().map_err(|_| unclear())?;
        server.get_or_init(|| key);
        let admission = BASE64.decode(remote.token.as_bytes()).map_err(|_| unclear())?;
        let opening = answered(opening, &remote, &ssh);
        let resolved = resolved.join().unwrap_or_default();
        let reported = if self.data.is_none() { &remote.addresses[..] } else { &[] };
        let addresses = candidates(&resolved, reported, remote.port, self.family());
        let what = format!("{}:{}", host.host.display(), remote.port);
        let listener = Listener::FarSide { ports_named: self.udp_port.is_some() };
        let no_answer = unanswered(what.clone(), &addresses, listener);
        let lost = |lost| match lost {
            _ if judge.refused().is_some() => ReachError::SomebodyElse { host: what.clone() },
            Lost::NoAddress => ReachError::NoAddress { host: host.to_string() },
            Lost::NoAnswer => ReachError::NoAnswer(no_answer.clone()),
            Lost::Interrupted => ReachError::Interrupted,
            Lost::NoWay(source) => ReachError::NoWay { host: what.clone(), carriage: self.ssh.carriage, source },
            Lost::Other(error) => ReachError::Connect { host: what.clone(), source: error.into() },
        };
        let ssh = Arc::new(Mutex::new(ssh));
        let is_carried = opening.is_some();
        let (connection, watched, endpoint) = match opening {
            Some(opening) => {
                let endpoint = bound_for(&addresses, self.bind).map_err(lost)?;
                let around = self.around(&endpoint, &command, host, &remote, &addresses);
                let (connection, watched) = self.begin(&endpoint, &addresses, opening, around, &ssh, &what)?;
                (connection, watched, endpoint)
            }
            None if matches!(self.ssh.carriage, Carriage::Tcp | Carriage::Ssh) => {
                return Err(ReachError::UnknownWay { host: what, carriage: self.ssh.carriage });
            }
            None => {
                let config = ClientConfig { admission: Some(admission), ..config };
                let (connection, endpoint) = race(&addresses, self.bind, &config, &self.cancel).map_err(lost)?;
                (connection, None, endpoint)
            }
        };
        tracing::debug!(%host, carried = is_carried, "connected");
        let mut advice: Vec<String> = endpoint.buffer_warning().into_iter().collect();
        advice.extend(remote.advice.map(|advice| format!("on {host}: {advice}")));
        let no_answer = is_carried.then_some(no_answer);
        Ok(Connected {
            connection,
            advice,
            login: Some(login),
            endpoint,
            outages: None,
            ssh: Some(ssh),
            routes: Routes::to(&addresses),
            no_answer,
            key_refused: None,
            watched,
        })
    }

    /// The ways around UDP that the far side knows and this side may take.
    fn around(
        &self,
        endpoint: &Endpoint,
        command: &SshCommand,
        host: &SshHost,
        remote: &RemoteHello,
        addresses: &[SocketAddr],
    ) -> Around {
        let may = |carriage| matches!(self.ssh.carriage, Carriage::Auto) || self.ssh.carriage == carriage;
        let listener = remote.tcp.as_ref().and_then(|of_tcp| Some((of_tcp.port, of_tcp.name()?)));
        let tcp = listener.filter(|_| may(Carriage::Tcp)).map(|(port, name)| {
            let to: Vec<_> = addresses.iter().map(|address| SocketAddr::new(address.ip(), port)).collect();
            let (at, carrier) = endpoint.carry(to.first().copied());
            TcpWay { carrier, at, to, name, bind: self.bind, renames: None, former: None }
        });
        let channel = (remote.channel && may(Carriage::Ssh)).then(|| {
            let peer = addresses.first().map(|address| SocketAddr::new(address.ip(), 22));
            let (at, carrier) = endpoint.carry(peer);
            SshWay { carrier, at, port: endpoint.local_addr().port() }
        });
        let meets = remote.meets && channel.is_some() && self.ssh.carriage == Carriage::Auto;
        let relay = if meets { self.by_relay(endpoint) } else { None };
        let logins = listener.filter(|_| channel.is_some()).map(|(port, name)| {
            let (at, carrier) = endpoint.carry(addresses.first().map(|address| SocketAddr::new(address.ip(), port)));
            LoginsWay { carrier, at, name, forward: Forward::new(command.clone(), port) }
        });
        tracing::debug!(%host, tcp = tcp.is_some(), channel = channel.is_some(), relay = relay.is_some(), "ways around UDP");
        Around { tcp, channel, logins, relay }
    }

    /// Goes on with a connection that is opened already, over what is to carry it.
    fn begin(
        &self,
        endpoint: &Endpoint,
        addresses: &[SocketAddr],
        mut opening: Opening,
        Around { tcp, channel, logins, relay }: Around,
        ssh: &Arc<Mutex<SshSession>>,
        what: &str,
    ) -> Result<(Connection, Option<Watched>), ReachError> {
        let carriage = self.ssh.carriage;
        let unknown = || ReachError::UnknownWay { host: what.to_owned(), carriage };
        let closed = |source| ReachError::NoWay { host: what.to_owned(), carriage, source };
        let (to, begins_over) = match carriage {
            Carriage::Auto | Carriage::Udp => (usable(endpoint, addresses), Carrying::Udp),
            Carriage::Tcp => {
                let way = tcp.as_ref().ok_or_else(unknown)?;
                way.open(NO_ANSWER).map_err(closed)?;
                (vec![way.at], Carrying::Tcp)
            }
            Carriage::Ssh => {
                let way = channel.as_ref().ok_or_else(unknown)?;
                way.open(ssh).map_err(closed)?;
                (vec![way.at], Carrying::Ssh)
            }
        };
        let has_ways = tcp.is_some() || channel.is_some();
        if has_ways {
            // The others are tried after UDP.
            opening.set_connect_timeout(NO_ANSWER * 4);
        }
        let (to, begins_over) = match to.is_empty() {
            true if has_ways => begin_around(tcp.as_ref(), channel.as_ref(), ssh).map_err(closed)?,
            true => return Err(ReachError::NoAddress { host: what.to_owned() }),
            false => (to, begins_over),
        };
        let connection = endpoint
            .connect_opened(&to, opening)
            .map_err(|error| ReachError::Connect { host: what.to_owned(), source: error.into() })?;
        let watched = has_ways.then(|| {
            let (rtt, port) =
                (ssh.lock().unwrap_or_else(PoisonError::into_inner).rtt(), addresses.first().map_or(0, SocketAddr::port));
            let ports = self.udp_port.or_else(|| PortRange::new(port, port)).unwrap_or(ANY_PORT);
            let ways = Ways {
                connection: connection.clone(),
                ssh: Arc::downgrade(ssh),
                udp: if carriage == Carriage::Auto { usable(endpoint, addresses) } else { Vec::new() },
                tcp,
                channel,
                logins,
                relay,
                host: what.rsplit_once(':').map_or(what, |(host, _)| host).to_owned(),
                ports,
                rtt,
                tell: self.told(),
                cancel: self.cancel.clone(),
                silent: SILENT,
            };
            ways.watch(begins_over)
        });
        Ok((connection, watched))
    }

    /// Logs in, and where the far side lacks haul once more, if it may be given one.
    fn log_in(&self, command: &SshCommand, host: &SshHost, hello: &ClientHello) -> Result<(SshSession, RemoteHello), SshError> {
        let error = match self.call_ssh(command, host, hello) {
            Err(error) if error.lacks_haul() => error,
            called => return called,
        };
        let bootstrap = match command.bootstrap() {
            // What is there has this version's name, and not its words.
            Some(tried) if !tried.afresh => Some(Bootstrap { afresh: true, ..tried.clone() }),
            Some(_) => None,
            None => self.tell.bootstraps(host, &error.to_string()),
        };
        let Some(bootstrap) = bootstrap else { return Err(error) };
        let options = SshOptions { bootstrap: Some(bootstrap), ..self.ssh.clone() };
        self.call_ssh(&SshCommand::new(&options, host), host, hello)
    }

    /// Starts ssh; once more where this host got another address meanwhile, as one does that changes the network.
    fn call_ssh(&self, command: &SshCommand, host: &SshHost, hello: &ClientHello) -> Result<(SshSession, RemoteHello), SshError> {
        let start = || SshSession::start(command, &host.to_string(), hello, &*self.tell, &self.cancel);
        match start() {
            Err(SshError::CutOff { .. }) => {
                tracing::debug!(%host, "this host's address has changed: ssh is started again");
                start()
            }
            started => started,
        }
    }

    fn hello(&self, client: Fingerprint, opening: &Opening) -> ClientHello {
        let (controller, window) = (self.transport.controller, self.transport.stream_window);
        ClientHello {
            bootstrap: BOOTSTRAP,
            version: env!("CARGO_PKG_VERSION").into(),
            client: client.to_string().into(),
            family: self.family(),
            udp_ports: self.udp_port.map(PortRange::ends),
            controller: (controller != ControllerChoice::default()).then(|| controller.to_string().into()),
            stream_window: (window != TransportConfig::default().stream_window).then_some(window.as_u64()),
            dead_after_s: (self.transport.idle_timeout != TransportConfig::default().idle_timeout)
                .then(|| u32::try_from(self.transport.idle_timeout.as_secs()).unwrap_or(u32::MAX)),
            filler: self.transport.filler,
            remembered: self.transport.remembered.map(SavedPath::from),
            opening: Some(BASE64.encode(&opening.bytes())),
            carries: self.ssh.carriage != Carriage::Udp,
            meets: self.ssh.carriage == Carriage::Auto && self.ssh.relay.is_some(),
        }
    }
}

/// What there is where UDP does not pass.
struct Around {
    tcp: Option<TcpWay>,
    channel: Option<SshWay>,
    logins: Option<LoginsWay>,
    relay: Option<RelayWay>,
}

/// Where there is no address for UDP at all.
fn begin_around(
    tcp: Option<&TcpWay>,
    channel: Option<&SshWay>,
    ssh: &Mutex<SshSession>,
) -> std::io::Result<(Vec<SocketAddr>, Carrying)> {
    if let Some(way) = tcp
        && way.open(NO_ANSWER).is_ok()
    {
        return Ok((vec![way.at], Carrying::Tcp));
    }
    let way = channel.ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    way.open(ssh)?;
    Ok((vec![way.at], Carrying::Ssh))
}

/// The opening with the far side's answer, if that brought a good one.
fn answered(mut opening: Opening, remote: &RemoteHello, ssh: &SshSession) -> Option<Opening> {
    let answer = BASE64.decode(remote.answer.as_ref()?.as_bytes()).ok()?;
    let answered = opening.on_answer(&answer, ssh.rtt());
    answered.inspect_err(|error| tracing::debug!(%error, "the handshake goes over UDP")).ok()?;
    Some(opening)
}

/// A socket for these addresses: one for both families, where there are both and the machine has them.
fn bound_for(addresses: &[SocketAddr], bind: Option<IpAddr>) -> Result<Endpoint, Lost> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let both = addresses.iter().any(SocketAddr::is_ipv6).then_some(Ipv6Addr::UNSPECIFIED.into());
    let own = if first_is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let bound = |ip: IpAddr| Endpoint::bind(SocketAddr::new(ip, 0)).ok();
    let endpoint = match bind {
        Some(ip) => bound(ip),
        None => both.and_then(bound).or_else(|| bound(own)).or_else(|| bound(Ipv4Addr::UNSPECIFIED.into())),
    };
    // A machine without this family cannot bind: as far from an answer as a silent peer.
    endpoint.ok_or(Lost::NoAnswer)
}

/// Those that a socket's family reaches.
fn usable(endpoint: &Endpoint, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let local = endpoint.local_addr().ip();
    let reached = |address: &&SocketAddr| local == IpAddr::from(Ipv6Addr::UNSPECIFIED) || local.is_ipv4() == address.is_ipv4();
    addresses.iter().filter(reached).copied().collect()
}

/// What may have to be open where nobody has said which.
const ANY_PORT: PortRange = PortRange::ALL;
