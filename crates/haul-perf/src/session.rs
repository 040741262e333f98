//! The server's side of one measurement.
//!
//! A client may do nothing here but measure, and only within [`Bounds`]: what it asks for is checked, and a guard closes the connection of one that
//! takes longer than its plan.

use std::fs;
use std::io::{self, BufReader};
use std::net::{IpAddr, TcpStream};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use haul::{BitRate, Connection, ControllerChoice, RecvStream, SendStream};
use haul_cc::ParseControllerError;
use haul_peer::Refusal;
use haul_units::{Cancel, PeerText};

use super::data_port::{COOKIE_BYTES, DataPort};
use super::flow::{CongestionError, set_congestion};
use super::kernel;
use super::plan::{Direction, MAX_TIME, PlanError, Role};
use super::results::{Done, Total};
use super::roles::{Carrier, Roles, Told};
use super::sample::CpuWatch;
use super::wire::{Answer, Ask, CLOSE_ABORTED, CLOSE_DONE, Message, Welcome, receive, send};
use crate::clock;

/// How long a client may take to ask, to start, and to part.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look at the time.
const LOOK: Duration = Duration::from_millis(100);
/// How long data may take to arrive where bytes decide, in a plan without a time.
const DRAIN: Duration = Duration::from_secs(30);

/// What a client may do at most.
#[derive(Clone)]
pub struct Bounds {
    /// The longest measurement.
    pub longest: Duration,
    /// What the server sends at most.
    pub rate: Option<BitRate>,
    /// Whether they are for anybody who comes.
    pub strangers: bool,
    /// Where TCP connections are taken; without it, on a port of their own for each measurement.
    pub data_port: Option<DataPort>,
    /// The ports for that; any free one for 0..=0.
    pub tcp_ports: RangeInclusive<u16>,
    /// How the server's own output puts what a role tells, for a client that asks for that output; without it there is none.
    pub describe: Option<fn(&Told) -> String>,
}

impl Bounds {
    /// For clients that have proved who they are: as long as they like, by any mode.
    pub const fn trusted(rate: Option<BitRate>, tcp_ports: RangeInclusive<u16>) -> Self {
        Self { longest: MAX_TIME, rate, strangers: false, data_port: None, tcp_ports, describe: None }
    }

    /// Whether the server's data may be sent by this algorithm.
    ///
    /// All but `fixed:RATE` give way to others, sooner or later: any client may have them. A fixed rate takes what it was given from
    /// everybody on the way, so a stranger has only what the operator has said to be bearable.
    fn admit(&self, mode: ControllerChoice) -> Result<(), PlanRefused> {
        let ControllerChoice::Fixed(wanted) = mode else { return Ok(()) };
        match self.rate {
            _ if !self.strangers => Ok(()),
            Some(most) if wanted <= most => Ok(()),
            Some(most) => Err(PlanRefused::FixedRate { wanted, most }),
            None => Err(PlanRefused::FixedRateForStranger),
        }
    }

    /// Whether the kernel's TCP may send by this algorithm. Only one that is there already: asking a root's kernel for another one loads a module
    /// of that name.
    fn admit_congestion(&self, name: &str) -> Result<(), PlanRefused> {
        let list = if self.strangers { "allowed" } else { "available" };
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{list}_congestion_control")).unwrap_or_default();
        if is_listed(name, &text) {
            return Ok(());
        }
        Err(PlanRefused::Congestion { name: name.into(), listed: text.trim().to_owned() })
    }
}

