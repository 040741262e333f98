//! `haul lab wan check`: whether the emulator tells the truth, by what ping and iperf3 see of it.

mod model;

use std::process::{Command, Stdio};

use serde_json::Value;

use super::args::CheckArgs;
use super::control::{Request, ask};
use super::print;
use super::start::{Emulator, Life};
use super::status::number;
use crate::exit::{Exit, Failure};

/// Prints the table.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    for tool in ["ping", "iperf3"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        // An old ping has no --version, and says so by its status.
        found.map_err(|_| Failure::new(format!("{tool} is not installed")).hint("apt-get install iputils-ping iperf3"))?;
    }
    if args.model {
        return model::run(args.markdown);
    }
    let style = Style { markdown: args.markdown };
    style.head()?;
    for check in CHECKS {
        let lab = Lab::open(check.link, args.time)?;
        let measured = (check.measure)(&lab)?;
        style.row([check.what, &check.link.join(" "), check.configured, &measured])?;
    }
    Ok(Exit::Done)
}

/// One row: a link, what it should show, and how that is measured.
struct Check {
    what: &'static str,
    link: &'static [&'static str],
    configured: &'static str,
    measure: fn(&Lab) -> Result<String, Failure>,
}

const CHECKS: &[Check] = &[
    Check { what: "RTT", link: &["--rate=10G", "--rtt=20ms"], configured: "20 ms", measure: ping_rtt },
    Check { what: "RTT", link: &["--rate=1G", "--rtt=200ms"], configured: "200 ms", measure: ping_rtt },
    Check { what: "added delay, idle", link: &["--rate=1G", "--rtt=10ms"], configured: "0, each way", measure: added_idle },
    Check { what: "added delay, loaded", link: &["--rate=1G", "--rtt=10ms"], configured: "0, each way", measure: added_loaded },
    Check { what: "rate, TCP", link: &["--rate=10G", "--rtt=20ms"], configured: "9.65 Gbit/s of payload", measure: tcp },
    Check {
        what: "rate, TCP, MTU 9000",
        link: &["--rate=10G", "--rtt=20ms", "--mtu=9000"],
        configured: "9.94 Gbit/s",
        measure: tcp,
    },
    Check { what: "rate, TCP", link: &["--rate=1G", "--rtt=100ms"], configured: "965 Mbit/s", measure: tcp },
    Check { what: "rate, TCP, IPv6", link: &["--rate=100M", "--rtt=20ms"], configured: "95.2 Mbit/s", measure: tcp6 },
    Check {
        what: "rate, UDP overload",
        link: &["--rate=100M", "--rtt=20ms"],
        configured: "98.1 Mbit/s, 33 % dropped",
        measure: udp_overload,
    },
    Check {
        what: "UDP, one by one",
        link: &["--rate=10G", "--rtt=20ms"],
        configured: "what iperf3 sends",
        measure: udp_one_by_one,
    },
    Check { what: "queue, full", link: &["--rate=100M", "--rtt=20ms", "--queue=1bdp"], configured: "RTT 40 ms", measure: queue },
    Check {
        what: "queue, half",
        link: &["--rate=100M", "--rtt=20ms", "--queue=0.5bdp"],
        configured: "RTT 30 ms",
        measure: queue,
    },
    Check { what: "loss", link: &["--rate=1G", "--rtt=20ms", "--loss=0.1%"], configured: "0.1 %", measure: udp_loss },
    Check { what: "loss", link: &["--rate=1G", "--rtt=20ms", "--loss=5%"], configured: "5 %", measure: udp_loss },
    Check {
        what: "loss in bursts of 8",
        link: &["--rate=1G", "--rtt=20ms", "--loss=2%", "--burst-loss=8"],
        configured: "2 %",
        measure: udp_loss,
    },
    Check { what: "reordering", link: &["--rate=1G", "--rtt=20ms", "--reorder=1%"], configured: "1 %", measure: udp_reordered },
    Check {
        what: "duplicates",
        link: &["--rate=1G", "--rtt=20ms", "--duplicate=10%"],
        configured: "21 % (both ways)",
        measure: duplicates,
    },
    Check { what: "jitter", link: &["--rate=1G", "--rtt=20ms", "--jitter=5ms"], configured: "20 to 30 ms", measure: ping_range },
];

/// A WAN, and commands on its hosts.
struct Lab {
    name: String,
    seconds: u32,
    emulator: Option<Emulator>,
}

const B: &str = "10.80.128.1";
const B6: &str = "fd80::2:1";
/// Payload of the largest UDP datagram in a packet of 1500 bytes.
const DATAGRAM: &str = "1472";

impl Lab {
    fn open(link: &[&str], seconds: u32) -> Result<Self, Failure> {
        Self::with(link.iter().map(|&option| option.to_owned()).chain(tcp_option()).collect(), seconds)
    }

