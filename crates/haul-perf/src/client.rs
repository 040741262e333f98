//! The client's side of one measurement: asks, plays its roles, and puts its counts and the server's together.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, SendStream};
use haul_peer::Refusal;
use haul_units::{Cancel, PeerText};

use super::clock;
use super::data_port::join;
use super::flow::{CongestionError, set_congestion};
use super::plan::{Direction, Plan, Role};
use super::results::{Both, Done, Interval, Outcome, Pings, Total};
use super::roles::{Carrier, Roles, Told};
use super::sample::{CpuWatch, PathSample};
use super::wire::{Answer, Ask, CLOSE_ABORTED, CLOSE_DONE, Message, Welcome, receive, send};

/// How long the server may take to say its last word, beyond the measurement's own time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pings on the idle path, before anything is loaded.
const IDLE_PINGS: u32 = 10;
/// Time between two pings.
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two pings while data flows.
const LOADED_PING_INTERVAL: Duration = Duration::from_millis(50);
/// Messages of the server's that wait to be looked at, at most; what it says beyond them waits in the connection.
const WAITING: usize = 64;
/// Where bytes are the end, a server may be so many intervals ahead of this side: 100 s of the shortest ones.
const AHEAD: u32 = 10_000;
/// Paths of a connection that are told apart, at most; haul makes fewer.
const MAX_PATHS: usize = 64;
/// Idle pings end after this, however few have come back.
const IDLE_TIME: Duration = Duration::from_secs(2);