/// Why a server does not go along with a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanRefused {
    /// Nobody would.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A congestion control that this version does not know.
    #[error("on the server: {0}")]
    Mode(#[source] ParseControllerError),
    /// A fixed rate above the operator's bound.
    #[error("the server sends at {most} at most, so not at a fixed rate of {wanted}")]
    FixedRate {
        /// What was asked for.
        wanted: BitRate,
        /// The bound.
        most: BitRate,
    },
    /// A fixed rate, where the operator has set no bound.
    #[error("the server sends at a fixed rate to nobody whom it does not know: that gives way to no one")]
    FixedRateForStranger,
    /// A congestion control of the kernel's TCP that is not there for this client.
    #[error("the server has no TCP congestion control `{name}` for this")]
    Congestion {
        /// What was asked for.
        name: PeerText,
        /// What there is, with blanks between.
        listed: String,
    },
    /// No TCP port can be had.
    #[error("the server cannot listen on TCP: {0}")]
    Listen(#[source] io::Error),
    /// The system has no randomness.
    #[error("the server: {0}")]
    Cookie(#[source] io::Error),
}

impl From<PlanRefused> for Refusal {
    fn from(refused: PlanRefused) -> Self {
        let hint = match &refused {
            PlanRefused::FixedRate { .. } => Some("ask for a lower rate, or for a mode that finds the rate itself".into()),
            PlanRefused::FixedRateForStranger => {
                Some("choose another --mode; or its operator sets a bound, --max-bitrate, below which it may".into())
            }
            PlanRefused::Congestion { listed, .. } => Some(PeerText::from(format!(
                "it has: {listed}; for others its operator loads the module and adds the name to net.ipv4.tcp_allowed_congestion_control"
            ))),
            PlanRefused::Plan(_) | PlanRefused::Mode(_) | PlanRefused::Listen(_) | PlanRefused::Cookie(_) => None,
        };
        Self { error: refused.to_string().into(), hint }
    }
}

/// Why a client was not served to the end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It was turned away, and has been told so.
    #[error("{0}")]
    Refused(#[source] Refusal),
    /// The connection failed, or what came over it made no sense.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// The client said something that has no place here.
    #[error("an unexpected message")]
    Unexpected,
}

/// Why TCP cannot carry the data.
#[derive(Debug, thiserror::Error)]
enum CarrierError {
    #[error("not all TCP connections arrived")]
    Missing,
    #[error(transparent)]
    Congestion(#[from] CongestionError),
}

/// One measurement that a client made.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What this side counted.
    pub totals: Vec<Total>,
}

/// Serves the one measurement that a connection is for. `asked` hears of a plan that is within bounds, and may still refuse it; once `cancel` is cancelled the
/// connection is closed.
pub fn serve(
    connection: &Connection,
    bounds: &Bounds,
    cancel: &Cancel,
    asked: impl FnOnce(&Ask) -> Result<(), Refusal>,
) -> Result<Measured, ServeError> {
    let guard = Guard::start(connection, PATIENCE, cancel.clone());
    let (mut control, incoming) = connection.accept_bi().map_err(io::Error::from)?;
    control.set_priority(u8::MAX);
    let mut incoming = BufReader::new(incoming);
    let ask: Ask = receive(&mut incoming)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    let session = Session::prepare(connection, bounds, ask).map_err(Refusal::from);
    let session = match session.and_then(|session| asked(&session.ask).map(|()| session)) {
        Ok(session) => session,
        Err(refusal) => {
            let error = refusal.clone();
            send(&mut control, &Answer::Refused(refusal))?;
            control.finish().and_then(|()| control.wait_acknowledged()).map_err(io::Error::from)?;
            connection.closed();
            return Err(ServeError::Refused(error));
        }
    };
    send(&mut control, &Answer::Welcome(session.welcome()))?;
    session.run(&guard, control, incoming)
}

/// Tells a client that it may not measure here; false if it did not ask.
pub fn refuse(connection: &Connection, refusal: &Refusal) -> bool {
    let _guard = Guard::start(connection, PATIENCE, Cancel::new());
    let hear = || {
        let (control, incoming) = connection.accept_bi()?;
        let _: Option<Ask> = receive(&mut BufReader::new(incoming))?;
        io::Result::Ok(control)
    };
    let Ok(mut control) = hear() else { return false };
    let mut say = || {
        send(&mut control, &Answer::Refused(refusal.clone()))?;
        control.finish()?;
        control.wait_acknowledged()?;
        connection.closed();
        io::Result::Ok(())
    };
    // A client that has gone needs no answer.
    let _ = say();
    true
}

/// A measurement that was agreed on.
struct Session {
    connection: Connection,
    ask: Ask,
    longest: Duration,
    data_port: Option<DataPort>,
    tcp_cookie: String,
    describe: Option<fn(&Told) -> String>,
}

impl Session {
    fn prepare(connection: &Connection, bounds: &Bounds, mut ask: Ask) -> Result<Self, PlanRefused> {
        let plan = &mut ask.plan;
        plan.check(bounds.longest)?;
        let mode: ControllerChoice = plan.mode.parse().map_err(PlanRefused::Mode)?;
        if plan.ways.contains(Direction::Down) {
            match &plan.tcp {
                None => bounds.admit(mode)?,
                Some(tcp) => tcp.congestion.as_deref().map_or(Ok(()), |name| bounds.admit_congestion(name))?,
            }
        }
        if plan.tcp.is_none() && plan.ways.contains(Direction::Down) {
            connection.set_controller(mode);
            connection.set_rate_limit(bounds.rate);
        }
        let (mut data_port, mut tcp_cookie) = (None, String::new());
        if plan.tcp.is_some() {
            // The kernel's TCP is not held back by the connection's own limit: its streams share the bound.
            bounds.rate.into_iter().for_each(|most| plan.bound_rate(most));
            let opened = match &bounds.data_port {
                Some(data_port) => Ok(data_port.clone()),
                None => DataPort::open((IpAddr::from([0_u16; 8]), 0).into(), bounds.tcp_ports.clone()),
            };
            data_port = Some(opened.map_err(PlanRefused::Listen)?);
            tcp_cookie = cookie().map_err(PlanRefused::Cookie)?;
        }
        let (connection, describe) = (connection.clone(), bounds.describe);
        Ok(Self { connection, longest: bounds.longest, ask, data_port, tcp_cookie, describe })
    }

    fn welcome(&self) -> Welcome {
        Welcome {
            version: env!("CARGO_PKG_VERSION").into(),
            system: super::system_info(),
            tcp_port: self.data_port.as_ref().map(DataPort::port),
            tcp_cookie: self.tcp_cookie.clone().into(),
        }
    }

    /// The longest that the client's plan may take from its start.
    fn allowed(&self) -> Duration {
        let plan = &self.ask.plan;
        plan.time().map_or(self.longest + DRAIN, |time| plan.omit() + time) + PATIENCE
    }

    fn run(self, guard: &Guard, control: SendStream, mut incoming: BufReader<RecvStream>) -> Result<Measured, ServeError> {
        let expected = self.data_port.as_ref().map(|data_port| data_port.expect(&self.tcp_cookie));
        let control = Arc::new(Mutex::new(control));
        let tell = |message: &Message| send(&mut *control.lock().unwrap_or_else(PoisonError::into_inner), message);
        let mut played = Played::new(Arc::clone(&control));
        if expected.is_none() && self.ask.plan.ways.contains(Direction::Up) {
            // `Go` may be lost and come after the data.
            self.start(&mut played, &mut Carrier::Haul, Direction::Up)?;
        }
        while let Ok(Some(message)) = receive(&mut incoming) {
            match message {
                // A client that has left with pings on their way may have said its results before: they are read first.
                Message::Ping(number) => drop(tell(&Message::Pong(number))),
                Message::Go if played.waiter.is_none() => {
                    guard.extend(PATIENCE * 2);
                    let carrier = match &expected {
                        None => Ok(Carrier::Haul),
                        Some(expected) => {
                            let streams = expected.collect(self.ask.plan.ways.directions(), self.ask.plan.streams, PATIENCE);
                            self.tcp_carrier(streams)
                        }
                    };
                    guard.extend(self.allowed());
                    match carrier {
                        Ok(carrier) => self.play(&mut played, carrier)?,
                        Err(error) => tell(&Message::Failed(error.to_string().into()))?,
                    }
                }
                Message::Stop if played.waiter.is_some() => played.roles.stop(),
                Message::Stop => {}
                Message::Results(_) => break,
                _ => return Err(ServeError::Unexpected),
            }
        }
        let totals = played.end();
        let _ = control.lock().unwrap_or_else(PoisonError::into_inner).finish();
        self.connection.close(CLOSE_DONE, "done");
        Ok(Measured { totals })
    }

    fn tcp_carrier(&self, streams: Option<Vec<(Direction, Vec<TcpStream>)>>) -> Result<Carrier, CarrierError> {
        let streams = streams.ok_or(CarrierError::Missing)?;
        let congestion = self.ask.plan.tcp.as_ref().and_then(|tcp| tcp.congestion.as_deref());
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (direction, streams) in streams {
            if let Some(name) = congestion.filter(|_| direction == Direction::Down) {
                streams.iter().try_for_each(|stream| set_congestion(stream, name))?;
            }
            *(if direction == Direction::Up { &mut up } else { &mut down }) = streams;
        }
        Ok(Carrier::Tcp { up, down })
    }

    /// Starts this side's role of a direction.
    fn start(&self, played: &mut Played, carrier: &mut Carrier, direction: Direction) -> io::Result<()> {
        let role = if direction == Direction::Up { Role::Receiver } else { Role::Sender };
        let describe = self.describe.filter(|_| self.ask.server_output);
        let (control, totals, output) = (Arc::clone(&played.control), Arc::clone(&played.totals), Arc::clone(&played.output));
        let tell = move |told: Told| {
            if let Some(describe) = describe {
                output.lock().unwrap_or_else(PoisonError::into_inner).push_str(&describe(&told));
            }
            let message = match told {
                Told::Interval(interval) => Message::Interval(interval),
                Told::Total(total) => {
                    totals.lock().unwrap_or_else(PoisonError::into_inner).push(total.clone());
                    Message::Total(total)
                }
            };
            // A client that is gone is noticed where its messages are read.
            let _ = send(&mut *control.lock().unwrap_or_else(PoisonError::into_inner), &message);
        };
        Ok(played.roles.start(&self.connection, carrier, &self.ask.plan, (direction, role), tell)?)
    }

    /// Starts this side's roles; a thread waits for their end and says the last word.
    fn play(&self, played: &mut Played, mut carrier: Carrier) -> io::Result<()> {
        let cpu = CpuWatch::start();
        for &direction in self.ask.plan.ways.directions() {
            match (direction, &carrier) {
                // It waits already.
                (Direction::Up, Carrier::Haul) => continue,
                (Direction::Up, Carrier::Tcp { .. }) => {}
                (Direction::Down, _) => {
                    send(&mut *played.control.lock().unwrap_or_else(PoisonError::into_inner), &Message::Started)?;
                }
            }
            self.start(played, &mut carrier, direction)?;
        }
        played.roles.begin();
        let threads = played.roles.take_threads();
        let (control, output, wanted) = (Arc::clone(&played.control), Arc::clone(&played.output), self.ask.server_output);
        played.waiter = Some(thread::spawn(move || {
            for thread in threads {
                let _ = thread.join();
            }
            let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
            let output = wanted.then(|| output.lines().map(PeerText::from).collect());
            let done = Message::Done(Done { cpu: cpu.read(), output });
            let _ = send(&mut *control.lock().unwrap_or_else(PoisonError::into_inner), &done);
        }));
        Ok(())
    }
}

/// The roles of one session.
struct Played {
    control: Arc<Mutex<SendStream>>,
    roles: Roles,
    totals: Arc<Mutex<Vec<Total>>>,
    output: Arc<Mutex<String>>,
    /// Since `Go`.
    waiter: Option<thread::JoinHandle<()>>,
}

impl Played {
    fn new(control: Arc<Mutex<SendStream>>) -> Self {
        Self { control, roles: Roles::default(), totals: Arc::default(), output: Arc::default(), waiter: None }
    }

    fn end(self) -> Vec<Total> {
        let Some(waiter) = self.waiter else { return Vec::new() };
        self.roles.stop();
        let _ = waiter.join();
        std::mem::take(&mut *self.totals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Closes a connection that stays too long, or when the server is to end.
struct Guard {
    extend: mpsc::Sender<Duration>,
}

impl Guard {
    fn start(connection: &Connection, patience: Duration, cancel: Cancel) -> Self {
        let (extend, extended) = mpsc::channel();
        let connection = connection.clone();
        thread::spawn(move || {
            let mut deadline = clock::now() + patience;
            loop {
                match extended.recv_timeout(LOOK) {
                    Ok(patience) => deadline = clock::now() + patience,
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    Err(mpsc::RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                        return connection.close(CLOSE_ABORTED, "the server ends");
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) if clock::now() > deadline => {
                        return connection.close(CLOSE_ABORTED, "the measurement takes too long");
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
            }
        });
        Self { extend }
    }

    /// From now on, so long.
    fn extend(&self, patience: Duration) {
        let _ = self.extend.send(patience);
    }
}

/// Whether a name is one of those in a list with blanks between.
fn is_listed(name: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == name)
}

/// A name that nobody guesses.
fn cookie() -> io::Result<String> {
    let mut bytes = [0_u8; COOKIE_BYTES / 2];
    kernel::random(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(strangers: bool, rate: Option<BitRate>) -> Bounds {
        Bounds { strangers, ..Bounds::trusted(rate, 0..=0) }
    }

    #[test]
    fn a_stranger_has_a_fixed_rate_only_below_the_operator_s_bound() {
        let fixed = |mbps| ControllerChoice::Fixed(BitRate::mbps(mbps));
        let bound = Some(BitRate::mbps(100));
        assert!(bounds(true, None).admit(fixed(1)).is_err());
        assert!(bounds(true, bound).admit(fixed(101)).is_err() && bounds(true, bound).admit(fixed(100)).is_ok());
        assert!(bounds(false, None).admit(fixed(9000)).is_ok());
        for mode in ["fair", "quickstart", "modest", "aggressive", "cubic", "bbr", "udt"] {
            assert!(bounds(true, None).admit(mode.parse().expect("known")).is_ok(), "{mode}");
        }
    }

    #[test]
    fn a_congestion_control_is_one_of_those_that_are_there() {
        let there = "reno cubic bbr\n";
        assert!(["reno", "bbr"].into_iter().all(|name| is_listed(name, there)));
        assert!(["", "bb", "reno cubic", "htcp", "../x"].into_iter().all(|name| !is_listed(name, there)));
        for strangers in [true, false] {
            assert!(bounds(strangers, None).admit_congestion("no_such_algorithm").is_err());
        }
    }
}
