//! Members that are kept: who is there, who has gone, who is started again, and whom they let in.
//!
//! Each member is held by a connection that carries nothing else ([`Keeping`]). It is heard each second, so one that dies while it rests is noticed; before the next job it is started again, and if that fails not before a while
//! has passed, so that a host that is off does not slow down every job.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, Fingerprint};
use haul_copy::Keeping;
use haul_files::WirePath;
use haul_peer::{Connected, Tell, chain, is_heard};
use haul_units::{BitRate, Cancel};

use super::messages::{Gone, Terms, Ticket, TicketWay};
use crate::at_once::{MEMBERS_AT_ONCE, at_once};
use crate::clock;
use crate::member::Member;
use crate::start::{Absent, AbsentError, Fleet, HostSpec, StartError, StartSpec, Way, start};

/// A host that could not be started again is not tried for so long.
const RETRY: Duration = Duration::from_secs(60);

/// Members that are kept.
pub struct Keep {
    spec: StartSpec,
    tell: Arc<dyn Tell>,
    since: Instant,
    seats: Mutex<Vec<Seat>>,
    /// Held by whoever starts members again.
    reviving: Mutex<()>,
    /// It has been stopped.
    over: Cancel,
}

/// The place of one host.
struct Seat {
    host: HostSpec,
    state: State,
}

enum State {
    Held(Arc<Held>),
    /// A daemon is there by itself.
    Daemon,
    Gone {
        why: String,
        /// When it was tried to start it again.
        tried: Option<Instant>,
    },
}

/// A member that is held.
struct Held {
    keeping: Keeping,
    /// Its ssh, if it has one.
    connected: Mutex<Option<Connected>>,
    /// It calls, else it listens.
    calls: bool,
}

impl Held {
    /// Why it is gone, if it is.
    fn gone(&self) -> Option<String> {
        if let Some(end) = self.keeping.connection().end() {
            return Some(chain(&end));
        }
        let connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = connected.as_ref().is_none_or(|connected| connected.lifeline().holds());
        (!holds).then(|| "its ssh has ended, and it is not heard".to_owned())
    }

    /// Why it cannot be used now, though it may be there: in an outage jobs go on, and so does what holds it.
    fn silent(&self) -> Option<String> {
        let connection = self.keeping.connection();
        (!is_heard(connection)).then(|| format!("it has been silent for {:.0} s", connection.stats().silence.as_secs_f64()))
    }

    fn key(&self) -> Option<Fingerprint> {
        self.keeping.connection().peer_key().map(|key| key.fingerprint())
    }

    /// Lets it end.
    fn end(&self) {
        self.keeping.connection().close(haul_copy::CLOSE_DONE, "the fleet ends");
        if let Some(connected) = self.connected.lock().unwrap_or_else(PoisonError::into_inner).take() {
            connected.end();
        }
    }
}

impl Keep {
    #[cfg(test)]
    pub fn of_nobody() -> Self {
        Self {
            spec: StartSpec::new(Vec::new()),
            tell: Arc::new(haul_peer::Nobody),
            since: clock::now(),
            seats: Mutex::default(),
            reviving: Mutex::default(),
            over: Cancel::new(),
        }
    }

    /// Starts members, and keeps them.
    pub fn start(spec: StartSpec, tell: Arc<dyn Tell>, cancel: &Cancel) -> Result<(Self, Vec<Absent>), StartError> {
        let (states, absent) = begin(&spec, &tell, cancel)?;
        let seats = spec.hosts.iter().cloned().zip(states).map(|(host, state)| Seat { host, state }).collect();
        let keep =
            Self { spec, tell, since: clock::now(), seats: Mutex::new(seats), reviving: Mutex::default(), over: Cancel::new() };
        Ok((keep, absent))
    }

