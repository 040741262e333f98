//! The ways around UDP to the far side of ssh, and when they are taken.
//!
//! ```text
//!   UDP  -- nothing heard -->  UDP, once the far side has sent some  -- else -->  UDP, once both have, met by a relay, or by way of it  -- else -->  TCP, if a lane opens  --.
//!    ^                                                                                                                                                              ^   else
//!    |                                                                                                                                       if a lane opens later  |    |
//!    '-------------------------------------- nothing heard there either ------------------------------------ ssh's channel, if the far side answers there  <--------'----'
//! ```
//! A firewall before the far side may let in only what answers to something that left. So the far side is asked, by ssh's channel, to send a datagram to the port that this side sends from; what follows
//! from there passes.
//!
//! Where a NAT is before each of them, a relay that both can reach tells each where the other one is seen, and both send at the same time (`meeting.rs`). Where the NATs give each peer another port,
//! that does not meet, and the relay forwards what both send to it.
//!
//! A way is taken only when the far side has answered on it, so an outage of the whole network changes nothing: the connection waits for UDP, as it does without other ways. It stays the same connection; what was on
//! its way over UDP is sent again.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use haul::Connection;
use haul_units::Cancel;

use super::around::{OPEN, SshWay, TcpWay};
use super::growth::Growth;
use super::logins::{Logins, LoginsWay, Step};
use super::meeting::{BothThere, RelayWay};
use super::watched::{Now, Relaying, Watched};
use crate::carriage::{Carrying, GoesOver, NoUdp};
use crate::clock;
use crate::ports::PortRange;
use crate::ssh::SshSession;
use crate::tell::Tell;

/// How often is looked whether the peer is heard.
const LOOK: Duration = Duration::from_millis(50);
/// At the beginning an answer takes a round trip, which ssh has measured; not all of them alike.
const FIRST_ANSWER: Duration = Duration::from_millis(700);
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(4);
/// What a round trip may be where ssh has measured none.
const USUAL_RTT: Duration = Duration::from_millis(200);
/// Later the peer is heard each second: of five in a row one arrives. One that is kept alive less often is heard every five seconds.
pub(super) const SILENT: Duration = Duration::from_secs(5);
pub(super) const SILENT_AT_REST: Duration = Duration::from_secs(12);
/// In this time the transport has asked a silent peer again, and an answer has come.
const PROBED: Duration = Duration::from_millis(2500);
/// How much longer it is waited for the answer of a peer that has got what was sent: as long again as for the first one.
const ANSWERS: Duration = FIRST_ANSWER;
/// Addresses that are tried when the far side has called back.
const CALLED_AT: usize = 2;
/// How much longer than a round trip an answer may take then.
const CALLED: Duration = Duration::from_millis(200);
/// How much longer than two round trips TCP is waited for with nothing to carry meanwhile.
const OPENS: Duration = Duration::from_millis(200);
/// How much longer than a round trip both sides punch holes for each other.
const PUNCHING: Duration = Duration::from_secs(1);
/// Pause between two rounds in which no way opened.
const PAUSE: Duration = Duration::from_secs(3);

/// A lane over TCP that has been asked for, and when.
struct Awaited {
    told: mpsc::Receiver<io::Result<()>>,
    since: Instant,
}

impl Awaited {
    fn begin(way: &TcpWay) -> Self {
        Self { told: way.begin(OPEN), since: clock::now() }
    }
}

/// What is needed to change the way.
pub(super) struct Ways {
    pub(super) connection: Connection,
    /// Gone with whoever uses the connection.
    pub(super) ssh: Weak<Mutex<SshSession>>,
    /// Where UDP was tried, the likeliest first.
    pub(super) udp: Vec<SocketAddr>,
    pub(super) tcp: Option<TcpWay>,
    pub(super) channel: Option<SshWay>,
    pub(super) logins: Option<LoginsWay>,
    pub(super) relay: Option<RelayWay>,
    pub(super) host: String,
    pub(super) ports: PortRange,
    /// Of ssh's own connection.
    pub(super) rtt: Option<Duration>,
    pub(super) tell: Arc<dyn Tell>,
    pub(super) cancel: Cancel,
    /// After how much silence another way is looked for.
    pub(super) silent: Duration,
}