    fn with(options: Vec<String>, seconds: u32) -> Result<Self, Failure> {
        let name = format!("check-{}", std::process::id());
        let emulator = Emulator::start(&name, options, Life::WithThisProcess)?;
        let lab = Self { name, seconds, emulator: Some(emulator) };
        lab.on("b", &["iperf3", "--server", "--daemon"])?;
        // The daemon goes to the background before it listens.
        for _ in 0..50 {
            if lab.on("b", &["ss", "-Hlnt", "sport = :5201"])?.contains("5201") {
                return Ok(lab);
            }
        }
        Err(Failure::new("iperf3 does not listen"))
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.args(["lab", "wan", "exec", "--name", &self.name, host, "--"]).args(words);
        command.stdin(Stdio::null());
        command
    }

    /// What a command prints; its status does not matter.
    fn on(&self, host: &str, words: &[&str]) -> Result<String, Failure> {
        let failed = |error| Failure::new(format!("cannot run {}: {error}", words.join(" ")));
        let output = self.command(host, words).stderr(Stdio::null()).output().map_err(failed)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// iperf3 from a to b: the end of its JSON.
    fn iperf(&self, address: &str, options: &[&str]) -> Result<Value, Failure> {
        Ok(self.iperf_result(address, options)?["end"].take())
    }

    /// iperf3 from a to b: its JSON.
    fn iperf_result(&self, address: &str, options: &[&str]) -> Result<Value, Failure> {
        let time = self.seconds.to_string();
        let words = [&["iperf3", "--json", "--time", &time, "--client", address], options].concat();
        let text = self.on("a", &words)?;
        let value: Value = serde_json::from_str(&text).map_err(|_| Failure::new(format!("iperf3 says: {}", text.trim())))?;
        match value["error"].as_str() {
            Some(error) => Err(Failure::new(format!("iperf3: {error}"))),
            None => Ok(value),
        }
    }

    /// Smallest, mean and largest RTT in ms, and all that ping says at its end.
    fn ping(&self, options: &[&str]) -> Result<([f64; 3], String), Failure> {
        let text = self.on("a", &[&["ping", "-q"], options, &[B]].concat())?;
        let strange = || Failure::new(format!("ping says: {}", text.trim()));
        let figures = text.lines().find_map(|line| line.strip_prefix("rtt ")?.split(" = ").nth(1)).ok_or_else(strange)?;
        let mut figures = figures.split('/').map_while(|figure| figure.trim().parse().ok());
        match (figures.next(), figures.next(), figures.next()) {
            (Some(min), Some(mean), Some(max)) => Ok(([min, mean, max], text)),
            _ => Err(strange()),
        }
    }

    fn status(&self) -> Result<Value, Failure> {
        Ok(ask(&self.name, &Request::Status)?.0["directions"].clone())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(emulator) = self.emulator.take() {
            emulator.end();
        }
    }
}

/// CUBIC fills a path without losses and does not pace, which costs least; where the kernel lacks it, BBR will do.
fn tcp_option() -> Option<String> {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let choice = ["cubic", "bbr"].into_iter().find(|name| available.split_whitespace().any(|known| known == *name));
    choice.map(|name| format!("--tcp={name}"))
}

fn ping_rtt(lab: &Lab) -> Result<String, Failure> {
    let ([min, mean, max], _) = lab.ping(&["-c", "50", "-i", "0.05"])?;
    Ok(format!("{mean:.2} ms ({min:.2} to {max:.2})"))
}

fn ping_range(lab: &Lab) -> Result<String, Failure> {
    let ([min, mean, max], _) = lab.ping(&["-c", "400", "-i", "0.01"])?;
    Ok(format!("{min:.1} to {max:.1} ms, {mean:.1} on average"))
}

fn added_idle(lab: &Lab) -> Result<String, Failure> {
    let ([min, mean, _], _) = lab.ping(&["-c", "200", "-i", "0.01"])?;
    Ok(format!("{:.0} us ({:.0} at least)", (mean - 10.0) * 500.0, (min - 10.0) * 500.0))
}

fn added_loaded(lab: &Lab) -> Result<String, Failure> {
    let end = lab.iperf(B, &[])?;
    let status = lab.status()?;
    let mean = number(&status[0], "added_delay_mean_us");
    Ok(format!("{mean:.0} us, at {} of TCP", megabits(&end["sum_received"])))
}

fn tcp(lab: &Lab) -> Result<String, Failure> {
    tcp_to(lab, B)
}

fn tcp6(lab: &Lab) -> Result<String, Failure> {
    tcp_to(lab, B6)
}

fn tcp_to(lab: &Lab, address: &str) -> Result<String, Failure> {
    let end = lab.iperf(address, &["--omit", "2"])?;
    let status = lab.status()?;
    let seconds = f64::from(lab.seconds) + 2.0;
    let cpu = |direction: usize| number(&status[direction], "cpu_s") / seconds * 100.0;
    // What was received ends with what was under way at the end, which is more than the time allows.
    let rate = megabits(&end["sum_sent"]);
    Ok(format!("{rate}; emulator {:.0} + {:.0} % of a processor", cpu(0), cpu(1)))
}

fn udp_overload(lab: &Lab) -> Result<String, Failure> {
    let sum = lab.iperf(B, &["--udp", "--bitrate", "147.2M", "--length", DATAGRAM, "--window", "8M"])?["sum"].clone();
    let received = number(&sum, "bits_per_second") * (1.0 - number(&sum, "lost_percent") / 100.0);
    Ok(format!("{:.1} Mbit/s, {:.1} % dropped", received / 1e6, number(&sum, "lost_percent")))
}

/// Datagrams that are no part of super-packets: what each costs.
fn udp_one_by_one(lab: &Lab) -> Result<String, Failure> {
    lab.iperf(B, &["--udp", "--bitrate", "0", "--length", DATAGRAM, "--window", "8M"])?;
    let status = lab.status()?;
    let packets = number(&status[0], "delivered_pkts").max(1.0);
    let (rate, cost) = (packets / f64::from(lab.seconds), number(&status[0], "cpu_s") / packets);
    Ok(format!("{rate:.0} packets/s, {:.1} us of a processor each", cost * 1e6))
}

fn udp_loss(lab: &Lab) -> Result<String, Failure> {
    let end = lab.iperf(B, &["--udp", "--bitrate", "200M", "--length", DATAGRAM, "--window", "8M"])?;
    let sum = &end["sum"];
    Ok(format!("{:.3} % of {} datagrams", number(sum, "lost_percent"), sum["packets"]))
}

fn udp_reordered(lab: &Lab) -> Result<String, Failure> {
    // Only the text of the server tells.
    let time = lab.seconds.to_string();
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
        _ => Err(Failure::new(format!("iperf3 says: {}", text.trim()))),
    }
}

