//! Arguments of `haul perf`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use haul::{ControllerChoice, Fingerprint, Scheduler, Via};
use haul_units::{BitRate, Bytes, parse_duration};

use super::cp::{VIA_HELP, mode_help, paths_help, paths_parser};
use super::mode::ModeParser;
use super::{AuditArgs, PortRange, SilenceArgs, SshArgs, UsualSshArgs};

/// The port that `haul perf -s` listens on unless told otherwise.
pub const PERF_PORT: u16 = 7701;

/// Measure a path, memory to memory
///
/// Like iperf3, whose letters mean the same here. Without a server: `haul perf [user@]host` starts the far side through ssh and ends it afterwards. With
/// one: `haul perf -s` there and `haul perf -c host` here; a server takes many clients at once. A daemon (`haul serve`) is measured as
/// `haul://host`, by clients whose keys it has authorised.
///
/// Rates and bytes of an interval are those that arrived: the receiver counts them. `--tcp` measures the kernel's TCP in the same way.
#[derive(Debug, Args)]
#[command(
    override_usage = "haul perf [OPTIONS] [USER@]HOST\n       haul perf -s [OPTIONS]\n       haul perf -c HOST[:PORT] [OPTIONS]\n       haul perf mesh [OPTIONS] HOST...",
    after_help = PERF_AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    disable_version_flag = true
)]
pub struct PerfArgs {
    /// Something else than one measurement.
    #[command(subcommand)]
    pub command: Option<PerfCommand>,
    /// Host to reach through ssh, or `haul://HOST[:PORT]` of a daemon
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname, conflicts_with_all = ["server", "client"], required_unless_present_any = ["server", "client"])]
    pub host: Option<OsString>,
    /// Run a server, until it is interrupted
    #[arg(short, long, conflicts_with = "client")]
    pub server: bool,
    /// Measure against a running server
    #[arg(short, long, value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname)]
    pub client: Option<String>,
    /// Port of the server, with -s or -c: UDP, and TCP of the same number for --tcp [default: 7701]
    #[arg(short, long)]
    pub port: Option<u16>,
    /// Local address to listen on or to connect from
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// What to measure.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// How to show it.
    #[command(flatten)]
    pub show: ShowArgs,
    /// How to serve.
    #[command(flatten)]
    pub serve: PerfServeArgs,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: PerfSshArgs,
}

/// What else there is.
#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    Mesh(Box<MeshArgs>),
}

/// Measure every ordered pair of a list of hosts, haul against TCP
///
/// On each host, reached through ssh, a server is started; then each host in its turn measures to each other one, first over haul, then over
/// TCP, never two at once on a host. What comes out is a matrix of ratios with the two rates in each cell, an x where a pair could not be measured: printed, and
/// written as CSV, JSON and a page of HTML with a heat map.
///
/// The hosts need haul and an ssh server. They reach each other by the names that ssh has for them here, or by the address that is given.
#[derive(Debug, Args)]
#[command(override_usage = "haul perf mesh [OPTIONS] HOST...", after_help = MESH_AFTER_HELP)]
pub struct MeshArgs {
    /// Hosts, or files with one a line: `[NAME=][USER@]HOST[,ADDRESS]`
    #[arg(value_name = "HOST", required = true, value_hint = ValueHint::Hostname)]
    pub hosts: Vec<OsString>,
    /// Length of each measurement
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_duration, default_value = "10")]
    pub time: Duration,
    /// Leave out the first seconds of each
    #[arg(short = 'O', long, value_name = "SECONDS", value_parser = parse_duration, default_value = "0", hide_default_value = true)]
    pub omit: Duration,
    /// Seconds between two points of the plots; a file name here is a key for ssh, as in haul-cp(1)
    #[arg(short, long, value_name = "SECONDS", default_value = "1")]
    pub interval: Vec<IntervalOrKey>,
    /// Streams in parallel
    #[arg(short = 'P', long, value_name = "STREAMS", default_value_t = 1)]
    pub parallel: u16,
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    /// Measure TCP with this law of `haul tcp` in haul's place: fair, quickstart, modest, aggressive or another one
    ///
    /// It must be loaded on every host, see `haul tcp on`.
    #[arg(long, value_name = "LAW", conflicts_with = "mode")]
    pub tcp_mode: Option<super::TcpMode>,
    /// TCP's congestion control
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub congestion: String,
    /// Port of the servers, UDP and TCP; any free one without it
    #[arg(short = 'p', long = "port", value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub server_port: u16,
    /// Pairs measured at once, of different hosts: for sites that share no link
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub at_once: usize,
    /// Where the results go: PREFIX.csv, PREFIX.json, PREFIX.html; PREFIX-2 and so on where there is one
    #[arg(long, value_name = "PREFIX", default_value = "haul-mesh", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Port of the ssh servers
    #[arg(long, value_name = "PORT")]
    pub ssh_port: Option<u16>,
    /// Log in by way of another host (ssh's -J)
    #[arg(long, value_name = "JUMP")]
    pub jump: Option<OsString>,
    /// How to reach the hosts.
    #[command(flatten)]
    pub usual: UsualSshArgs,
}