    /// Members that have gone since the last look.
    pub fn look(&self) -> Vec<Gone> {
        let mut gone = Vec::new();
        let mut left = Vec::new();
        for seat in self.seats().iter_mut() {
            let State::Held(held) = &seat.state else { continue };
            let Some(why) = held.gone() else { continue };
            gone.push(Gone { name: seat.host.name.clone(), why: why.clone() });
            if let State::Held(held) = std::mem::replace(&mut seat.state, State::Gone { why, tried: None }) {
                left.push(held);
            }
        }
        // The end of an ssh is waited for, by nobody here.
        for held in left {
            thread::spawn(move || held.end());
        }
        gone
    }

    /// Who is there, and how to reach them; `revive`: those that have gone are started again first, if they can be.
    pub fn terms(&self, revive: bool, cancel: &Cancel) -> Terms {
        self.look();
        if revive {
            self.revive(cancel);
        }
        let (mut members, mut gone) = (Vec::new(), Vec::new());
        for Seat { host, state } in self.seats().iter() {
            let ticket = |way| Ticket {
                name: host.name.clone(),
                path: host.path.as_deref().map(WirePath::from),
                limit_bps: host.limit.map(BitRate::as_bps),
                way,
            };
            match state {
                State::Held(held) => {
                    if let Some(why) = held.silent() {
                        gone.push(Gone { name: host.name.clone(), why });
                        continue;
                    }
                    let Some(key) = held.key() else { continue };
                    let (key, at) = (key.to_string(), held.keeping.connection().remote_addr());
                    members.push(ticket(if held.calls { TicketWay::Call { key } } else { TicketWay::Dial { at, key } }));
                }
                State::Daemon => {
                    let port = host.port.unwrap_or(haul_peer::DAEMON_PORT);
                    let way = TicketWay::Daemon { host: host.host.clone(), port, data: host.data.clone() };
                    members.push(ticket(way));
                }
                State::Gone { why, .. } => gone.push(Gone { name: host.name.clone(), why: why.clone() }),
            }
        }
        let transport = &self.spec.transport;
        Terms {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up_s: clock::now().saturating_duration_since(self.since).as_secs(),
            family: self.spec.ssh.family,
            udp_ports: self.spec.udp_port.map(haul_peer::PortRange::ends),
            controller: transport.controller.to_string(),
            dead_after_s: transport.idle_timeout.as_secs(),
            max_packet: Some(transport.max_packet),
            memory: Some(transport.memory.as_u64()),
            // Whoever asks may be in another directory.
            state: self.spec.state.as_deref().map(|path| WirePath::from(&*std::path::absolute(path).unwrap_or(path.to_owned()))),
            members,
            gone,
        }
    }

    /// Has all members expect a guest; those that will not have it.
    pub fn invite(&self, key: Fingerprint, port: Option<u16>) -> Vec<Gone> {
        let held: Vec<(String, Arc<Held>)> = self
            .seats()
            .iter()
            .filter_map(|seat| match &seat.state {
                State::Held(held) if held.silent().is_none() => Some((seat.host.name.clone(), held.clone())),
                _ => None,
            })
            .collect();
        let tell = |(name, held): (String, Arc<Held>)| {
            let error = held.keeping.invite(key, port.filter(|_| held.calls)).err()?;
            Some(Gone { name, why: chain(&error) })
        };
        at_once(held, MEMBERS_AT_ONCE, tell).into_iter().flatten().flatten().collect()
    }

    /// How connections of programs in this process are to behave.
    pub fn transport(&self) -> haul::TransportConfig {
        self.spec.transport.clone()
    }

    /// Lets all members end. Nobody is started any more.
    pub fn stop(&self) {
        self.over.cancel();
        let seats = std::mem::take(&mut *self.seats());
        let held = seats.iter().filter_map(|seat| if let State::Held(held) = &seat.state { Some(held) } else { None });
        at_once(held, MEMBERS_AT_ONCE, |held| held.end());
    }