/// The number of datagrams in what iperf3 writes as lost/all.
fn after_slash(word: &str) -> Option<f64> {
    let (lost, all) = word.split_once('/')?;
    lost.parse::<f64>().ok().and(all.parse().ok())
}

fn queue(lab: &Lab) -> Result<String, Failure> {
    let seconds = lab.seconds.to_string();
    let load = ["iperf3", "--udp", "--bitrate", "110M", "--length", DATAGRAM, "--time", &seconds, "--client", B];
    let failed = |error| Failure::new(format!("cannot run iperf3: {error}"));
    let mut load = lab.command("a", &load).stdout(Stdio::null()).spawn().map_err(failed)?;
    // The queue is full after some round trips; what is dropped of the pings at its end does not count.
    let first = lab.ping(&["-c", "100", "-i", "0.01"]);
    let count = (lab.seconds.saturating_sub(1) * 10).to_string();
    let measured = first.and_then(|_| lab.ping(&["-c", &count, "-i", "0.05"]));
    load.wait().map_err(failed)?;
    let ([_, mean, max], _) = measured?;
    Ok(format!("RTT {mean:.1} ms, {max:.1} at most"))
}

fn duplicates(lab: &Lab) -> Result<String, Failure> {
    let (_, text) = lab.ping(&["-c", "1000", "-i", "0.002"])?;
    let count = text.split(", ").find_map(|part| part.trim().strip_prefix('+')?.split(' ').next()?.parse::<f64>().ok());
    Ok(format!("{:.1} % of 1000 pings answered again", count.unwrap_or(0.0) / 10.0))
}

fn megabits(sum: &Value) -> String {
    let bps = number(sum, "bits_per_second");
    if bps >= 1e9 { format!("{:.2} Gbit/s", bps / 1e9) } else { format!("{:.1} Mbit/s", bps / 1e6) }
}

/// How rows are written.
struct Style {
    markdown: bool,
}

impl Style {
    fn head(&self) -> Result<Exit, Failure> {
        self.row(["what", "link", "configured", "measured"])?;
        if self.markdown { print("|---|---|---|---|\n") } else { Ok(Exit::Done) }
    }

    fn row(&self, [what, link, configured, measured]: [&str; 4]) -> Result<Exit, Failure> {
        if self.markdown {
            let link = if link.starts_with('-') { format!("`{link}`") } else { link.to_owned() };
            print(&format!("| {what} | {link} | {configured} | {measured} |\n"))
        } else {
            print(&format!("{what:<22}{link:<44}{configured:<28}{measured}\n"))
        }
    }
}