impl MeshArgs {
    /// Time between two points of the plots.
    pub fn every(&self) -> Duration {
        last_interval(&self.interval)
    }

    /// As `haul cp` has them.
    pub fn ssh_args(&self) -> SshArgs {
        SshArgs { port: self.ssh_port, identity: keys(&self.interval), jump: self.jump.clone(), usual: self.usual.clone() }
    }
}

const MESH_AFTER_HELP: &str = "\
Examples:
  haul perf mesh nict kyushu ehime        three hosts that ssh reaches
  haul perf mesh sites.txt -t 30          a file with one a line
  haul perf mesh a=me@h1 b=me@h2,192.0.2.7
                                          names for the table, and an address where the others reach h2

Of haul-perf(1)'s other letters, -R has no use here: each pair is measured in both directions. Nor has -J: PREFIX.json is always written; nor have -s, -1 and -c: mesh starts servers and clients itself. -n, -b, -l, -B, -T and -v are about one pair of hosts; `haul perf` on one of them measures that.

Exit status: 0 all measured, 1 some were, 2 wrong usage or none, 130 interrupted.";

/// What is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measurement")]
pub struct MeasureArgs {
    /// Measure for so long
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_duration, conflicts_with = "bytes", default_value = "10")]
    pub time: Duration,
    /// Send so many bytes instead
    #[arg(short = 'n', long, value_name = "BYTES")]
    pub bytes: Option<Bytes>,
    /// Leave out the first seconds
    #[arg(short = 'O', long, value_name = "SECONDS", value_parser = parse_duration, default_value = "0", hide_default_value = true)]
    pub omit: Duration,
    /// Streams in parallel: of one connection with haul, connections with --tcp
    #[arg(short = 'P', long, value_name = "STREAMS", default_value_t = 1, hide_default_value = true)]
    pub parallel: u16,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub reverse: bool,
    /// Both sides send at once
    #[arg(long)]
    pub bidir: bool,
    /// What each stream sends at most; without it, or with 0, as much as the path bears
    #[arg(short, long, value_name = "RATE")]
    pub bitrate: Option<BitRate>,
    /// Bytes handed to the transport at once
    #[arg(short, long, value_name = "BYTES")]
    pub length: Option<Bytes>,
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true, value_parser = paths_parser(), help = paths_help(), conflicts_with = "tcp")]
    pub paths: u8,
    #[arg(long, value_name = "WAY[,WAY]", value_delimiter = ',', conflicts_with_all = ["paths", "tcp", "transport"], help = VIA_HELP)]
    pub via: Vec<Via>,
    /// Which path is asked first, of those that carry data: completion (the default), shortest-rtt, round-robin or redundant
    #[arg(long, value_name = "RULE", default_value_t, hide_default_value = true, conflicts_with_all = ["tcp", "reverse", "bidir"])]
    pub scheduler: Scheduler,
    /// Send whatever the window lets go at once, in bursts: to see what pacing is good for
    #[arg(long, conflicts_with_all = ["tcp", "reverse", "bidir"])]
    pub no_pacing: bool,
    /// Measure the kernel's TCP instead
    #[arg(long)]
    pub tcp: bool,
    /// The kernel's congestion control for --tcp, for instance cubic or bbr
    #[arg(long, value_name = "NAME", requires = "tcp")]
    pub congestion: Option<String>,
}

/// How results are shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// Seconds between reports, fractions too; a file name here is a key for ssh, as in haul-cp(1)
    #[arg(short, long, value_name = "SECONDS", default_value = "1")]
    pub interval: Vec<IntervalOrKey>,
    /// Print one JSON document, in iperf3's form
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Print JSON as it comes, an event a line
    #[arg(long)]
    pub json_stream: bool,
    /// Put this before every line
    #[arg(short = 'T', long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Show the server's own output too
    #[arg(long)]
    pub get_server_output: bool,
    /// Draw what this side sent, rate, delay and loss over time with the phases of the congestion control: to a file that ends in .svg or .png; in .qlog a log of it
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath, conflicts_with_all = ["reverse", "tcp"])]
    pub trace: Option<PathBuf>,
    /// Say more; twice, and ssh says more too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How a server serves.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct PerfServeArgs {
    /// Serve one client, then end
    #[arg(short = '1', long)]
    pub one_off: bool,
    /// Clients at once
    #[arg(long, value_name = "NUMBER", default_value_t = 32)]
    pub max_clients: u16,
    /// Clients at once from one address
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_per_address: u16,
    /// End when standard input does
    #[arg(long, hide = true)]
    pub until_input_ends: bool,
    /// The longest measurement
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration, default_value = "1h")]
    pub max_time: Duration,
    /// Window for each client at most; memory is bounded by three of it [default: up to 1G, so that all clients together take a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub max_memory: Option<Bytes>,
    /// What is sent to each client at most
    #[arg(long, value_name = "RATE")]
    pub max_bitrate: Option<BitRate>,
    /// Who writes it down.
    #[command(flatten)]
    pub audit: AuditArgs,
}