/// Why there are no results. What went wrong in a measurement that has some is in [`Total::error`].
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The connection failed when something was to be said, heard or opened.
    #[error("the connection failed: {0}")]
    Connection(#[source] io::Error),
    /// It ended before the load.
    #[error("{0}")]
    EndedIdle(#[source] Gone),
    /// It ended under load.
    #[error("the connection ended: {0}")]
    Ended(#[source] Gone),
    /// The server does not want to.
    #[error("{0}")]
    Refused(#[source] Refusal),
    /// The server left when it was asked.
    #[error("the server ended the connection without an answer")]
    NoAnswer,
    /// The server gave up, for this reason.
    #[error("the server: {0}")]
    Server(PeerText),
    /// The server says what has no place in this measurement.
    #[error("the server does not keep to the plan: {0}")]
    Misbehaved(&'static str),
    /// The server has kept its results for itself.
    #[error("the server has not told its results")]
    NoResults,
    /// TCP was to be measured, and the server does not say where it takes it.
    #[error("the server names no TCP port")]
    NoTcpPort,
    /// TCP does not get through, though haul's UDP does.
    #[error("TCP to {to}: {source}")]
    Tcp {
        /// Where to.
        to: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// This system's TCP does not have the congestion control of the plan.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// What the connection depends on is gone ([`Listener::is_alive`]).
    #[error("ssh has ended, and the far side with it")]
    FarSideEnded,
    /// A thread of this side has ended before its time.
    #[error("the measurement was given up")]
    GivenUp,
}

/// How the server's control stream ended.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// In order, but before its time.
    #[error("the server ended the connection")]
    Finished,
    /// With the connection, or with words that make no sense.
    #[error("{0}")]
    Failed(#[source] io::Error),
}

/// Hears of a measurement while it runs, in the thread that called [`Client::run`]. A closure that takes intervals is one.
pub trait Listener {
    /// Both ends have told of an interval of one direction.
    fn interval(&mut self, both: &Both);

    /// Whether what the connection depends on still runs, for instance ssh; the measurement is given up when it does not. Asked some 40 times a second.
    fn is_alive(&mut self) -> bool {
        true
    }
}

impl<F: FnMut(&Both)> Listener for F {
    fn interval(&mut self, both: &Both) {
        self(both);
    }
}

/// Measures over a connection whose protocol is [`PROTOCOL`](crate::PROTOCOL), from the question to the results: the steps of a [`Client`] in one call.
///
/// It takes as long as the plan and a few round trips; a server that has nothing to say for 20 s more ends it. Once `cancel` is cancelled it ends soon, with the
/// results so far ([`Outcome::interrupted`]). The connection is closed at the end.
pub fn measure(
    connection: &Connection,
    plan: &Plan,
    cancel: &Cancel,
    listener: &mut impl Listener,
) -> Result<Outcome, MeasureError> {
    let mut client = Client::ask(connection, &Ask::new(plan.clone()))?;
    client.ping_idle(cancel)?;
    client.run(cancel, listener)
}

/// Pings on their way.
#[derive(Debug, Default)]
struct Flying {
    sent_at: BTreeMap<u32, Instant>,
    next: u32,
}

impl Flying {
    /// The number of the next ping, which leaves now.
    fn leave(&mut self) -> Message {
        let number = self.next;
        self.next += 1;
        self.sent_at.insert(number, clock::now());
        Message::Ping(number)
    }

    /// The time that the ping took, if it was one of ours.
    fn came_back(&mut self, number: u32) -> Option<Duration> {
        Some(clock::now() - self.sent_at.remove(&number)?)
    }
}

/// What happens while it runs.
enum News {
    Local(Told),
    Remote(Message),
    Gone(Gone),
}

/// Tells what the server says, as long as somebody takes it.
fn hear(incoming: &mut impl BufRead, place: &SyncSender<()>, tell: &Sender<News>) {
    while let Some(message) = receive(incoming).transpose() {
        let news = match message {
            Ok(message) => News::Remote(message),
            Err(error) => return drop(tell.send(News::Gone(Gone::Failed(error)))),
        };
        if place.send(()).is_err() || tell.send(news).is_err() {
            return;
        }
    }
    let _ = tell.send(News::Gone(Gone::Finished));
}

/// A measurement that the server has agreed to.
///
/// [`ask`](Self::ask), then [`ping_idle`](Self::ping_idle) if wanted, then [`run`](Self::run). One that is dropped before has measured nothing; the server ends it
/// when the connection is closed, or after half a minute.
pub struct Client {
    connection: Connection,
    plan: Plan,
    welcome: Welcome,
    control: SendStream,
    news: mpsc::Receiver<News>,
    /// A place for each message of the server's that waits.
    places: mpsc::Receiver<()>,
    tell: Sender<News>,
    flying: Flying,
    pings: Pings,
}

impl Client {
    /// Asks the server.
    pub fn ask(connection: &Connection, ask: &Ask) -> Result<Self, MeasureError> {
        let (mut control, incoming) = connection.open_bi().map_err(io::Error::from).map_err(MeasureError::Connection)?;
        control.set_priority(u8::MAX);
        send(&mut control, ask).map_err(MeasureError::Connection)?;
        let mut incoming = BufReader::new(incoming);
        let welcome = match receive::<Answer>(&mut incoming) {
            Ok(Some(Answer::Welcome(welcome))) => welcome,
            Ok(Some(Answer::Refused(refusal))) => return Err(MeasureError::Refused(refusal)),
            Ok(None) => return Err(MeasureError::NoAnswer),
            Err(error) => return Err(MeasureError::Connection(error)),
        };
        let (tell, news) = mpsc::channel();
        let (place, places) = mpsc::sync_channel(WAITING);
        let remote = tell.clone();
        thread::spawn(move || hear(&mut incoming, &place, &remote));
        let (connection, plan) = (connection.clone(), ask.plan.clone());
        Ok(Self { connection, plan, welcome, control, news, places, tell, flying: Flying::default(), pings: Pings::default() })
    }

    /// The server's greeting.
    pub const fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Pings on the idle path: what a round trip takes without load.
    pub fn ping_idle(&mut self, cancel: &Cancel) -> Result<(), MeasureError> {
        let deadline = clock::now() + IDLE_TIME;
        for left in (0..IDLE_PINGS).rev() {
            let ping = self.flying.leave();
            self.say(&ping)?;
            let next = clock::now() + PING_INTERVAL;
            let until = if left == 0 { deadline } else { next };
            while !self.flying.sent_at.is_empty() {
                match self.next(until.saturating_duration_since(clock::now())) {
                    Ok(News::Remote(Message::Pong(number))) => {
                        let took = self.flying.came_back(number);
                        self.pings.idle.extend(took);
                    }
                    Ok(News::Gone(why)) => return Err(MeasureError::EndedIdle(why)),
                    Err(RecvTimeoutError::Timeout) => break,
                    _ => {}
                }
            }
            if clock::now() >= deadline || cancel.is_cancelled() {
                break;
            }
            clock::pause(next.saturating_duration_since(clock::now()));
        }
        // Those that come later belong to neither.
        self.flying.sent_at.clear();
        Ok(())
    }

    /// What happens next.
    fn next(&self, within: Duration) -> Result<News, RecvTimeoutError> {
        let news = self.news.recv_timeout(within)?;
        if matches!(news, News::Remote(_)) {
            let _ = self.places.try_recv();
        }
        Ok(news)
    }

    fn say(&mut self, message: &Message) -> Result<(), MeasureError> {
        send(&mut self.control, message).map_err(MeasureError::Connection)
    }

    /// Connects what the plan needs beside the connection itself.
    fn carrier(&self) -> Result<Carrier, MeasureError> {
        let Some(tcp) = &self.plan.tcp else { return Ok(Carrier::Haul) };
        let port = self.welcome.tcp_port.ok_or(MeasureError::NoTcpPort)?;
        let to = SocketAddr::new(self.connection.remote_addr().ip().to_canonical(), port);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for &direction in self.plan.ways.directions() {
            for stream in 0..self.plan.streams {
                let connected =
                    join(to, &self.welcome.tcp_cookie, direction, stream).map_err(|source| MeasureError::Tcp { to, source })?;
                if let Some(name) = tcp.congestion.as_deref().filter(|_| direction == Direction::Up) {
                    set_congestion(&connected, name)?;
                }
                (if direction == Direction::Up { &mut up } else { &mut down }).push(connected);
            }
        }
        Ok(Carrier::Tcp { up, down })
    }

    /// Measures, and closes the connection. Once `cancel` is cancelled both sides end their roles, and the results so far are told.
    pub fn run(mut self, cancel: &Cancel, listener: &mut impl Listener) -> Result<Outcome, MeasureError> {
        let mut carrier = self.carrier()?;
        let mut roles = Roles::default();
        let cpu = CpuWatch::start();
        if self.plan.ways.contains(Direction::Down) {
            // `Started` may be lost and come after the data.
            self.play(&mut roles, &mut carrier, (Direction::Down, Role::Receiver))?;
        }
        self.say(&Message::Go)?;
        if self.plan.ways.contains(Direction::Up) {
            self.play(&mut roles, &mut carrier, (Direction::Up, Role::Sender))?;
        }
        let mut state = State::new(&self.plan);
        let mut deadline = self.plan.time().map(|time| clock::now() + self.plan.omit() + time + PATIENCE);
        let mut next_ping = clock::now();
        while !state.is_complete() {
            if clock::now() >= next_ping && state.totals.is_empty() {
                next_ping = clock::now() + LOADED_PING_INTERVAL;
                let ping = self.flying.leave();
                self.say(&ping)?;
            }
            let news = self.next(LOADED_PING_INTERVAL / 2);
            if let Ok(News::Remote(message)) = &news
                && let Err(why) = state.admit(message)
            {
                return Err(self.abort(MeasureError::Misbehaved(why)));
            }
            match news {
                Ok(News::Remote(Message::Started)) => roles.begin(),
                Ok(News::Remote(Message::Interval(mut interval)) | News::Local(Told::Interval(mut interval))) => {
                    interval.paths.iter_mut().for_each(|path| path.name_interfaces(&self.connection));
                    state.add(interval).iter().for_each(|both| listener.interval(both));
                }
                Ok(News::Remote(Message::Total(mut total)) | News::Local(Told::Total(mut total))) => {
                    total.paths.iter_mut().for_each(|path| path.name_interfaces(&self.connection));
                    state.totals.push(total);
                }
                Ok(News::Remote(Message::Pong(number))) => {
                    let took = self.flying.came_back(number);
                    self.pings.loaded.extend(took);
                }
                Ok(News::Remote(Message::Done(done))) => state.done = Some(done),
                Ok(News::Remote(Message::Failed(why))) => return Err(self.abort(MeasureError::Server(why))),
                Ok(News::Remote(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Gone(why)) => return Err(self.abort(MeasureError::Ended(why))),
                Err(RecvTimeoutError::Disconnected) => return Err(MeasureError::GivenUp),
            }
            if cancel.is_cancelled() && !state.interrupted {
                state.interrupted = true;
                roles.stop();
                self.say(&Message::Stop)?;
                deadline = Some(clock::now() + PATIENCE);
            }
            if deadline.is_some_and(|deadline| clock::now() > deadline) {
                return Err(self.abort(MeasureError::NoResults));
            }
            if !listener.is_alive() {
                return Err(self.abort(MeasureError::FarSideEnded));
            }
        }
        state.flush().iter().for_each(|both| listener.interval(both));
        let cpu = cpu.read();
        // The measurement is complete whether or not the server hears of it.
        let _ = send(&mut self.control, &Message::Results(state.totals.clone()));
        let _ = self.control.finish().and_then(|()| self.control.wait_acknowledged());
        self.connection.close(CLOSE_DONE, "done");
        Ok(Outcome {
            intervals: state.intervals,
            totals: state.totals,
            cpu,
            done: state.done,
            interrupted: state.interrupted,
            pings: self.pings,
        })
    }

    fn play(&self, roles: &mut Roles, carrier: &mut Carrier, which: (Direction, Role)) -> Result<(), MeasureError> {
        let tell = self.tell.clone();
        let started = roles.start(&self.connection, carrier, &self.plan, which, move |told| drop(tell.send(News::Local(told))));
        started.map_err(io::Error::from).map_err(MeasureError::Connection)
    }

    fn abort(&self, error: MeasureError) -> MeasureError {
        self.connection.close(CLOSE_ABORTED, &error.to_string());
        error
    }
}

/// What has been told so far.
struct State {
    plan: Plan,
    /// The server has begun to send.
    is_started: bool,
    /// Intervals of each role, so far.
    told: BTreeMap<(Direction, Role), u32>,
    /// Intervals that only one end has told yet.
    waiting: BTreeMap<(u32, Direction), Interval>,
    intervals: Vec<Both>,
    totals: Vec<Total>,
    done: Option<Done>,
    interrupted: bool,
}

impl State {
    fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            is_started: false,
            told: BTreeMap::new(),
            waiting: BTreeMap::new(),
            intervals: Vec::new(),
            totals: Vec::new(),
            done: None,
            interrupted: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.totals.len() >= self.plan.ways.directions().len() * 2 && self.done.is_some()
    }

    /// Whether what the server says has a place in this measurement, so that no server makes this side keep more than the plan is worth.
    fn admit(&mut self, message: &Message) -> Result<(), &'static str> {
        match message {
            Message::Started if self.is_started || !self.plan.ways.contains(Direction::Down) => {
                return Err("it starts to send what was not asked for");
            }
            Message::Started => self.is_started = true,
            Message::Interval(interval) if !self.has_place(interval) => {
                return Err("an interval that there is not");
            }
            Message::Total(total)
                if !self.fits((total.direction, total.role), &total.bytes, &total.paths)
                    || self.totals.iter().any(|told| (told.direction, told.role) == (total.direction, total.role)) =>
            {
                return Err("a total that there is not");
            }
            _ => {}
        }
        Ok(())
    }

    /// They come in order, and no more of them than the plan has.
    fn has_place(&self, interval: &Interval) -> bool {
        let (direction, role) = (interval.direction, interval.role);
        let told = |role| self.told.get(&(direction, role)).copied().unwrap_or_default();
        let within = |time: Duration| time.as_nanos().div_ceil(self.plan.interval().as_nanos().max(1));
        let most = match self.plan.time() {
            Some(time) => within(self.plan.omit()) + within(time),
            None => told(if role == Role::Sender { Role::Receiver } else { Role::Sender }).saturating_add(AHEAD).into(),
        };
        let is_next = interval.index == told(role) && u128::from(interval.index) < most;
        is_next && self.fits((direction, role), &interval.bytes, &interval.paths)
    }

    /// Whether it is of a role that the server plays, and of its streams.
    fn fits(&self, (direction, role): (Direction, Role), bytes: &[u64], paths: &[PathSample]) -> bool {
        let of_server = if direction == Direction::Up { Role::Receiver } else { Role::Sender };
        let streams = usize::from(self.plan.streams);
        let is_asked_for = role == of_server && self.plan.ways.contains(direction) && bytes.len() == streams;
        is_asked_for && paths.len() <= streams && paths.iter().all(|path| path.each.len() <= MAX_PATHS)
    }

    /// Takes one end's interval; returns it with the other end's if that is there.
    fn add(&mut self, interval: Interval) -> Option<Both> {
        let key = (interval.index, interval.direction);
        *self.told.entry((interval.direction, interval.role)).or_default() += 1;
        match self.waiting.remove(&key) {
            None => {
                self.waiting.insert(key, interval);
                None
            }
            Some(other) => {
                let direction = interval.direction;
                let (sender, receiver) = if interval.role == Role::Sender { (interval, other) } else { (other, interval) };
                let both = Both { direction, sender, receiver };
                self.intervals.push(both.clone());
                Some(both)
            }
        }
    }

    /// What only the receiver has told: its clock may run a little longer than the sender's. What only a sender has told nobody received.
    fn flush(&mut self) -> Vec<Both> {
        let left = std::mem::take(&mut self.waiting).into_values().filter(|interval| interval.role == Role::Receiver);
        let alone: Vec<Both> = left
            .map(|receiver| {
                let bytes = vec![0; receiver.bytes.len()];
                let sender = Interval { role: Role::Sender, bytes, paths: Vec::new(), ..receiver.clone() };
                Both { direction: receiver.direction, sender, receiver }
            })
            .collect();
        self.intervals.extend(alone.iter().cloned());
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Amount, Ways};

    fn interval(role: Role, index: u32, bytes: u64) -> Interval {
        Interval {
            direction: Direction::Up,
            role,
            index,
            start_us: 0,
            end_us: 1,
            omitted: false,
            bytes: vec![bytes],
            paths: Vec::new(),
        }
    }

    /// 35 ms in intervals of 10 ms, the first 5 ms of which do not count.
    fn plan(ways: Ways) -> Plan {
        Plan { ways, amount: Amount::Time(30_000), omit_us: 5_000, interval_us: 10_000, ..Plan::default() }
    }

    fn total(direction: Direction, role: Role) -> Total {
        let (bytes, paths) = (vec![0], Vec::new());
        Total { direction, role, time_us: 1, bytes, paths, spreads: None, congestion: None, error: None }
    }

    /// Takes it as `run` does.
    fn take(state: &mut State, message: Message) -> Result<(), &'static str> {
        state.admit(&message)?;
        match message {
            Message::Interval(interval) => drop(state.add(interval)),
            Message::Total(total) => state.totals.push(total),
            _ => {}
        }
        Ok(())
    }

    #[test]
    fn a_server_starts_to_send_once_and_only_where_it_is_to() {
        for (ways, starts) in [(Ways::Up, 0), (Ways::Down, 1), (Ways::Both, 1)] {
            let mut state = State::new(&plan(ways));
            assert_eq!((0..5).take_while(|_| take(&mut state, Message::Started).is_ok()).count(), starts, "{ways:?}");
        }
    }

    #[test]
    fn a_server_s_intervals_are_those_of_the_plan_in_order() {
        let mut state = State::new(&plan(Ways::Up));
        let mut of_server = |index| take(&mut state, Message::Interval(interval(Role::Receiver, index, 1)));
        assert!(of_server(1).is_err() && of_server(u32::MAX).is_err());
        assert!((0..4).all(|index| of_server(index).is_ok()), "one does not count, and three do");
        assert!(of_server(3).is_err() && of_server(4).is_err());
        let more = Interval { bytes: vec![1; 2], ..interval(Role::Receiver, 0, 1) };
        let paths = Interval { paths: vec![PathSample::default(); 2], ..interval(Role::Receiver, 0, 1) };
        let down = Interval { direction: Direction::Down, role: Role::Sender, ..interval(Role::Receiver, 0, 1) };
        for wrong in [interval(Role::Sender, 0, 1), more, paths, down] {
            assert!(take(&mut State::new(&plan(Ways::Up)), Message::Interval(wrong.clone())).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn where_bytes_are_the_end_a_server_is_not_far_ahead() {
        let mut state = State::new(&Plan { amount: Amount::Bytes(1), ..plan(Ways::Up) });
        let mut next = 0;
        let mut told = |state: &mut State| {
            let taken = (next..).take_while(|&index| take(state, Message::Interval(interval(Role::Receiver, index, 1))).is_ok());
            next += u32::try_from(taken.take(1 << 20).count()).unwrap();
            next
        };
        assert_eq!(told(&mut state), AHEAD);
        state.add(interval(Role::Sender, 0, 1));
        assert_eq!(told(&mut state), AHEAD + 1);
    }

    #[test]
    fn a_server_has_a_total_for_each_role_that_it_plays() {
        let mut state = State::new(&plan(Ways::Both));
        let mut of = |direction, role| take(&mut state, Message::Total(total(direction, role))).is_ok();
        assert!(!of(Direction::Up, Role::Sender) && !of(Direction::Down, Role::Receiver));
        assert!(of(Direction::Up, Role::Receiver) && of(Direction::Down, Role::Sender));
        assert!(!of(Direction::Up, Role::Receiver) && !of(Direction::Down, Role::Sender));
        let more = Total { bytes: vec![0; 2], ..total(Direction::Up, Role::Receiver) };
        assert!(take(&mut State::new(&plan(Ways::Both)), Message::Total(more)).is_err());
    }

    #[test]
    fn what_a_server_says_waits_in_the_connection_while_nobody_looks_at_it() {
        let (place, places) = mpsc::sync_channel(2);
        let (tell, news) = mpsc::channel();
        let thread = thread::spawn(move || hear(&mut &b"{\"pong\":1}\n{\"pong\":2}\n{\"pong\":3}\n"[..], &place, &tell));
        let heard = |news: &mpsc::Receiver<News>| matches!(news.recv(), Ok(News::Remote(Message::Pong(_))));
        assert!(heard(&news) && heard(&news));
        // The third has no place, and never gets one.
        drop(places);
        thread.join().unwrap();
        assert!(news.recv().is_err());
    }

    #[test]
    fn intervals_of_both_ends_are_put_together_whoever_is_first() {
        let mut state = State::new(&plan(Ways::Up));
        assert_eq!(state.add(interval(Role::Sender, 0, 10)), None);
        assert_eq!(state.add(interval(Role::Receiver, 1, 7)), None);
        let first = state.add(interval(Role::Receiver, 0, 9)).expect("both are there");
        assert_eq!((first.sender.bytes[0], first.receiver.bytes[0]), (10, 9));
        let rest = state.flush();
        assert_eq!((rest.len(), rest[0].receiver.bytes[0], rest[0].sender.bytes[0]), (1, 7, 0));
        assert_eq!(state.intervals.len(), 2);
    }
}
