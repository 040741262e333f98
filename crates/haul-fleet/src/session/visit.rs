//! One program's way to the members of a fleet that is kept, for one job: it makes a key, is invited with that, and connects.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_peer::{Connector, DaemonHost, Host, KEEP_ALIVE, PortRange, Tell, from_line, race};
use haul_units::{BitRate, Cancel};

use super::error::JoinError;
use super::messages::{Gone, Terms, Ticket, TicketWay};
use crate::clock;
use crate::member::Member;
use crate::start::{Absent, AbsentError, CALLED, Calling, Fleet};

/// How long members may take to call: they were heard a moment ago.
const CALLS: Duration = Duration::from_secs(10);
/// How often to look for an interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// A program that is about to visit a fleet.
pub struct Visit {
    terms: Terms,
    transport: TransportConfig,
    identity: Identity,
    /// Where members call.
    listening: Option<Endpoint>,
    /// Whose handshake is completed there.
    expected: Arc<Mutex<HashMap<Fingerprint, usize>>>,
}

impl Visit {
    /// With a key of its own and, where members call, a port. `usual`: what of the connections the terms do not say.
    pub fn prepare(terms: Terms, usual: TransportConfig) -> Result<Self, JoinError> {
        let transport = TransportConfig {
            controller: terms.controller.parse().unwrap_or(usual.controller),
            idle_timeout: Duration::from_secs(terms.dead_after_s.max(1)),
            keep_alive: Some(KEEP_ALIVE),
            ..usual
        };
        let identity = Identity::generate();
        let calls = terms.members.iter().enumerate().filter_map(|(index, member)| match &member.way {
            TicketWay::Call { key } => Some((key.parse::<Fingerprint>().ok()?, index)),
            _ => None,
        });
        let expected = Arc::new(Mutex::new(calls.collect::<HashMap<_, _>>()));
        let listening = terms.anybody_calls().then(|| listen(&terms, &transport, &identity, &expected)).transpose()?;
        Ok(Self { terms, transport, identity, listening, expected })
    }

    /// Its key.
    pub fn key(&self) -> Fingerprint {
        self.identity.public_key().fingerprint()
    }

    /// Where members are to call it.
    pub fn port(&self) -> Option<u16> {
        self.listening.as_ref().map(|endpoint| endpoint.local_addr().port())
    }

    /// Connects with all members but those that will not have it.
    pub fn connect(self, refused: Vec<Gone>, tell: &Arc<dyn Tell>, cancel: &Cancel) -> Fleet {
        let is_refused = |ticket: &Ticket| refused.iter().any(|gone| gone.name == ticket.name);
        let (report, reports) = mpsc::channel();
        let (mut waiting, mut dialling) = (0, 0);
        for (index, ticket) in self.terms.members.iter().enumerate().filter(|(_, ticket)| !is_refused(ticket)) {
            waiting += 1;
            if let Some(reach) = self.reach(ticket, tell, cancel) {
                dialling += 1;
                let report = report.clone();
                thread::spawn(move || {
                    // Nobody hears it where the visit was given up; the connection ends with the value.
                    let _ = report.send((index, reach()));
                });
            }
        }
        let mut outcomes: HashMap<usize, Result<Member, AbsentError>> = HashMap::new();
        let deadline = clock::now() + CALLS;
        // What is dialled ends by itself; calls are waited for no longer than so long.
        while outcomes.len() < waiting && !cancel.is_cancelled() && (dialling > 0 || clock::now() < deadline) {
            if let Some(endpoint) = &self.listening
                && let Ok(Some(connection)) = endpoint.accept_timeout(LOOK)
            {
                self.hear(connection, &report);
            }
            let mut next = if self.listening.is_some() { reports.try_recv().ok() } else { reports.recv_timeout(LOOK).ok() };
            while let Some((index, outcome)) = next {
                let is_called = self.terms.members.get(index).is_some_and(|ticket| matches!(ticket.way, TicketWay::Call { .. }));
                dialling -= usize::from(!is_called);
                outcomes.entry(index).or_insert(outcome);
                next = reports.try_recv().ok();
            }
        }
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut fleet = Fleet::default();
        for (index, ticket) in self.terms.members.iter().enumerate().filter(|(_, ticket)| !is_refused(ticket)) {
            match outcomes.remove(&index).unwrap_or(Err(AbsentError::NoCall { waited: CALLS })) {
                Ok(member) => fleet.members.push(Member {
                    path: ticket.path.as_ref().map(haul_files::WirePath::to_path),
                    limit: ticket.limit_bps.map(BitRate::from_bps),
                    ..member
                }),
                Err(why) => fleet.absent.push(Absent { name: ticket.name.clone(), why }),
            }
        }
        fleet.absent.extend(self.terms.gone.into_iter().chain(refused).map(Absent::from));
        fleet.share_memory(self.transport.memory);
        fleet
    }