impl Ways {
    /// Looks after the connection until it is over, or what is given back is dropped.
    pub(super) fn watch(self, begins_over: Carrying) -> Watched {
        let dropped = Cancel::new();
        let now = Arc::new(Mutex::new(Now { carrying: begins_over, relay: None }));
        let watched = Watched::new(dropped.clone(), Arc::clone(&now));
        let started = thread::Builder::new().name("haul-ways".to_owned()).spawn(move || {
            let growth = (begins_over == Carrying::Tcp).then(Growth::default);
            let mut watch = Watch {
                carrying: begins_over,
                began: clock::now(),
                heard: false,
                udp: None,
                growth,
                logins: Logins::Alone(None),
                awaited: None,
                why: None,
                acknowledged: (0, clock::now()),
                ways: self,
                dropped,
                now,
            };
            watch.run();
        });
        if let Err(error) = started {
            tracing::warn!(%error, "nobody looks for another way");
        }
        watched
    }
}

struct Watch {
    ways: Ways,
    carrying: Carrying,
    began: Instant,
    /// The peer has been heard on the way that is taken.
    heard: bool,
    /// Where it was heard over UDP.
    udp: Option<SocketAddr>,
    growth: Option<Growth>,
    logins: Logins,
    /// A lane over TCP that ssh's channel stands in for until it opens.
    awaited: Option<Awaited>,
    /// Why UDP did not carry it when it was left.
    why: Option<NoUdp>,
    /// Bytes that the peer has acknowledged, and when the last of them, or nothing was to be.
    acknowledged: (u64, Instant),
    /// The connection's user has gone.
    dropped: Cancel,
    /// What its user is told: `carrying`.
    now: Arc<Mutex<Now>>,
}

impl Watch {
    fn run(&mut self) {
        while !self.is_over() {
            thread::park_timeout(LOOK);
            let silence = self.silence();
            if self.has_fallen_silent(silence) && !self.go_over(silence) {
                self.pause();
            }
            self.grow();
        }
    }

    /// Whether datagrams go from here to the peer and to nobody else.
    const fn is_direct(&self) -> bool {
        matches!(self.carrying, Carrying::Udp | Carrying::Punched)
    }

    fn is_over(&self) -> bool {
        self.dropped.is_cancelled() || self.ways.cancel.is_cancelled() || self.ways.connection.end().is_some()
    }

    /// How long nothing has come, or nothing that was sent has been acknowledged: what blocks UDP may do so in one direction.
    fn silence(&mut self) -> Duration {
        let since = self.began.elapsed();
        if let Some(path) = self.ways.connection.paths().first() {
            let acknowledged = path.acknowledged.as_u64();
            if acknowledged != self.acknowledged.0 || path.in_flight.as_u64() == 0 {
                self.acknowledged = (acknowledged, clock::now());
            }
        }
        let silence = self.ways.connection.stats().silence.max(self.acknowledged.1.elapsed());
        if !self.heard && silence + LOOK < since {
            self.heard = true;
            if self.is_direct() {
                self.udp = Some(self.ways.connection.remote_addr());
            }
        }
        silence
    }

    fn has_fallen_silent(&self, silence: Duration) -> bool {
        let first = (FIRST_ANSWER + self.ways.rtt.unwrap_or(USUAL_RTT) * 4).min(FIRST_ANSWER_MAX);
        match (self.heard, self.carrying) {
            (true, _) => silence > self.ways.silent,
            (false, Carrying::Udp) => self.began.elapsed() > first,
            (false, _) => self.began.elapsed() > SILENT,
        }
    }

    /// Takes another way, if one opens.
    fn go_over(&mut self, silence: Duration) -> bool {
        let order: &[Carrying] = match self.carrying {
            Carrying::Udp | Carrying::Punched => &[Carrying::Tcp, Carrying::Ssh],
            // What opens, answers and then carries nothing would do so again: little passes there, and nothing larger.
            Carrying::Tcp if self.began.elapsed() < self.ways.silent * 2 => &[Carrying::Ssh, Carrying::Tcp, Carrying::Udp],
            // The same once more, by connections from where this host is by now.
            Carrying::Tcp | Carrying::Relay => &[Carrying::Tcp, Carrying::Ssh, Carrying::Udp],
            Carrying::Ssh => &[Carrying::Tcp, Carrying::Udp],
        };
        let before = clock::now();
        if self.carrying == Carrying::Ssh && self.is_back_in_ssh() {
            return true;
        }
        // That takes some round trips, and TCP as many.
        let tcp = self.ways.tcp.as_ref().filter(|way| self.carrying == Carrying::Udp && way.carrier.lanes() == 0);
        self.awaited = tcp.filter(|_| self.ways.channel.is_some()).map(Awaited::begin);
        if self.carrying == Carrying::Udp && self.udp.is_none() && self.is_called_back() {
            return true;
        }
        if (self.is_direct() || self.carrying == Carrying::Relay) && self.is_met(before) {
            return true;
        }
        for &to in order {
            let Some((at, heard)) = self.open(to) else { continue };
            if self.is_over() || self.is_heard_again(before, heard) {
                return true;
            }
            let why = match heard {
                _ if self.udp.is_some() => NoUdp::Lost(silence),
                Some(true) => NoUdp::Answers,
                Some(false) => NoUdp::Inbound,
                None => NoUdp::Silent,
            };
            self.take(to, at, why);
            return true;
        }
        false
    }

