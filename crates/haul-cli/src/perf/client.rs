//! The client's side of one measurement: asks, plays its roles, and puts its counts and the server's together.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use haul::{Connection, SendStream};

use super::door::knock;
use super::flow::set_congestion;
use super::plan::{Direction, Plan, Role};
use super::results::{Both, Done, Interval, Outcome, Pings, Total};
use super::roles::{Carrier, Roles, Told};
use super::sample::CpuWatch;
use super::wire::{Answer, Ask, CLOSE_ABORTED, CLOSE_DONE, Message, Welcome, receive, send};
use crate::exit::Failure;
use crate::{clock, interrupt};

/// How long the server may take to say its last word, beyond the measurement's own time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pings on the idle path, before anything is loaded.
const IDLE_PINGS: u32 = 10;
/// Time between two pings.
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two pings while data flows.
const LOADED_PING_INTERVAL: Duration = Duration::from_millis(50);
/// Idle pings end after this, however few have come back.
const IDLE_TIME: Duration = Duration::from_secs(2);

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
    Gone(String),
}

/// A measurement that the server has agreed to.
pub struct Client {
    connection: Connection,
    plan: Plan,
    welcome: Welcome,
    control: SendStream,
    news: mpsc::Receiver<News>,
    tell: Sender<News>,
    flying: Flying,
    pings: Pings,
}

impl Client {
    /// Asks the server.
    pub fn ask(connection: &Connection, ask: &Ask) -> Result<Self, Failure> {
        let lost = |error: &dyn std::fmt::Display| Failure::new(format!("the connection failed: {error}"));
        let (mut control, incoming) = connection.open_bi().map_err(|error| lost(&error))?;
        control.set_priority(u8::MAX);
        send(&mut control, ask).map_err(|error| lost(&error))?;
        let mut incoming = BufReader::new(incoming);
        let welcome = match receive::<Answer>(&mut incoming) {
            Ok(Some(Answer::Welcome(welcome))) => welcome,
            Ok(Some(Answer::Refused(refusal))) => {
                return Err(Failure { message: refusal.error.into(), hint: refusal.hint.map(String::from) });
            }
            Ok(None) => return Err(Failure::new("the server ended the connection without an answer")),
            Err(error) => return Err(lost(&error)),
        };
        let (tell, news) = mpsc::channel();
        let remote = tell.clone();
        thread::spawn(move || {
            loop {
                let news = match receive(&mut incoming) {
                    Ok(Some(message)) => News::Remote(message),
                    Ok(None) => News::Gone("the server ended the connection".to_owned()),
                    Err(error) => News::Gone(error.to_string()),
                };
                let over = matches!(news, News::Gone(_));
                if remote.send(news).is_err() || over {
                    return;
                }
            }
        });
        let (connection, plan) = (connection.clone(), ask.plan.clone());
        Ok(Self { connection, plan, welcome, control, news, tell, flying: Flying::default(), pings: Pings::default() })
    }

    /// The server's greeting.
    pub const fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Pings on the idle path: what a round trip takes without load.
    pub fn ping_idle(&mut self) -> Result<(), Failure> {
        let deadline = clock::now() + IDLE_TIME;
        for left in (0..IDLE_PINGS).rev() {
            let ping = self.flying.leave();
            self.say(&ping)?;
            let next = clock::now() + PING_INTERVAL;
            let until = if left == 0 { deadline } else { next };
            while !self.flying.sent_at.is_empty() {
                match self.news.recv_timeout(until.saturating_duration_since(clock::now())) {
                    Ok(News::Remote(Message::Pong(number))) => {
                        let took = self.flying.came_back(number);
                        self.pings.idle.extend(took);
                    }
                    Ok(News::Gone(why)) => return Err(Failure::new(why)),
                    Err(RecvTimeoutError::Timeout) => break,
                    _ => {}
                }
            }
            if clock::now() >= deadline || interrupt::requested() {
                break;
            }
            clock::pause(next.saturating_duration_since(clock::now()));
        }
        // Those that come later belong to neither.
        self.flying.sent_at.clear();
        Ok(())
    }

    fn say(&mut self, message: &Message) -> Result<(), Failure> {
        send(&mut self.control, message).map_err(|error| Failure::new(format!("the connection failed: {error}")))
    }

