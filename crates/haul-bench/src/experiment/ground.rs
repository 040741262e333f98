//! What an experiment on real sockets runs on, and several flows at once on it.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::process::Command;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_lab::{ConstantReport, LinkOptions, Side, WanSpec, now};
use haul_proto::Pacing;
use haul_units::{BitRate, Bytes, Time};
use rustix::process::Signal;

use crate::bench::{
    Listens, MeasureError, Observer, Programs, Running, Series, Site, Sites, Tool, parse_intervals, processor_ticks,
    wait_until_listening,
};

/// Where an experiment is run.
pub struct Ground<'a> {
    /// Makes WANs.
    pub sites: &'a dyn Sites,
    /// Finds programs.
    pub programs: &'a Programs,
    /// Who is compared; experiments with parties of their own do not ask.
    pub tools: Vec<Tool>,
    /// Watches.
    pub observer: RefCell<&'a mut dyn Observer>,
    /// Hears what is going on where no observer does.
    pub progress: &'a dyn Fn(&str),
}

/// A flow from host a to host b.
#[derive(Debug, Clone, Copy)]
pub struct Sender {
    /// Who sends.
    pub program: Program,
    /// When it starts.
    pub from: Duration,
    /// For how long.
    pub lasts: Duration,
    /// What a haul flow's way is longer by: it goes through a relay on host b.
    pub extra_rtt: Duration,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// haul.
    Haul(ControllerChoice, Pacing),
    /// haul, by so many paths.
    Paths(ControllerChoice, u8),
    /// The kernel's TCP with a congestion control of this name.
    Tcp(&'static str),
    /// UDP at a constant rate.
    Constant(BitRate),
}

/// What came of a flow.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// What arrived when, since the beginning of the first flow.
    pub series: Series,
    /// Of a constant flow.
    pub constant: Option<ConstantReport>,
    /// Round-trip times that the sender has seen, by the time since the beginning.
    pub round_trips: Vec<(Duration, Duration)>,
}

/// One of the runs of the same flows.
#[derive(Debug)]
pub struct Attempt {
    /// What came of each flow.
    pub heard: Vec<Heard>,
    /// Part of the processors' time that the machine's host kept for others, where the kernel tells.
    pub stolen: Option<f64>,
}

impl Ground<'_> {
    /// Says what is going on.
    pub fn tell(&self, what: &str) {
        (self.progress)(what);
    }

    /// Whether to go on.
    pub fn go_on(&self) -> bool {
        self.observer.borrow().go_on()
    }

    /// [`together`](Self::together), and again while the machine's host kept more than a hundredth of the processors' time for others and `spare` says that there may
    /// be another run: an emulator and programs that stand still now and then show something else than the protocols. All runs, the least disturbed first: that one counts.
    pub fn undisturbed(&self, spec: &WanSpec, senders: &[Sender], spare: &mut u32) -> Result<Vec<Attempt>, MeasureError> {
        let run = || {
            let before = processor_ticks();
            let heard = self.together(spec, senders)?;
            let stolen = processor_ticks().zip(before).and_then(|(after, before)| after.stolen_since(before));
            Ok(Attempt { heard, stolen })
        };
        let mut attempts = vec![run()?];
        while attempts[0].stolen > Some(STOLEN_MOST) && *spare > 0 {
            *spare -= 1;
            attempts.push(run()?);
            attempts.sort_by(|one, other| one.stolen.partial_cmp(&other.stolen).unwrap_or(Ordering::Equal));
        }
        Ok(attempts)
    }

    /// Runs flows at once over a WAN of their own, until all have ended.
    pub fn together(&self, spec: &WanSpec, senders: &[Sender]) -> Result<Vec<Heard>, MeasureError> {
        let spec = WanSpec { send_buffer: Some(send_buffer(spec)), ..spec.clone() };
        let site = self.sites.up(&spec).map_err(MeasureError::Site)?;
        let mut flows = Vec::new();
        for (number, sender) in senders.iter().enumerate() {
            flows.push(Flow::prepare(&*site, self.programs, sender, number as u16)?);
        }
        let start = now();
        let last = senders.iter().map(|sender| sender.from + sender.lasts).max().unwrap_or_default();
        let limit = start + last + SLACK;
        loop {
            if !self.go_on() {
                return Err(MeasureError::Interrupted);
            }
            let mut all_ended = true;
            for flow in &mut flows {
                all_ended &= flow.step(start)?;
            }
            if all_ended || now() >= limit {
                break;
            }
        }
        flows.into_iter().map(Flow::finish).collect()
    }
}