    /// What connects with a member; nothing for one that calls.
    fn reach(
        &self,
        ticket: &Ticket,
        tell: &Arc<dyn Tell>,
        cancel: &Cancel,
    ) -> Option<Box<dyn FnOnce() -> Result<Member, AbsentError> + Send>> {
        let (name, cancel) = (ticket.name.clone(), cancel.clone());
        match &ticket.way {
            TicketWay::Call { .. } => None,
            TicketWay::Dial { at, key } => {
                let (at, key) = (*at, key.parse::<Fingerprint>());
                let config = |key| ClientConfig {
                    identity: Some(self.identity.clone()),
                    protocols: vec![haul_copy::PROTOCOL.to_vec()],
                    transport: self.transport.clone(),
                    ..ClientConfig::new(PeerTrust::Pinned(vec![key]))
                };
                let config = key.map(config);
                Some(Box::new(move || {
                    let config = config.map_err(|_| AbsentError::OtherVersion)?;
                    let lost = |lost: haul_peer::Lost| AbsentError::NoAnswer { tried: vec![at.ip()], lost: lost.into() };
                    let (connection, _) = race(&[at], None, &config, &cancel).map_err(lost)?;
                    Ok(Member::called_back(name, connection))
                }))
            }
            TicketWay::Daemon { host, port, data } => {
                let connector = Connector {
                    state: self.terms.state(),
                    transport: self.transport.clone(),
                    data: data.clone(),
                    tell: tell.clone(),
                    cancel,
                    ..Connector::new(haul_copy::PROTOCOL)
                };
                let host = Host::Daemon(DaemonHost { host: host.to_ascii_lowercase(), port: *port });
                Some(Box::new(move || Ok(Member::reached(name, connector.connect(&host)?))))
            }
        }
    }

    /// Waits on a connection of an expected member for its word that it is calling.
    fn hear(&self, connection: Connection, report: &mpsc::Sender<(usize, Result<Member, AbsentError>)>) {
        let key = connection.peer_key().map(|key| key.fingerprint());
        let index = key.and_then(|key| self.expected.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied());
        let Some((index, ticket)) = index.and_then(|index| Some((index, self.terms.members.get(index)?))) else { return };
        let (name, report) = (ticket.name.clone(), report.clone());
        thread::spawn(move || {
            let calling =
                connection.accept_uni().map_err(io::Error::from).and_then(|mut stream| from_line::<Calling>(&mut stream));
            if calling.is_ok() {
                let _ = report.send((index, Ok(Member::called_back(name, connection))));
            }
        });
    }
}

fn listen(
    terms: &Terms,
    transport: &TransportConfig,
    identity: &Identity,
    expected: &Arc<Mutex<HashMap<Fingerprint, usize>>>,
) -> Result<Endpoint, JoinError> {
    let expected = expected.clone();
    let trust = PeerTrust::Callback(Arc::new(move |key| {
        expected.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&key.fingerprint())
    }));
    let config = ServerConfig {
        protocols: vec![CALLED.to_vec()],
        transport: transport.clone(),
        ..ServerConfig::new(identity.clone(), trust)
    };
    let named = terms.udp_ports.and_then(|(first, last)| PortRange::new(first, last));
    let ports = named.map_or(0..=0, PortRange::range);
    let bound = terms.family.listen(|ip| Endpoint::listen_in(ip, ports.clone(), config.clone()));
    bound.map_err(|source| JoinError::NoPort { source, ports_named: named.is_some() })
}