    /// Connects what the plan needs beside the connection itself.
    fn carrier(&self) -> Result<Carrier, Failure> {
        let Some(tcp) = &self.plan.tcp else { return Ok(Carrier::Haul) };
        let port = self.welcome.tcp_port.ok_or_else(|| Failure::new("the server names no TCP port"))?;
        let to = SocketAddr::new(self.connection.remote_addr().ip().to_canonical(), port);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for &direction in self.plan.ways.directions() {
            for stream in 0..self.plan.streams {
                let connected = knock(to, &self.welcome.tcp_cookie, direction, stream).map_err(|error| {
                    Failure::new(format!("TCP to {to}: {error}"))
                        .hint("haul's own UDP gets through; a firewall may block this TCP port")
                })?;
                if let Some(name) = tcp.congestion.as_deref().filter(|_| direction == Direction::Up) {
                    set_congestion(&connected, name)?;
                }
                (if direction == Direction::Up { &mut up } else { &mut down }).push(connected);
            }
        }
        Ok(Carrier::Tcp { up, down })
    }

    /// Measures. `show` gets each interval when both ends have told theirs; `alive` says whether what the connection depends on still runs.
    pub fn run(mut self, alive: impl Fn() -> bool, mut show: impl FnMut(&Both)) -> Result<Outcome, Failure> {
        let mut carrier = self.carrier()?;
        let mut roles = Roles::default();
        let cpu = CpuWatch::start();
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
            match self.news.recv_timeout(LOADED_PING_INTERVAL / 2) {
                Ok(News::Remote(Message::Started)) => self.play(&mut roles, &mut carrier, (Direction::Down, Role::Receiver))?,
                Ok(News::Remote(Message::Interval(interval)) | News::Local(Told::Interval(interval))) => {
                    state.add(interval).iter().for_each(&mut show);
                }
                Ok(News::Remote(Message::Total(total)) | News::Local(Told::Total(total))) => state.totals.push(total),
                Ok(News::Remote(Message::Pong(number))) => {
                    let took = self.flying.came_back(number);
                    self.pings.loaded.extend(took);
                }
                Ok(News::Remote(Message::Done(done))) => state.done = Some(done),
                Ok(News::Remote(Message::Failed(why))) => return Err(self.abort(Failure::new(format!("the server: {why}")))),
                Ok(News::Remote(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Gone(why)) => return Err(self.abort(Failure::new(format!("the connection ended: {why}")))),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::new("the measurement was given up")),
            }
            if interrupt::requested() && !state.interrupted {
                state.interrupted = true;
                roles.stop();
                self.say(&Message::Stop)?;
                deadline = Some(clock::now() + PATIENCE);
            }
            if deadline.is_some_and(|deadline| clock::now() > deadline) {
                return Err(self.abort(Failure::new("the server has not told its results")));
            }
            if !alive() {
                return Err(self.abort(Failure::new("ssh has ended, and the far side with it")));
            }
        }
        state.flush().iter().for_each(&mut show);
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

    fn play(&self, roles: &mut Roles, carrier: &mut Carrier, which: (Direction, Role)) -> Result<(), Failure> {
        let tell = self.tell.clone();
        let started = roles.start(&self.connection, carrier, &self.plan, which, move |told| drop(tell.send(News::Local(told))));
        started.map_err(|error| Failure::new(format!("the connection failed: {error}")))
    }

    fn abort(&self, failure: Failure) -> Failure {
        self.connection.close(CLOSE_ABORTED, &failure.message);
        failure
    }
}

/// What has been told so far.
struct State {
    expected_totals: usize,
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
            expected_totals: plan.ways.directions().len() * 2,
            waiting: BTreeMap::new(),
            intervals: Vec::new(),
            totals: Vec::new(),
            done: None,
            interrupted: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.totals.len() >= self.expected_totals && self.done.is_some()
    }

    /// Takes one end's interval; returns it with the other end's if that is there.
    fn add(&mut self, interval: Interval) -> Option<Both> {
        let key = (interval.index, interval.direction);
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
    use crate::perf::plan::{Amount, Ways};

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

    #[test]
    fn intervals_of_both_ends_are_put_together_whoever_is_first() {
        let plan = Plan {
            ways: Ways::Up,
            streams: 1,
            block_bytes: 1,
            amount: Amount::Time(1),
            omit_us: 0,
            interval_us: 1,
            rate_bps: None,
            mode: "".into(),
            tcp: None,
        };
        let mut state = State::new(&plan);
        assert_eq!(state.add(interval(Role::Sender, 0, 10)), None);
        assert_eq!(state.add(interval(Role::Receiver, 1, 7)), None);
        let first = state.add(interval(Role::Receiver, 0, 9)).expect("both are there");
        assert_eq!((first.sender.bytes[0], first.receiver.bytes[0]), (10, 9));
        let rest = state.flush();
        assert_eq!((rest.len(), rest[0].receiver.bytes[0], rest[0].sender.bytes[0]), (1, 7, 0));
        assert_eq!(state.intervals.len(), 2);
    }
}