/// Bounds no window, and keeps one connection from taking what all of TCP on the machine may have: a kernel may skip a program that is to say how large a buffer should be, and
/// take chance for its answer (docs/how/kernel-tcp.md).
fn send_buffer(spec: &WanSpec) -> Bytes {
    let held = (0..spec.count()).map(|link| {
        let LinkOptions { rate, rtt, queue, .. } = spec.options_of(link);
        (rate.bytes_in(rtt).as_u64() + queue.bytes(rate, rtt).as_u64()) * BUFFERED
    });
    Bytes(held.max().unwrap_or_default().max(LEAST_BUFFER.as_u64()))
}

/// A flow's programs.
struct Flow {
    sender: Sender,
    server: Running,
    /// A relay before the server.
    _relay: Option<Running>,
    /// Not started yet.
    client: Option<Command>,
    running: Option<Running>,
}

impl Flow {
    fn prepare(site: &dyn Site, programs: &Programs, sender: &Sender, number: u16) -> Result<Self, MeasureError> {
        let haul = programs.haul().as_os_str();
        let (address, port) = (site.address(Side::B).to_string(), FIRST_PORT + number);
        let seconds = sender.lasts.as_secs_f64().to_string();
        let mut relay = None;
        let (server, listens, client) = match sender.program {
            Program::Haul(mode, _) | Program::Paths(mode, _) => {
                let mut server = site.command(Side::B, haul);
                server.args(["perf", "--server", "--one-off", "--bind", &address, "--port", &port.to_string()]);
                let mut to = port;
                if !sender.extra_rtt.is_zero() {
                    to = FIRST_RELAY_PORT + number;
                    let mut command = site.command(Side::B, haul);
                    command.args(["lab", "relay", "--listen", &format!("{address}:{to}"), "--to", &format!("{address}:{port}")]);
                    command.args(["--rate", "10G", "--rtt", &format!("{}us", sender.extra_rtt.as_micros())]);
                    relay = Some((command, to));
                }
                let mut client = site.command(Side::A, haul);
                client.args(["perf", "--client", &format!("{address}:{to}"), "--interval", "0.1", "--json", "--time", &seconds]);
                client.args(["--mode", &mode.to_string()]);
                match sender.program {
                    Program::Haul(_, Pacing::Off) => client.arg("--no-pacing"),
                    Program::Paths(_, paths) => client.args(["--paths", &paths.to_string()]),
                    _ => &mut client,
                };
                (server, Listens::Udp(port), client)
            }
            Program::Tcp(control) => {
                let mut server = site.command(Side::B, "iperf3".as_ref());
                server.args(["--server", "--one-off", "--json", "--interval", "0.1", "--port", &port.to_string()]);
                let mut client = site.command(Side::A, "iperf3".as_ref());
                client.args(["--client", &address, "--port", &port.to_string(), "--congestion", control]);
                client.args(["--json", "--interval", "0.1"]);
                // iperf3 knows whole seconds only.
                client.args(["--time", &sender.lasts.as_secs_f64().ceil().to_string(), "--length", "1M"]);
                (server, Listens::Tcp(port), client)
            }
            Program::Constant(rate) => {
                let mut server = site.command(Side::B, haul);
                server.args(["lab", "constant", "receive", "--listen", &format!("{address}:{port}")]);
                let mut client = site.command(Side::A, haul);
                client.args(["lab", "constant", "send", "--to", &format!("{address}:{port}")]);
                client.args(["--rate", &rate.as_bps().to_string(), "--time", &format!("{seconds}s")]);
                (server, Listens::Udp(port), client)
            }
        };
        let start = |what, command| Running::start(command).map_err(|error| MeasureError::Start { what, error });
        let mut server = start("the server", server)?;
        wait_until_listening(site, &mut server, listens)?;
        let relay = match relay {
            Some((command, port)) => {
                let mut relay = start("the relay", command)?;
                wait_until_listening(site, &mut relay, Listens::Udp(port))?;
                Some(relay)
            }
            None => None,
        };
        Ok(Self { sender: *sender, server, _relay: relay, client: Some(client), running: None })
    }