    /// Starts again who has gone and was not tried of late.
    fn revive(&self, cancel: &Cancel) {
        let _one_at_a_time = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let is_due = |tried: &Option<Instant>| tried.is_none_or(|tried| now.saturating_duration_since(tried) >= RETRY);
        let hosts: Vec<HostSpec> = self
            .seats()
            .iter()
            .filter(|seat| matches!(&seat.state, State::Gone { tried, .. } if is_due(tried)))
            .map(|seat| seat.host.clone())
            .collect();
        if hosts.is_empty() || self.over.is_cancelled() {
            return;
        }
        tracing::info!(hosts = hosts.len(), "started again");
        let spec = StartSpec { hosts, ..self.spec.clone() };
        let stop = Cancel::new();
        let (by_caller, by_end) = (stop.clone(), stop.clone());
        let _hooks = (cancel.on_cancel(move || by_caller.cancel()), self.over.on_cancel(move || by_end.cancel()));
        let states = match begin(&spec, &self.tell, &stop) {
            Ok((states, _)) => states,
            Err(StartError::Interrupted) => return,
            Err(error) => spec.hosts.iter().map(|_| State::Gone { why: chain(&error), tried: None }).collect(),
        };
        let mut seats = self.seats();
        for (host, state) in spec.hosts.iter().zip(states) {
            let state = match state {
                State::Gone { why, .. } => State::Gone { why, tried: Some(clock::now()) },
                state => state,
            };
            if let Some(seat) = seats.iter_mut().find(|seat| seat.host.name == host.name) {
                seat.state = state;
            } else if let State::Held(held) = state {
                // Stopped meanwhile.
                held.keeping.connection().close(haul_copy::CLOSE_DONE, "the fleet ends");
            }
        }
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts hosts and holds who comes; the state of each host, and who is absent why.
fn begin(spec: &StartSpec, tell: &Arc<dyn Tell>, cancel: &Cancel) -> Result<(Vec<State>, Vec<Absent>), StartError> {
    let Fleet { members, mut absent } = start(spec, tell, cancel)?;
    let calls = !spec.dial_out && matches!(spec.way, Way::Ssh | Way::Mpirun | Way::Srun);
    let held = at_once(members, MEMBERS_AT_ONCE, |member| {
        let is_daemon = spec.way == Way::Daemon || spec.hosts.iter().any(|host| host.name == member.name && host.daemon);
        (member.name.clone(), if is_daemon { Ok(leave(member)) } else { hold(member, calls, cancel) })
    });
    if cancel.is_cancelled() {
        return Err(StartError::Interrupted);
    }
    let mut states: Vec<(String, State)> = Vec::new();
    for (name, outcome) in held.into_iter().flatten() {
        match outcome {
            Ok(state) => states.push((name, state)),
            Err(why) => absent.push(Absent { name, why }),
        }
    }
    let mut state = |host: &HostSpec| {
        if let Some(at) = states.iter().position(|(name, _)| *name == host.name) {
            return states.swap_remove(at).1;
        }
        let why = absent.iter().find(|absent| absent.name == host.name).map(|absent| chain(&absent.why));
        State::Gone { why: why.unwrap_or_else(|| "it did not come".to_owned()), tried: Some(clock::now()) }
    };
    Ok((spec.hosts.iter().map(&mut state).collect(), absent))
}

/// A daemon is there, and needs nobody.
fn leave(member: Member) -> State {
    member.connection.close(haul_copy::CLOSE_DONE, "it was asked whether it is there");
    member.part();
    State::Daemon
}

fn hold(mut member: Member, calls: bool, cancel: &Cancel) -> Result<State, AbsentError> {
    let connected = member.keep.take();
    let connection: Connection = member.connection.clone();
    match Keeping::begin(connection, cancel) {
        Ok(keeping) => Ok(State::Held(Arc::new(Held { keeping, connected: Mutex::new(connected), calls }))),
        Err(source) => Err(match connected.as_ref().and_then(Connected::cause) {
            Some(cause) => cause.into(),
            None => AbsentError::NotKept { source },
        }),
    }
}

impl From<Gone> for Absent {
    fn from(gone: Gone) -> Self {
        Self { why: AbsentError::Gone { why: gone.why.as_str().into() }, name: gone.name }
    }
}
