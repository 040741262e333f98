//! Arguments of `haul lab`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_units::{BitRate, Ratio, parse_duration};

use super::{bench, constant, list, run};

/// Emulate a wide area network on this machine
///
/// A link has a rate, a delay, a queue and losses, as long and lossy as you ask for. `haul lab wan` puts it between network namespaces, where
/// any program runs over it unchanged; `haul lab relay` puts it between UDP sockets, which needs no root.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What to do in the lab.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// A WAN between network namespaces of this machine
    #[command(subcommand)]
    Wan(Box<WanCommand>),
    /// The same link between UDP sockets, for haul alone and without root
    Relay(Box<RelayArgs>),
    /// haul beside other tools, over the emulated WAN
    #[command(after_help = bench::args::AFTER_HELP)]
    Bench(Box<bench::args::BenchArgs>),
    /// Figures of the field, reproduced: in simulation and on real sockets
    #[command(after_help = run::AFTER_HELP)]
    Run(run::ExperimentArgs),
    /// The experiments that `run` knows
    List(list::ListArgs),
    /// Constant UDP traffic of the experiments
    #[command(hide = true, subcommand)]
    Constant(constant::ConstantCommand),
    /// Files of the bench
    #[command(hide = true)]
    Files(bench::args::FilesArgs),
}

/// What to do with a WAN.
#[derive(Debug, Subcommand)]
pub enum WanCommand {
    /// Make a WAN and leave it up
    #[command(after_help = UP_AFTER_HELP)]
    Up(UpArgs),
    /// Run a command on one of its hosts
    Exec(ExecArgs),
    /// Change the link while it carries traffic
    Set(SetArgs),
    /// Packets, bytes, drops by cause, queue and rates of each direction
    Status(StatusArgs),
    /// End the WAN and whatever runs on its hosts
    Down(NameArgs),
    /// Make a WAN, run a command, clean up whatever happens
    #[command(after_help = RUN_AFTER_HELP)]
    Run(RunArgs),
    /// Compare what is configured with what ping and iperf3 measure
    Check(CheckArgs),
    /// The emulator itself
    #[command(hide = true)]
    Emulate(UpArgs),
}

/// The properties of a link; what is not given keeps its default, or its value with `set`.
#[derive(Debug, Args, Clone, Default)]
pub struct LinkArgs {
    /// Rate of IP bytes, from a to b and back [default: 10G]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Given<BitRate>>,
    /// Another rate from b to a
    #[arg(long, value_name = "RATE")]
    pub asymmetric: Option<Given<BitRate>>,
    /// Round-trip time without queues; each direction takes half [default: 100ms]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<Given<Span>>,
    /// Delay on top in each direction, wandering between zero and this
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<Given<Span>>,
    /// Queue of each direction: bandwidth-delay products, bytes or time [default: 1bdp]
    #[arg(long, value_name = "SIZE")]
    pub queue: Option<Given<QueueSize>>,
    /// Packets lost in each direction
    #[arg(long, value_name = "RATIO")]
    pub loss: Option<Given<Ratio>>,
    /// Lose them in bursts of this mean length (Gilbert-Elliott); 1 is back to one by one
    #[arg(long, value_name = "PACKETS")]
    pub burst_loss: Option<Given<f64>>,
    /// Packets that arrive later than those sent after them
    #[arg(long, value_name = "RATIO")]
    pub reorder: Option<Given<Ratio>>,
    /// By how much later [default: 1ms]
    #[arg(long, value_name = "TIME")]
    pub reorder_by: Option<Given<Span>>,
    /// Packets that arrive twice
    #[arg(long, value_name = "RATIO")]
    pub duplicate: Option<Given<Ratio>>,
    /// Packets that arrive with other bytes; their checksum tells
    #[arg(long, value_name = "RATIO")]
    pub corrupt: Option<Given<Ratio>>,
    /// Mark packets (ECN) that find more than this in the queue
    #[arg(long, value_name = "SIZE")]
    pub ecn: Option<Given<QueueSize>>,
    /// Seed of all chance [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<Given<u64>>,
}

/// What is fixed once a WAN is up.
#[derive(Debug, Args, Clone, Default)]
pub struct ShapeArgs {
    /// Hosts on side a and on side b: a1, a2, .. and b1, b2, .. [default: 1:1]
    #[arg(long, value_name = "A:B")]
    pub hosts: Option<Given<Hosts>>,
    /// Links between the sides, each with a queue and a network of its own [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub links: Option<u8>,
    /// Largest IP packet [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..))]
    pub mtu: Option<u16>,
    /// TCP congestion control of the hosts, for instance bbr [default: this machine's]
    #[arg(long, value_name = "NAME")]
    pub tcp: Option<String>,
}

