//! Whether the emulator tells the truth, by what ping and iperf3 see of it.

mod model;
mod table;

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use haul_units::{BitRate, Cancel, CancelHook, Ratio};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

pub use self::model::{Extent, MeanRate, ModelRow, TOLERANCE, run as run_model};
pub use self::table::{ModelTable, head};

use crate::emulator::{AskError, Commands, DirectionStatus, Emulator, Life, Order, StartError};
use crate::namespace::value as setting;
use crate::options::{LinkChanges, LinkError, LinkOptions, QueueSize};
use crate::wan::WanSpec;

/// What was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRow {
    /// What of the link.
    pub what: &'static str,
    /// What of the link was given; the rest is as by default.
    pub link: LinkChanges,
    /// Largest packet, where it was given.
    pub mtu: Option<u16>,
    /// What it should be like, in words.
    pub configured: &'static str,
    /// What it was like, in words.
    pub measured: String,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A program that measures is missing.
    #[error("{tool} is not installed")]
    NotInstalled {
        /// Which one.
        tool: &'static str,
    },
    /// No WAN.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its emulator does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// No link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A program does not start.
    #[error("cannot run {command}: {source}")]
    Run {
        /// Which one, or all of its words.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// The server did not come up.
    #[error("iperf3 does not listen")]
    NotListening,
    /// A program says something else than was expected.
    #[error("{tool} says: {said}")]
    Said {
        /// Which one.
        tool: &'static str,
        /// Its words.
        said: String,
    },
    /// It says why it cannot measure.
    #[error("iperf3: {0}")]
    Iperf(String),
    /// Counts of no direction.
    #[error("the emulator counts nothing")]
    NoDirection,
    /// Nobody takes the rows.
    #[error("cannot write: {0}")]
    Tell(#[source] io::Error),
    /// Somebody wants no more.
    #[error("interrupted")]
    Cancelled,
}

/// Measures one link after the other, each for so long, and hands over what came out. Needs root, ping and iperf3; takes minutes.
///
/// A cancel ends the WAN that is up, and with it what waits for its programs.
pub fn run(
    commands: Commands,
    time: Duration,
    cancel: &Cancel,
    mut row: impl FnMut(CheckRow) -> io::Result<()>,
) -> Result<(), CheckError> {
    needed()?;
    for check in checks() {
        let lab = Lab::open(&check, commands, time, cancel)?;
        let measured = (check.measure)(&lab).map_err(|error| lab.cancelled_or(error))?;
        let Check { what, link, mtu, configured, .. } = check;
        row(CheckRow { what, link, mtu, configured, measured }).map_err(CheckError::Tell)?;
    }
    Ok(())
}

/// Whether the programs that measure are there.
pub fn needed() -> Result<(), CheckError> {
    for tool in ["ping", "iperf3"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        // An old ping has no --version, and says so by its status.
        found.map_err(|_| CheckError::NotInstalled { tool })?;
    }
    Ok(())
}

/// One row: a link, what it should show, and how that is measured.
struct Check {
    what: &'static str,
    link: LinkChanges,
    mtu: Option<u16>,
    configured: &'static str,
    measure: fn(&Lab) -> Result<String, CheckError>,
}

fn checks() -> [Check; 18] {
    let link = |rate: BitRate, rtt_ms: u64| LinkChanges {
        rate: Some(rate),
        rtt: Some(Duration::from_millis(rtt_ms)),
        ..LinkChanges::default()
    };
    let check = |what, link, configured, measure| Check { what, link, mtu: None, configured, measure };
    [
        check("RTT", link(BitRate::gbps(10), 20), "20 ms", ping_rtt),
        check("RTT", link(BitRate::gbps(1), 200), "200 ms", ping_rtt),
        check("added delay, idle", link(BitRate::gbps(1), 10), "0, each way", added_idle),
        check("added delay, loaded", link(BitRate::gbps(1), 10), "0, each way", added_loaded),
        check("rate, TCP", link(BitRate::gbps(10), 20), "9.65 Gbit/s of payload", tcp),
        Check { mtu: Some(9000), ..check("rate, TCP, MTU 9000", link(BitRate::gbps(10), 20), "9.94 Gbit/s", tcp) },
        check("rate, TCP", link(BitRate::gbps(1), 100), "965 Mbit/s", tcp),
        check("rate, TCP, IPv6", link(BitRate::mbps(100), 20), "95.2 Mbit/s", tcp6),
        check("rate, UDP overload", link(BitRate::mbps(100), 20), "98.1 Mbit/s, 33 % dropped", udp_overload),
        check("UDP, one by one", link(BitRate::gbps(10), 20), "what iperf3 sends", udp_one_by_one),
        check(
            "queue, full",
            LinkChanges { queue: Some(QueueSize::Bdp(1.0)), ..link(BitRate::mbps(100), 20) },
            "RTT 40 ms",
            queue,
        ),
        check(
            "queue, half",
            LinkChanges { queue: Some(QueueSize::Bdp(0.5)), ..link(BitRate::mbps(100), 20) },
            "RTT 30 ms",
            queue,
        ),
        check("loss", LinkChanges { loss: Some(Ratio::percent(0.1)), ..link(BitRate::gbps(1), 20) }, "0.1 %", udp_loss),
        check("loss", LinkChanges { loss: Some(Ratio::percent(5.0)), ..link(BitRate::gbps(1), 20) }, "5 %", udp_loss),
        check(
            "loss in bursts of 8",
            LinkChanges { loss: Some(Ratio::percent(2.0)), burst_loss: Some(8.0), ..link(BitRate::gbps(1), 20) },
            "2 %",
            udp_loss,
        ),
        check(
            "reordering",
            LinkChanges { reorder: Some(Ratio::percent(1.0)), ..link(BitRate::gbps(1), 20) },
            "1 %",
            udp_reordered,
        ),
        check(
            "duplicates",
            LinkChanges { duplicate: Some(Ratio::percent(10.0)), ..link(BitRate::gbps(1), 20) },
            "21 % (both ways)",
            duplicates,
        ),
        check(
            "jitter",
            LinkChanges { jitter: Some(Duration::from_millis(5)), ..link(BitRate::gbps(1), 20) },
            "20 to 30 ms",
            ping_range,
        ),
    ]
}

/// A WAN, and commands on its hosts.
struct Lab {
    time: Duration,
    cancel: Cancel,
    /// Ends the emulator, and whatever waits for its programs.
    _hook: CancelHook,
    emulator: Option<Emulator>,
}

const B: &str = "10.80.128.1";
const B6: &str = "fd80::2:1";
/// Payload of the largest UDP datagram in a packet of 1500 bytes.
const DATAGRAM: &str = "1472";

impl Lab {
    fn open(check: &Check, commands: Commands, time: Duration, cancel: &Cancel) -> Result<Self, CheckError> {
        let link = check.link.apply(&LinkOptions::default())?;
        let spec = WanSpec { link, tcp: usual_tcp(), ..WanSpec::default() };
        Self::with(WanSpec { mtu: check.mtu.unwrap_or(spec.mtu), ..spec }, commands, time, cancel)
    }

    fn with(wan: WanSpec, commands: Commands, time: Duration, cancel: &Cancel) -> Result<Self, CheckError> {
        if cancel.is_cancelled() {
            return Err(CheckError::Cancelled);
        }
        let order = Order { name: format!("check-{}", std::process::id()), wan, life: Life::WithThisProcess };
        let emulator = Emulator::start(&order, commands)?;
        let pid = emulator.pid();
        // It may have ended already.
        let hook = cancel.on_cancel(move || {
            let _ = kill_process(pid, Signal::KILL);
        });
        let lab = Self { time, cancel: cancel.clone(), _hook: hook, emulator: Some(emulator) };
        lab.on("b", &["iperf3", "--server", "--daemon"])?;
        // The daemon goes to the background before it listens.
        for _ in 0..50 {
            if lab.on("b", &["ss", "-Hlnt", "sport = :5201"])?.contains("5201") {
                return Ok(lab);
            }
        }
        Err(lab.cancelled_or(CheckError::NotListening))
    }
    fn emulator(&self) -> Result<&Emulator, CheckError> {
        self.emulator.as_ref().ok_or(CheckError::Cancelled)
    }

    /// What failed because somebody wants no more.
    fn cancelled_or(&self, error: CheckError) -> CheckError {
        if self.cancel.is_cancelled() { CheckError::Cancelled } else { error }
    }

    fn seconds(&self) -> u64 {
        self.time.as_secs()
    }

    fn command(&self, host: &str, words: &[&str]) -> Result<Command, CheckError> {
        let (program, args) = words.split_first().unwrap_or((&"true", &[]));
        let mut command = self.emulator()?.command(host, program);
        command.args(args).stdin(Stdio::null());
        Ok(command)
    }

    /// What a command prints; its status does not matter.
    fn on(&self, host: &str, words: &[&str]) -> Result<String, CheckError> {
        let failed = |source| CheckError::Run { command: words.join(" "), source };
        let output = self.command(host, words)?.stderr(Stdio::null()).output().map_err(failed)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// iperf3 from a to b: the end of its JSON.
    fn iperf(&self, address: &str, options: &[&str]) -> Result<Value, CheckError> {
        Ok(self.iperf_result(address, options)?["end"].take())
    }

    /// iperf3 from a to b: its JSON.
    fn iperf_result(&self, address: &str, options: &[&str]) -> Result<Value, CheckError> {
        let time = self.seconds().to_string();
        let words = [&["iperf3", "--json", "--time", &time, "--client", address], options].concat();
        let text = self.on("a", &words)?;
        let value: Value = serde_json::from_str(&text).map_err(|_| said("iperf3", &text))?;
        match value["error"].as_str() {
            Some(error) => Err(CheckError::Iperf(error.to_owned())),
            None => Ok(value),
        }
    }

    /// Smallest, mean and largest RTT in ms, and all that ping says at its end.
    fn ping(&self, options: &[&str]) -> Result<([f64; 3], String), CheckError> {
        let text = self.on("a", &[&["ping", "-q"], options, &[B]].concat())?;
        let strange = || said("ping", &text);
        let figures = text.lines().find_map(|line| line.strip_prefix("rtt ")?.split(" = ").nth(1)).ok_or_else(strange)?;
        let mut figures = figures.split('/').map_while(|figure| figure.trim().parse().ok());
        match (figures.next(), figures.next(), figures.next()) {
            (Some(min), Some(mean), Some(max)) => Ok(([min, mean, max], text)),
            _ => Err(strange()),
        }
    }

    /// What the emulator counted from a to b, and back.
    fn counts(&self) -> Result<[DirectionStatus; 2], CheckError> {
        let directions = self.emulator()?.wan().status()?.directions;
        directions.try_into().map_err(|_| CheckError::NoDirection)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(emulator) = self.emulator.take() {
            emulator.end();
        }
    }
}

fn said(tool: &'static str, text: &str) -> CheckError {
    CheckError::Said { tool, said: text.trim().to_owned() }
}

/// CUBIC fills a path without losses and does not pace, which costs least; where the kernel lacks it, BBR will do.
fn usual_tcp() -> Option<String> {
    let available = setting("ipv4/tcp_available_congestion_control").unwrap_or_default();
    let choice = ["cubic", "bbr"].into_iter().find(|name| available.split_whitespace().any(|known| known == *name));
    choice.map(str::to_owned)
}

fn ping_rtt(lab: &Lab) -> Result<String, CheckError> {
    let ([min, mean, max], _) = lab.ping(&["-c", "50", "-i", "0.05"])?;
    Ok(format!("{mean:.2} ms ({min:.2} to {max:.2})"))
}

fn ping_range(lab: &Lab) -> Result<String, CheckError> {
    let ([min, mean, max], _) = lab.ping(&["-c", "400", "-i", "0.01"])?;
    Ok(format!("{min:.1} to {max:.1} ms, {mean:.1} on average"))
}

fn added_idle(lab: &Lab) -> Result<String, CheckError> {
    let ([min, mean, _], _) = lab.ping(&["-c", "200", "-i", "0.01"])?;
    Ok(format!("{:.0} us ({:.0} at least)", (mean - 10.0) * 500.0, (min - 10.0) * 500.0))
}

fn added_loaded(lab: &Lab) -> Result<String, CheckError> {
    let end = lab.iperf(B, &[])?;
    let [there, _] = lab.counts()?;
    let mean = there.added_delay_mean_us;
    Ok(format!("{mean:.0} us, at {} of TCP", megabits(&end["sum_received"])))
}

fn tcp(lab: &Lab) -> Result<String, CheckError> {
    tcp_to(lab, B)
}

fn tcp6(lab: &Lab) -> Result<String, CheckError> {
    tcp_to(lab, B6)
}

fn tcp_to(lab: &Lab, address: &str) -> Result<String, CheckError> {
    let end = lab.iperf(address, &["--omit", "2"])?;
    let seconds = lab.time.as_secs_f64() + 2.0;
    let [there, back] = lab.counts()?.map(|direction| direction.cpu_s / seconds * 100.0);
    // What was received ends with what was under way at the end, which is more than the time allows.
    let rate = megabits(&end["sum_sent"]);
    Ok(format!("{rate}; emulator {there:.0} + {back:.0} % of a processor"))
}

fn udp_overload(lab: &Lab) -> Result<String, CheckError> {
    let sum = lab.iperf(B, &["--udp", "--bitrate", "147.2M", "--length", DATAGRAM, "--window", "8M"])?["sum"].clone();
    let received = number(&sum, "bits_per_second") * (1.0 - number(&sum, "lost_percent") / 100.0);
    Ok(format!("{:.1} Mbit/s, {:.1} % dropped", received / 1e6, number(&sum, "lost_percent")))
}

/// Datagrams that are no part of super-packets: what each costs.
fn udp_one_by_one(lab: &Lab) -> Result<String, CheckError> {
    lab.iperf(B, &["--udp", "--bitrate", "0", "--length", DATAGRAM, "--window", "8M"])?;
    let [there, _] = lab.counts()?;
    let packets = there.delivered_pkts.max(1) as f64;
    let (rate, cost) = (packets / lab.time.as_secs_f64(), there.cpu_s / packets);
    Ok(format!("{rate:.0} packets/s, {:.1} us of a processor each", cost * 1e6))
}

fn udp_loss(lab: &Lab) -> Result<String, CheckError> {
    let end = lab.iperf(B, &["--udp", "--bitrate", "200M", "--length", DATAGRAM, "--window", "8M"])?;
    let sum = &end["sum"];
    Ok(format!("{:.3} % of {} datagrams", number(sum, "lost_percent"), sum["packets"]))
}

fn udp_reordered(lab: &Lab) -> Result<String, CheckError> {
    // Only the text of the server tells.
    let time = lab.seconds().to_string();
    let words = [
        "iperf3",
        "--udp",
        "--bitrate",
        "200M",
        "--length",
        DATAGRAM,
        "--window",
        "8M",
        "--time",
        &time,
        "--get-server-output",
        "--client",
        B,
    ];
    let text = lab.on("a", &words)?;
    let late =
        text.split(" datagrams received out-of-order").next().and_then(|text| text.rsplit(' ').next()?.parse::<f64>().ok());
    let count = text.lines().filter(|line| line.ends_with("receiver")).find_map(|line| line.split(' ').find_map(after_slash));
    match (late, count) {
        (Some(late), Some(count)) => Ok(format!("{:.2} % of {count} datagrams", late / count.max(1.0) * 100.0)),
        _ => Err(said("iperf3", &text)),
    }
}

/// The number of datagrams in what iperf3 writes as lost/all.
fn after_slash(word: &str) -> Option<f64> {
    let (lost, all) = word.split_once('/')?;
    lost.parse::<f64>().ok().and(all.parse().ok())
}

fn queue(lab: &Lab) -> Result<String, CheckError> {
    let seconds = lab.seconds().to_string();
    let load = ["iperf3", "--udp", "--bitrate", "110M", "--length", DATAGRAM, "--time", &seconds, "--client", B];
    let failed = |source| CheckError::Run { command: "iperf3".to_owned(), source };
    let mut load = lab.command("a", &load)?.stdout(Stdio::null()).spawn().map_err(failed)?;
    // The queue is full after some round trips; what is dropped of the pings at its end does not count.
    let first = lab.ping(&["-c", "100", "-i", "0.01"]);
    let count = (lab.seconds().saturating_sub(1) * 10).to_string();
    let measured = first.and_then(|_| lab.ping(&["-c", &count, "-i", "0.05"]));
    load.wait().map_err(failed)?;
    let ([_, mean, max], _) = measured?;
    Ok(format!("RTT {mean:.1} ms, {max:.1} at most"))
}

fn duplicates(lab: &Lab) -> Result<String, CheckError> {
    let (_, text) = lab.ping(&["-c", "1000", "-i", "0.002"])?;
    let count = text.split(", ").find_map(|part| part.trim().strip_prefix('+')?.split(' ').next()?.parse::<f64>().ok());
    Ok(format!("{:.1} % of 1000 pings answered again", count.unwrap_or(0.0) / 10.0))
}

fn megabits(sum: &Value) -> String {
    let bps = number(sum, "bits_per_second");
    if bps >= 1e9 { format!("{:.2} Gbit/s", bps / 1e9) } else { format!("{:.1} Mbit/s", bps / 1e6) }
}

/// A number of a JSON object; zero where it is missing.
fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}
