//! One program's way to the members of a fleet that is kept, for one job: it makes a key, is invited with that, and connects.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{Connection, Fingerprint, Identity, TransportConfig};
use haul_peer::{Connector, DaemonHost, Host, KEEP_ALIVE, PortRange, Tell};
use haul_units::{BitRate, Bytes, Cancel};

use super::error::JoinError;
use super::messages::{Gone, Terms, Ticket, TicketWay};
use crate::clock;
use crate::member::Member;
use crate::start::{Absent, AbsentError, Callers, Fleet, dial, dialling};

/// How long members may take to call: they were heard a moment ago.
const CALLS: Duration = Duration::from_secs(10);

/// A program that is about to visit a fleet.
pub struct Visit {
    terms: Terms,
    transport: TransportConfig,
    identity: Identity,
    callers: Callers,
}

/// What comes of a member, by its place in the terms.
enum Event {
    Called(usize, Connection),
    Reached(usize, Box<Result<Member, AbsentError>>),
}

impl Visit {
    /// With a key of its own and, where members call, a port. `usual`: what of the connections the terms do not say.
    pub fn prepare(terms: Terms, usual: TransportConfig) -> Result<Self, JoinError> {
        let transport = TransportConfig {
            controller: terms.controller.parse().unwrap_or(usual.controller),
            idle_timeout: Duration::from_secs(terms.dead_after_s.max(1)),
            keep_alive: Some(KEEP_ALIVE),
            max_packet: terms.max_packet.unwrap_or(usual.max_packet),
            memory: terms.memory.map_or(usual.memory, Bytes),
            ..usual
        };
        let identity = Identity::generate();
        let callers = if terms.anybody_calls() { listen(&terms, &transport, &identity)? } else { Callers::default() };
        for (index, member) in terms.members.iter().enumerate() {
            if let TicketWay::Call { key } = &member.way
                && let Ok(key) = key.parse()
            {
                callers.expect(key, index);
            }
        }
        Ok(Self { terms, transport, identity, callers })
    }

    /// Its key.
    pub fn key(&self) -> Fingerprint {
        self.identity.public_key().fingerprint()
    }

    /// Where members are to call it.
    pub fn port(&self) -> Option<u16> {
        self.callers.port()
    }

    /// Connects with all members but those that will not have it.
    pub fn connect(self, refused: Vec<Gone>, tell: &Arc<dyn Tell>, cancel: &Cancel) -> Fleet {
        let is_refused = |ticket: &Ticket| refused.iter().any(|gone| gone.name == ticket.name);
        let (tell_event, events) = mpsc::channel();
        let (mut waiting, mut waiting_for_dialled) = (0, 0);
        for (index, ticket) in self.terms.members.iter().enumerate().filter(|(_, ticket)| !is_refused(ticket)) {
            waiting += 1;
            if let Some(reach) = self.reach(ticket, tell, cancel) {
                waiting_for_dialled += 1;
                let tell_event = tell_event.clone();
                thread::spawn(move || {
                    // Nobody hears it where the visit was given up; the connection ends with the value.
                    let _ = tell_event.send(Event::Reached(index, Box::new(reach())));
                });
            }
        }
        let mut outcomes: HashMap<usize, Result<Member, AbsentError>> = HashMap::new();
        let deadline = clock::now() + CALLS;
        // What is dialled ends by itself; calls are waited for no longer than so long.
        while outcomes.len() < waiting && !cancel.is_cancelled() && (waiting_for_dialled > 0 || clock::now() < deadline) {
            let mut next = self.callers.next(&events, &tell_event, Event::Called);
            while let Some(event) = next {
                let (index, outcome) = match event {
                    Event::Called(index, connection) => {
                        let name = self.terms.members.get(index).map_or("", |ticket| ticket.name.as_str());
                        (index, Ok(Member::called_back(name, connection)))
                    }
                    Event::Reached(index, outcome) => {
                        waiting_for_dialled -= 1;
                        (index, *outcome)
                    }
                };
                outcomes.entry(index).or_insert(outcome);
                next = events.try_recv().ok();
            }
        }
        self.callers.expect_nobody();
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
                let config = key.map(|key| dialling(&self.identity, key, self.transport.clone()));
                Some(Box::new(move || {
                    let config = config.map_err(|_| AbsentError::OtherVersion)?;
                    Ok(Member::called_back(name, dial(&[at], &config, &cancel)?))
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
}

fn listen(terms: &Terms, transport: &TransportConfig, identity: &Identity) -> Result<Callers, JoinError> {
    let ports = terms.udp_ports.and_then(|(first, last)| PortRange::new(first, last));
    let callers = Callers::listen(terms.family, ports, identity.clone(), transport.clone());
    callers.map_err(|source| JoinError::NoPort { source, ports_named: ports.is_some() })
}