/// Which WAN.
#[derive(Debug, Args, Clone, Default)]
pub struct NameArgs {
    /// Name of the WAN [default: $HAUL_LAB_NAME, which `run` sets, or else wan]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// End when standard input does.
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// The host: a or b, or a1, a2, .. where there are several
    pub host: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub link: LinkArgs,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub name: NameArgs,
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(2..=600))]
    pub time: u32,
    /// Compare the simulator's TCP with this kernel's instead: takes a quarter of an hour
    #[arg(long, conflicts_with = "time")]
    pub model: bool,
    /// Write the table as Markdown
    #[arg(long)]
    pub markdown: bool,
}

#[derive(Debug, Args)]
pub struct RelayArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Address and port of the server
    #[arg(long, value_name = "ADDR:PORT")]
    pub to: SocketAddr,
    #[command(flatten)]
    pub link: LinkArgs,
}

/// A value and the text that it was given as, to be handed on to another process.
#[derive(Debug, Clone, PartialEq)]
pub struct Given<T> {
    text: String,
    pub value: T,
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// How many hosts each side has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts(pub [u8; 2]);

impl LinkArgs {
    /// These properties in place of those.
    pub fn apply(&self, to: &mut LinkOptions) -> Result<(), String> {
        fn put<T: Clone>(given: Option<&Given<T>>, place: &mut T) {
            if let Some(given) = given {
                *place = given.value.clone();
            }
        }
        let put_span = |given: Option<&Given<Span>>, place: &mut Duration| {
            if let Some(given) = given {
                *place = given.value.0;
            }
        };
        put(self.rate.as_ref(), &mut to.rate);
        put_span(self.rtt.as_ref(), &mut to.rtt);
        put_span(self.jitter.as_ref(), &mut to.jitter);
        put_span(self.reorder_by.as_ref(), &mut to.reorder_by);
        put(self.queue.as_ref(), &mut to.queue);
        put(self.loss.as_ref(), &mut to.loss);
        put(self.reorder.as_ref(), &mut to.reorder);
        put(self.duplicate.as_ref(), &mut to.duplicate);
        put(self.corrupt.as_ref(), &mut to.corrupt);
        put(self.seed.as_ref(), &mut to.seed);
        to.back_rate = self.asymmetric.as_ref().map(|given| given.value).or(to.back_rate);
        to.ecn = self.ecn.as_ref().map(|given| given.value).or(to.ecn);
        if let Some(given) = &self.burst_loss {
            if !(1.0..=1e6).contains(&given.value) {
                return Err(format!("a burst of {} packets: the mean length is 1 or more", given.text));
            }
            to.burst_loss = (given.value > 1.0).then_some(given.value);
        }
        if to.rate == BitRate::ZERO || to.back_rate == Some(BitRate::ZERO) {
            return Err("nothing would ever arrive at a rate of zero".to_owned());
        }
        if to.rtt > LONGEST || to.jitter > LONGEST || to.reorder_by > LONGEST {
            return Err(format!("no delay of more than {} s is emulated", LONGEST.as_secs()));
        }
        Ok(())
    }