    /// Goes on by this way, where the peer is at this address.
    fn take(&mut self, to: Carrying, at: SocketAddr, why: NoUdp) {
        let (host, ports) = (self.ways.host.clone(), self.ways.ports);
        tracing::debug!(?to, ?why, "goes over");
        self.go_on_at(at);
        if to != self.carrying {
            self.ways.tell.goes_over(&GoesOver { host, to, why, ports, relay: None });
        }
        self.set_now(Now { carrying: to, relay: None });
        (self.carrying, self.why) = (to, Some(why));
        self.leave_logins();
        self.growth = (to == Carrying::Tcp).then(Growth::default);
    }

    /// Goes over to TCP, if that has opened since ssh's channel took its place. Until that is known no further logins are tried.
    fn take_awaited(&mut self) {
        let opened = match self.awaited.as_ref().map(|awaited| awaited.told.try_recv()) {
            None | Some(Err(TryRecvError::Empty)) => return,
            Some(told) => matches!(told, Ok(Ok(()))),
        };
        self.awaited = None;
        let Some(way) = self.ways.tcp.as_ref().filter(|_| opened) else { return };
        let at = way.at;
        if let Some(heard) = way.carrier.ask(OPEN) {
            let now = if heard { NoUdp::Answers } else { NoUdp::Inbound };
            self.take(Carrying::Tcp, at, self.why.filter(|why| matches!(why, NoUdp::Lost(_))).unwrap_or(now));
        }
    }

    /// Has the far side send something over UDP first, where nothing of this side's has come to it; whether it is heard over UDP then.
    fn is_called_back(&mut self) -> bool {
        let wait = self.ways.rtt.unwrap_or(USUAL_RTT) + CALLED;
        let Some((port, carrier)) = self.ways.channel.as_ref().zip(self.ways.ssh.upgrade()).and_then(|(way, ssh)| {
            way.open(&ssh).inspect_err(|error| tracing::debug!(%error, "no channel")).ok()?;
            Some((way.port, way.carrier.clone()))
        }) else {
            return false;
        };
        for at in self.ways.udp.clone().into_iter().take(CALLED_AT) {
            let asked = clock::now();
            carrier.call_back(port);
            if carrier.ask(OPEN) != Some(false) {
                return false;
            }
            // Where ssh has not measured a round trip, that was one.
            let wait = wait.max(asked.elapsed() + CALLED);
            let called = clock::now();
            self.ways.connection.redirect(at);
            while called.elapsed() < wait && !self.is_over() {
                thread::park_timeout(LOOK / 5);
                if self.silence() >= called.elapsed() {
                    continue;
                }
                let (host, ports) = (self.ways.host.clone(), self.ways.ports);
                self.ways.tell.goes_over(&GoesOver { host, to: Carrying::Udp, why: NoUdp::Inbound, ports, relay: None });
                (self.heard, self.udp) = (true, Some(at));
                return true;
            }
        }
        false
    }