    /// Starts the client when its time has come; true when all is over.
    fn step(&mut self, start: Time) -> Result<bool, MeasureError> {
        let failed = |what| move |error| MeasureError::Start { what, error };
        if self.client.is_some() && now() >= start + self.sender.from {
            let client = self.client.take();
            self.running = client.map(Running::start).transpose().map_err(failed("the client"))?;
        }
        let due = if self.client.is_some() { start + self.sender.from } else { Time::NEVER };
        let Some(running) = &mut self.running else {
            let _ = self.server.wait_until(due.min(now() + GLANCE)).map_err(failed("the server"))?;
            return Ok(false);
        };
        match running.wait_until(now() + GLANCE).map_err(failed("the client"))? {
            Some(ended) if ended.status != 0 => {
                Err(MeasureError::Ended { who: "client", status: ended.status, said: running.last_words() })
            }
            Some(_) => Ok(self.server.wait_until(now() + GLANCE).map_err(failed("the server"))?.is_some()),
            None => Ok(false),
        }
    }

    fn finish(mut self) -> Result<Heard, MeasureError> {
        let failed = |error| MeasureError::Start { what: "the server", error };
        self.server.end(Signal::INT).map_err(failed)?;
        let client = self.running.as_ref().map(Running::stdout).unwrap_or_default();
        let from = self.sender.from;
        match self.sender.program {
            Program::Haul(..) | Program::Paths(..) => {
                let series = later(&parse_intervals(&client, "haul perf")?, from);
                let round_trips = round_trips(&client).into_iter().map(|(end, rtt)| (end + from, rtt)).collect();
                Ok(Heard { series, round_trips, constant: None })
            }
            Program::Tcp(_) => {
                let series = later(&parse_intervals(&self.server.stdout(), "iperf3")?, from);
                let round_trips = round_trips(&client).into_iter().map(|(end, rtt)| (end + from, rtt)).collect();
                Ok(Heard { series, round_trips, constant: None })
            }
            Program::Constant(_) => {
                let unexpected = |error: serde_json::Error| MeasureError::Unexpected { who: "the sink", said: error.to_string() };
                let constant = serde_json::from_str(&self.server.stdout()).map_err(unexpected)?;
                Ok(Heard { constant: Some(constant), ..Heard::default() })
            }
        }
    }
}

/// The sender's round-trip times in the intervals of the JSON of `haul perf` and of iperf3: end, and the time in microseconds.
fn round_trips(json: &str) -> Vec<(Duration, Duration)> {
    let document: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let interval = |interval: &serde_json::Value| {
        let (end, rtt) = (interval["sum"]["end"].as_f64()?, interval["streams"][0]["rtt"].as_u64()?);
        Some((Duration::try_from_secs_f64(end).ok()?, Duration::from_micros(rtt)))
    };
    document["intervals"].as_array().into_iter().flatten().filter_map(interval).collect()
}

/// 95th percentile of the first flow's round-trip times above the smallest, since a point in time.
pub fn queue_p95(heard: &[Heard], since: Duration) -> Option<Duration> {
    let round_trips = &heard.first()?.round_trips;
    let least = round_trips.iter().map(|(_, rtt)| *rtt).min()?;
    let mut waits: Vec<Duration> =
        round_trips.iter().filter(|(end, _)| *end > since).map(|(_, rtt)| rtt.saturating_sub(least)).collect();
    waits.sort_unstable();
    waits.get(waits.len() * 95 / 100).copied()
}

/// The same with nothing before.
fn later(series: &Series, by: Duration) -> Series {
    let shifted = series.intervals().iter().map(|interval| (interval.end + by, interval.bytes));
    let nothing = (!by.is_zero()).then_some((by, Bytes::ZERO));
    nothing.into_iter().chain(shifted).collect()
}

/// What a path and its queue hold, so often: the kernel keeps two windows, at 2304 bytes for a packet of 1500, and haul's laws seven of them where a tenth is lost.
const BUFFERED: u64 = 16;
/// A network that holds little has other programs.
const LEAST_BUFFER: Bytes = Bytes::mib(16);
const FIRST_PORT: u16 = 7710;
const FIRST_RELAY_PORT: u16 = 7810;
/// On an otherwise idle machine it is 0.1 %; with 4 % programs stand still for 10 to 30 ms, twice a second.
const STOLEN_MOST: f64 = 0.01;
const GLANCE: Duration = Duration::from_millis(20);
/// For handshakes and farewells on a slow path.
const SLACK: Duration = Duration::from_secs(20);