/// What is handed to ssh; its letters as far as iperf3 has no other use for them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reaching the far side")]
pub struct PerfSshArgs {
    /// Believe only the server with this key
    #[arg(long, value_name = "FINGERPRINT")]
    pub key: Option<Fingerprint>,
    /// Port of the ssh server
    #[arg(long, value_name = "PORT")]
    pub ssh_port: Option<u16>,
    /// Log in by way of another host (ssh's -J)
    #[arg(long, value_name = "JUMP")]
    pub jump: Option<OsString>,
    /// What every command has.
    #[command(flatten)]
    pub usual: UsualSshArgs,
    /// Port or ports that the far side may use
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Directory of the identity key and the known hosts, for haul:// hosts
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// What follows `-i`: iperf3's interval, or ssh's key.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalOrKey {
    /// Time between two reports.
    Interval(Duration),
    /// File of a private key.
    Key(PathBuf),
}

impl std::str::FromStr for IntervalOrKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_duration(text) {
            Ok(interval) => Ok(Self::Interval(interval)),
            Err(_) if text.contains('/') || std::path::Path::new(text).exists() => Ok(Self::Key(text.into())),
            Err(error) => Err(format!("{error}; nor is it the file of a key for ssh")),
        }
    }
}

impl ShowArgs {
    /// Time between two reports.
    pub fn every(&self) -> Duration {
        last_interval(&self.interval)
    }
}

/// What was given last.
fn last_interval(given: &[IntervalOrKey]) -> Duration {
    let interval = given.iter().rev().find_map(|given| match given {
        IntervalOrKey::Interval(interval) => Some(*interval),
        IntervalOrKey::Key(_) => None,
    });
    interval.unwrap_or(Duration::from_secs(1))
}

fn keys(given: &[IntervalOrKey]) -> Vec<PathBuf> {
    let key = |given: &IntervalOrKey| match given {
        IntervalOrKey::Key(path) => Some(path.clone()),
        IntervalOrKey::Interval(_) => None,
    };
    given.iter().filter_map(key).collect()
}

impl PerfArgs {
    /// Of the server.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PERF_PORT)
    }

    /// As `haul cp` has them.
    pub fn ssh_args(&self) -> SshArgs {
        let ssh = &self.ssh;
        SshArgs { port: ssh.ssh_port, identity: keys(&self.show.interval), jump: ssh.jump.clone(), usual: ssh.usual.clone() }
    }
}

const PERF_AFTER_HELP: &str = "\
Examples:
  haul perf host                          10 s to a machine that ssh reaches
  haul perf host -R -t 30                 30 s from there
  haul perf host --tcp --congestion cubic the kernel's TCP, for comparison
  haul perf mesh host1 host2 host3        every pair of them, against TCP
  haul perf -s                            a server for anyone, until Ctrl-C
  haul perf -c host -P 4 -i 0.1 -J        against it: 4 streams, JSON in iperf3's form

Exit status: 0 measured, 1 measured in part, 2 wrong usage or failure, 130 interrupted.";

#[cfg(test)]
mod tests {
    use super::*;

    /// Who knows a letter of `haul perf` finds it in `haul perf mesh`, or why it is not there.
    #[test]
    fn mesh_has_the_letters_of_perf_or_says_why_not() {
        let letters = |command: clap::Command| {
            command
                .get_arguments()
                .flat_map(|argument| argument.get_short_and_visible_aliases().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        let perf = letters(PerfArgs::augment_args(clap::Command::new("perf")));
        let mesh = letters(MeshArgs::augment_args(clap::Command::new("mesh")));
        assert!(perf.len() > 15 && mesh.len() > 8, "{perf:?} {mesh:?}");
        let told = MESH_AFTER_HELP.split_once("other letters, ").expect("a sentence about them").1;
        for letter in perf {
            let is_explained = told.split([' ', ',', ':', '.']).any(|word| word == format!("-{letter}"));
            assert_ne!(mesh.contains(&letter), is_explained, "-{letter}");
        }
    }

    #[test]
    fn an_interval_or_a_key() {
        assert_eq!("0.1".parse(), Ok(IntervalOrKey::Interval(Duration::from_millis(100))));
        assert_eq!("~/.ssh/id".parse(), Ok(IntervalOrKey::Key("~/.ssh/id".into())));
        assert!("soon".parse::<IntervalOrKey>().is_err());
    }
}