    /// Has both sides meet by a relay, if one was named, and goes on as directly as possible; whether the peer is heard then, or where it was.
    fn is_met(&mut self, before: Instant) -> bool {
        let Some((channel, ssh)) = self.ways.channel.as_ref().zip(self.ways.ssh.upgrade()) else { return false };
        let Some(way) = self.ways.relay.as_mut() else { return false };
        if let Err(error) = channel.open(&ssh) {
            tracing::debug!(%error, "no channel");
            return false;
        }
        drop(ssh);
        let mut there = match way.meet(&channel.carrier) {
            Ok(there) => there,
            Err(error) => {
                self.ways.tell.relay_fails(&way.by, &error.to_string());
                return false;
            }
        };
        let by = way.by.clone();
        if self.is_over() || self.is_heard_again(before, None) {
            if let Some(way) = &mut self.ways.relay {
                way.give_up(there);
            }
            return true;
        }
        let to = if let Some(at) = self.is_let_through(&mut there) {
            (self.udp, self.carrying) = (Some(at), Carrying::Punched);
            if let Some(way) = &mut self.ways.relay {
                way.give_up(there);
            }
            self.set_now(Now { carrying: Carrying::Punched, relay: None });
            Carrying::Punched
        } else {
            let is_forwarded = self.is_heard_at(there.relay());
            let Some(way) = &mut self.ways.relay else { return false };
            if !is_forwarded {
                way.give_up(there);
                self.ways.tell.relay_fails(&by, "nothing comes through the NATs, and nothing by way of it");
                self.go_back();
                return false;
            }
            let relaying = Relaying::from_now(by.clone(), &self.ways.connection, way.stay(there));
            self.carrying = Carrying::Relay;
            self.set_now(Now { carrying: Carrying::Relay, relay: Some(relaying) });
            Carrying::Relay
        };
        self.heard = true;
        let (host, ports) = (self.ways.host.clone(), self.ways.ports);
        self.ways.tell.goes_over(&GoesOver { host, to, why: NoUdp::Inbound, ports, relay: Some(by) });
        true
    }

    /// Where datagrams were answered, or where they were tried first.
    fn go_back(&self) {
        if let Some(at) = self.udp.or_else(|| self.ways.udp.first().copied()) {
            self.ways.connection.redirect(at);
        }
    }

    /// Punches a hole for the far side while it punches one for us; where it is heard, if it is.
    fn is_let_through(&mut self, there: &mut BothThere) -> Option<SocketAddr> {
        let wait = self.ways.rtt.unwrap_or(USUAL_RTT) + PUNCHING;
        let (mut at, began) = (there.seen, clock::now());
        self.ways.connection.redirect(at);
        while began.elapsed() < wait && !self.is_over() {
            there.punch(at);
            // Its NAT may have given it another port for us than for the relay.
            if let Some(from) = there.is_punched_from(LOOK / 10).filter(|from| *from != at) {
                at = from;
                self.ways.connection.redirect(at);
            }
            if self.silence() < began.elapsed() {
                return Some(at);
            }
        }
        None
    }

    /// Whether the peer is heard there.
    fn is_heard_at(&mut self, at: SocketAddr) -> bool {
        let began = clock::now();
        self.ways.connection.redirect(at);
        while began.elapsed() < OPEN && !self.is_over() {
            thread::park_timeout(LOOK / 5);
            if self.silence() < began.elapsed() {
                return true;
            }
        }
        false
    }

    /// The connection goes on at this address, from where nothing has been heard yet.
    fn go_on_at(&mut self, at: SocketAddr) {
        self.ways.connection.redirect(at);
        let now = clock::now();
        (self.began, self.heard, self.acknowledged.1) = (now, false, now);
    }

    fn set_now(&self, now: Now) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether the peer has been heard where it was, since then. Where the whole network was away, TCP may be back a little before UDP is tried again; and a peer that has got
    /// what was sent over UDP may be a busy one.
    fn is_heard_again(&mut self, before: Instant, has_got_any: Option<bool>) -> bool {
        let until = clock::now()
            + match (self.carrying, self.udp, has_got_any) {
                (Carrying::Udp | Carrying::Punched, Some(_), _) => PROBED,
                (Carrying::Udp, None, Some(true)) => ANSWERS,
                _ => Duration::ZERO,
            };
        while clock::now() < until && before.elapsed() <= self.silence() && !self.is_over() {
            thread::park_timeout(LOOK);
        }
        before.elapsed() > self.silence()
    }