    /// The arguments that mean the same.
    pub fn to_args(&self) -> Vec<String> {
        fn text<T>(given: Option<&Given<T>>) -> Option<&str> {
            given.map(|given| given.text.as_str())
        }
        let all = [
            ("--rate", text(self.rate.as_ref())),
            ("--asymmetric", text(self.asymmetric.as_ref())),
            ("--rtt", text(self.rtt.as_ref())),
            ("--jitter", text(self.jitter.as_ref())),
            ("--queue", text(self.queue.as_ref())),
            ("--loss", text(self.loss.as_ref())),
            ("--burst-loss", text(self.burst_loss.as_ref())),
            ("--reorder", text(self.reorder.as_ref())),
            ("--reorder-by", text(self.reorder_by.as_ref())),
            ("--duplicate", text(self.duplicate.as_ref())),
            ("--corrupt", text(self.corrupt.as_ref())),
            ("--ecn", text(self.ecn.as_ref())),
            ("--seed", text(self.seed.as_ref())),
        ];
        all.into_iter().filter_map(|(option, text)| Some(format!("{option}={}", text?))).collect()
    }
}

impl ShapeArgs {
    /// The arguments that mean the same.
    pub fn to_args(&self) -> Vec<String> {
        let hosts = self.hosts.as_ref().map(|given| format!("--hosts={}", given.text));
        let links = self.links.map(|links| format!("--links={links}"));
        let mtu = self.mtu.map(|mtu| format!("--mtu={mtu}"));
        let tcp = self.tcp.as_ref().map(|tcp| format!("--tcp={tcp}"));
        [hosts, links, mtu, tcp].into_iter().flatten().collect()
    }
}

/// A WAN of these properties.
pub fn spec(link: &LinkArgs, shape: &ShapeArgs) -> Result<WanSpec, String> {
    let mut spec = WanSpec { tcp: shape.tcp.clone(), ..WanSpec::default() };
    link.apply(&mut spec.link)?;
    spec.links = shape.links.unwrap_or(spec.links);
    spec.mtu = shape.mtu.unwrap_or(spec.mtu);
    spec.hosts = shape.hosts.as_ref().map_or(spec.hosts, |given| given.value.0);
    Ok(spec)
}

impl<T: FromStr> FromStr for Given<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { text: text.to_owned(), value: text.parse()? })
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self).map_err(|error| error.to_string())
    }
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let counts = text.split_once(':').and_then(|(a, b)| Some([a.parse::<u8>().ok()?, b.parse::<u8>().ok()?]));
        match counts {
            Some(counts) if counts.iter().all(|count| (1..=64).contains(count)) => Ok(Self(counts)),
            _ => Err("write the hosts of both sides, 1 to 64 each, for instance 3:1".to_owned()),
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err("use up to 64 letters, digits, '-', '_' and '.'".to_owned());
    }
    Ok(text.to_owned())
}

/// A WAN with a longer way than this would need more memory than it has sense.
const LONGEST: Duration = Duration::from_secs(60);

const UP_AFTER_HELP: &str = "\
Examples:
  haul lab wan up --rate 10G --rtt 200ms --loss 1%
  haul lab wan exec b -- iperf3 -s -D
  haul lab wan exec a -- iperf3 -c 10.80.128.1
  haul lab wan set --loss 5%
  haul lab wan down

Hosts: a is 10.80.0.1 and fd80::1:1, b is 10.80.128.1 and fd80::2:1; the second of a side ends in 2, the second link has 10.81 and fd81.";

const RUN_AFTER_HELP: &str = "\
The command runs outside the hosts and reaches them by `haul lab wan exec HOST -- CMD` or `ip netns exec HOST CMD`. It finds in its environment
HAUL_LAB_NAME, and for each host HAUL_LAB_A (the name), HAUL_LAB_A_ADDRESS and HAUL_LAB_A_ADDRESS6, likewise for B, or A1, A2, .. where there
are several. Its exit status is passed on. When it ends, or this program does, by any signal, every process on the hosts is killed.

Example:
  haul lab wan run --rate 1G --rtt 100ms -- haul lab wan exec a -- ping -c 3 10.80.128.1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_on_what_was_given() {
        let args = LinkArgs {
            rate: "1G".parse().ok(),
            loss: "0.1%".parse().ok(),
            queue: "0.5bdp".parse().ok(),
            burst_loss: "8".parse().ok(),
            ..LinkArgs::default()
        };
        assert_eq!(args.to_args(), ["--rate=1G", "--queue=0.5bdp", "--loss=0.1%", "--burst-loss=8"]);
        let mut options = LinkOptions::default();
        args.apply(&mut options).expect("sound");
        assert_eq!((options.rate, options.queue), (BitRate::gbps(1), QueueSize::Bdp(0.5)));
        assert_eq!((options.loss, options.burst_loss, options.rtt), (Ratio::percent(0.1), Some(8.0), Duration::from_millis(100)));
    }

    #[test]
    fn refuses_what_makes_no_link() {
        let mut options = LinkOptions::default();
        for args in [
            LinkArgs { rate: "0".parse().ok(), ..LinkArgs::default() },
            LinkArgs { rtt: "2min".parse().ok(), ..LinkArgs::default() },
            LinkArgs { burst_loss: "0.5".parse().ok(), ..LinkArgs::default() },
        ] {
            assert!(args.apply(&mut options).is_err(), "{args:?}");
        }
        assert!("3".parse::<Hosts>().is_err() && "0:1".parse::<Hosts>().is_err() && "65:1".parse::<Hosts>().is_err());
        assert_eq!("3:1".parse(), Ok(Hosts([3, 1])));
    }
}