    /// The address of a way on which the peer has answered, and whether it has got anything over UDP.
    fn open(&mut self, to: Carrying) -> Option<(SocketAddr, Option<bool>)> {
        match to {
            Carrying::Udp => Some((self.udp.or_else(|| self.ways.udp.first().copied())?, None)),
            // These are met for, before any of the others.
            Carrying::Punched | Carrying::Relay => None,
            Carrying::Tcp => {
                let way = self.ways.tcp.as_mut()?;
                let opened = match way.carrier.lanes() {
                    _ if self.carrying == Carrying::Tcp => way.renew(OPEN),
                    // What blocks it says nothing, as a rule, and the channel can carry meanwhile.
                    0 if self.ways.channel.is_some() => {
                        let awaited = self.awaited.take().unwrap_or_else(|| Awaited::begin(way));
                        let soon = self.ways.rtt.unwrap_or(USUAL_RTT) * 2 + OPENS;
                        awaited.told.recv_timeout(soon.saturating_sub(awaited.since.elapsed())).unwrap_or_else(|_| {
                            self.awaited = Some(awaited);
                            Err(io::ErrorKind::TimedOut.into())
                        })
                    }
                    0 => way.open(OPEN),
                    _ => match way.carrier.ask(OPEN) {
                        Some(heard) => return Some((way.at, Some(heard))),
                        // Those that are left from before are dead, and do not know it.
                        None => way.renew(OPEN),
                    },
                };
                opened.inspect_err(|error| tracing::debug!(%error, "no TCP")).ok()?;
                way.carrier.ask(OPEN).map(|heard| (way.at, Some(heard)))
            }
            Carrying::Ssh => {
                let way = self.ways.channel.as_ref()?;
                way.open(&*self.ways.ssh.upgrade()?).inspect_err(|error| tracing::debug!(%error, "no channel")).ok()?;
                way.carrier.ask(OPEN).map(|heard| (way.at, Some(heard)))
            }
        }
    }

    fn pause(&self) {
        let until = clock::now() + PAUSE;
        while clock::now() < until && !self.is_over() {
            thread::park_timeout(LOOK);
        }
    }

    /// More connections, as long as that helps.
    fn grow(&mut self) {
        if self.carrying == Carrying::Ssh {
            self.take_awaited();
        }
        if self.carrying == Carrying::Ssh && self.awaited.is_none() {
            self.log_in_again();
        }
        let (Some(growth), Some(way)) = (&mut self.growth, &self.ways.tcp) else { return };
        let (sent, received) = way.carrier.moved_bytes();
        if let Some(lanes) = growth.wanted(clock::now(), sent + received, way.carrier.lanes()) {
            tracing::debug!(lanes, "more lanes");
            way.grow(lanes);
        }
    }

    /// More logins beside ssh's channel, as long as that helps.
    fn log_in_again(&mut self) {
        let Some((channel, way)) = self.ways.channel.as_ref().zip(self.ways.logins.as_ref()) else { return };
        let (sent, received) = channel.carrier.moved_bytes();
        let (at, host) = (way.at, &self.ways.host);
        match self.logins.step(way, sent + received, self.ways.rtt, clock::now(), &self.dropped) {
            Step::Wait => {}
            // One alone is no faster than the channel.
            Step::GoOver if way.carrier.lanes() < 2 || way.carrier.ask(OPEN).is_none() => {
                self.logins = Logins::Refused;
                self.leave_logins();
            }
            Step::GoOver => {
                self.ways.tell.logs_in_again(host, way.carrier.lanes());
                self.go_on_at(at);
            }
            Step::More(logins) => self.ways.tell.logs_in_again(host, logins),
        }
    }

    /// Whether the far side answers through ssh still: it goes on there then, by further logins if they answer too, or by the first one alone.
    fn is_back_in_ssh(&mut self) -> bool {
        let Some(channel) = self.ways.channel.as_ref().filter(|channel| channel.carrier.ask(OPEN).is_some()) else {
            return false;
        };
        // Those that carried nothing from the start may answer and carry nothing again.
        let have_carried = self.logins.carry() && self.began.elapsed() >= self.ways.silent * 2;
        let by_logins = self.ways.logins.as_ref().filter(|way| have_carried && way.carrier.lanes() > 0);
        let at = match by_logins.filter(|way| way.carrier.ask(OPEN).is_some()) {
            Some(way) => way.at,
            None => channel.at,
        };
        if at == channel.at && self.logins.carry() {
            self.logins = Logins::Refused;
            self.leave_logins();
        }
        self.go_on_at(at);
        true
    }

    /// Another way carries: further logins are of no use. If there is a next time it begins anew with them, unless they were refused.
    fn leave_logins(&mut self) {
        if let Some(way) = &self.ways.logins {
            way.carrier.leave_lanes();
        }
        if !matches!(self.logins, Logins::Refused) {
            self.logins = Logins::Alone(None);
        }
    }
}
