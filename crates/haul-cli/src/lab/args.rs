//! Arguments of `haul lab`.

use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;

use clap::{Args, Subcommand};
use haul_lab::{Access, Beside, Hosts, LinkChanges, LinkError, LinkOptions, QueueSize, WanSpec, wan_name};
use haul_units::{BitRate, Ratio, Span, part};

use super::{bench, constant, decode, list, run};

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
    /// What is in captured packets of one's own connections
    Decode(decode::DecodeArgs),
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
    ///
    /// What is not given stays as it is; the defaults are those of `up`.
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
    Emulate(EmulateArgs),
}

/// The properties of a link; what is not given keeps its default, or its value with `set`.
#[derive(Debug, Args, Clone, Default)]
pub struct LinkArgs {
    /// Rate of IP bytes, from a to b and back [default: 10G]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<BitRate>,
    /// Another rate from b to a
    #[arg(long, value_name = "RATE")]
    pub asymmetric: Option<BitRate>,
    /// Round-trip time without queues; each direction takes half [default: 100ms]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<Span>,
    /// Delay on top in each direction, wandering between zero and this
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<Span>,
    /// Queue of each direction: bandwidth-delay products, bytes or time [default: 1bdp]
    #[arg(long, value_name = "SIZE")]
    pub queue: Option<QueueSize>,
    /// Packets lost in each direction
    #[arg(long, value_name = "RATIO", value_parser = part)]
    pub loss: Option<Ratio>,
    /// Lose them in bursts of this mean length (Gilbert-Elliott); 1 is back to one by one
    #[arg(long, value_name = "PACKETS")]
    pub burst_loss: Option<f64>,
    /// Packets that arrive later than those sent after them
    #[arg(long, value_name = "RATIO", value_parser = part)]
    pub reorder: Option<Ratio>,
    /// By how much later [default: 1ms]
    #[arg(long, value_name = "TIME")]
    pub reorder_by: Option<Span>,
    /// Packets that arrive twice
    #[arg(long, value_name = "RATIO", value_parser = part)]
    pub duplicate: Option<Ratio>,
    /// Packets that arrive with other bytes; their checksum tells
    #[arg(long, value_name = "RATIO", value_parser = part)]
    pub corrupt: Option<Ratio>,
    /// Mark packets (ECN) that find more than this in the queue
    #[arg(long, value_name = "SIZE")]
    pub ecn: Option<QueueSize>,
    /// Seed of all chance [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// What is fixed once a WAN is up.
#[derive(Debug, Args, Clone, Default)]
pub struct ShapeArgs {
    /// Hosts on side a and on side b: a1, a2, .. and b1, b2, .. [default: 1:1]
    #[arg(long, value_name = "A:B")]
    pub hosts: Option<Hosts>,
    /// Rates at which a1, a2, .. send, as behind lines of their own before the link; `x` repeats one
    #[arg(long, value_name = "RATE[xN],..", value_delimiter = ',')]
    pub access: Vec<Access>,
    /// Links between the sides, each with a queue and a network of its own [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub links: Option<u8>,
    /// Another link beside these, with a network of its own: its rate, round-trip time and perhaps queue, all else as theirs; may be given several times, 16 links in all
    #[arg(long, value_name = "RATE,RTT[,QUEUE]")]
    pub beside: Vec<Beside>,
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
    #[arg(long, value_name = "NAME", value_parser = wan_name)]
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
}

/// For whoever looks at the list of processes; what the WAN is like, the emulator is told by whoever starts it.
#[derive(Debug, Args)]
pub struct EmulateArgs {
    #[command(flatten)]
    pub name: NameArgs,
    /// Accepted and not looked at: what is typed by hand is refused for what it is.
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
    /// With --model, two links for each algorithm: half a minute
    #[arg(long, requires = "model")]
    pub quick: bool,
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

impl NameArgs {
    /// The name that was given, or is meant where none is.
    pub fn wan(&self) -> String {
        let inherited = || env::var("HAUL_LAB_NAME").ok().filter(|name| !name.is_empty());
        self.name.clone().or_else(inherited).unwrap_or_else(|| DEFAULT_NAME.to_owned())
    }
}

impl LinkArgs {
    /// What was given.
    pub fn changes(&self) -> LinkChanges {
        let time = |given: Option<Span>| given.map(|Span(time)| time);
        LinkChanges {
            rate: self.rate,
            back_rate: self.asymmetric,
            rtt: time(self.rtt),
            jitter: time(self.jitter),
            queue: self.queue,
            loss: self.loss,
            burst_loss: self.burst_loss,
            reorder: self.reorder,
            reorder_by: time(self.reorder_by),
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            ecn: self.ecn,
            seed: self.seed,
        }
    }

    /// A link of these properties.
    pub fn link(&self) -> Result<LinkOptions, LinkError> {
        self.changes().apply(&LinkOptions::default())
    }
}

/// A WAN of these properties.
pub fn spec(link: &LinkArgs, shape: &ShapeArgs) -> Result<WanSpec, LinkError> {
    let default = WanSpec::default();
    let hosts = shape.hosts.map_or(default.hosts, |Hosts(counts)| counts);
    let access: Vec<_> = shape.access.iter().flat_map(|access| std::iter::repeat_n(access.rate, access.hosts.into())).collect();
    if access.len() > usize::from(hosts[0]) {
        return Err(LinkError::MoreLinesThanHosts { lines: access.len(), hosts: hosts[0] });
    }
    let (link, links) = (link.link()?, shape.links.unwrap_or(default.links));
    let beside: Vec<LinkOptions> = shape.beside.iter().map(|beside| beside.link(&link)).collect();
    beside.iter().try_for_each(LinkOptions::check)?;
    let count = usize::from(links) + beside.len();
    if count > LINKS_MOST {
        return Err(LinkError::TooMany { count, most: LINKS_MOST });
    }
    let (mtu, tcp) = (shape.mtu.unwrap_or(default.mtu), shape.tcp.clone());
    Ok(WanSpec { link, links, beside, hosts, access, mtu, tcp, ..default })
}

/// Their networks have a number each.
const LINKS_MOST: usize = 16;

/// Of a WAN that nobody has named.
pub const DEFAULT_NAME: &str = "wan";

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
HAUL_LAB_NAME, and for each host HAUL_LAB_A (the name), HAUL_LAB_A_ADDRESS and HAUL_LAB_A_ADDRESS6, likewise for B, or A1, A2, .. where there are several. Its exit status is passed on. When it ends, or this program does, by any signal, every process on the hosts is killed.

Example:
  haul lab wan run --rate 1G --rtt 100ms -- haul lab wan exec a -- ping -c 3 10.80.128.1";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_link_is_what_was_given() {
        let args = LinkArgs {
            rate: "1G".parse().ok(),
            asymmetric: "100M".parse().ok(),
            rtt: "20ms".parse().ok(),
            loss: "0.1%".parse().ok(),
            queue: "0.5bdp".parse().ok(),
            burst_loss: "8".parse().ok(),
            ecn: "0.1bdp".parse().ok(),
            ..LinkArgs::default()
        };
        let options = args.link().expect("sound");
        assert_eq!((options.rate, options.back_rate), (BitRate::gbps(1), Some(BitRate::mbps(100))));
        assert_eq!((options.queue, options.ecn), (QueueSize::Bdp(0.5), Some(QueueSize::Bdp(0.1))));
        assert_eq!((options.loss, options.burst_loss, options.rtt), (Ratio::percent(0.1), Some(8.0), Duration::from_millis(20)));
        assert_eq!(LinkArgs::default().changes(), LinkChanges::default());
    }

    #[test]
    fn hosts_have_lines_of_their_own() {
        let access = vec!["1Gx2".parse().unwrap(), "100M".parse().unwrap()];
        let shape = |hosts| ShapeArgs { access: access.clone(), hosts: Some(Hosts([hosts, 1])), ..ShapeArgs::default() };
        let made = spec(&LinkArgs::default(), &shape(4)).unwrap();
        assert_eq!(made.access, [BitRate::gbps(1), BitRate::gbps(1), BitRate::mbps(100)]);
        assert_eq!(spec(&LinkArgs::default(), &shape(2)), Err(LinkError::MoreLinesThanHosts { lines: 3, hosts: 2 }));
    }

    #[test]
    fn links_may_be_unlike() {
        let slow: Beside = "1M,40ms,1s".parse().unwrap();
        let shape = |count| ShapeArgs { beside: vec![slow; count], links: Some(2), ..ShapeArgs::default() };
        let made = spec(&LinkArgs::default(), &shape(1)).unwrap();
        let rates = [0, 1, 2].map(|link| made.options_of(link).rate);
        assert_eq!((made.count(), rates), (3, [BitRate::gbps(10), BitRate::gbps(10), BitRate::mbps(1)]));
        let seeds = [0, 1, 2].map(|link| made.options_of(link).seed);
        assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
        assert_eq!(spec(&LinkArgs::default(), &shape(15)), Err(LinkError::TooMany { count: 17, most: 16 }));
    }

    #[test]
    fn refuses_what_makes_no_link() {
        for args in [
            LinkArgs { rate: "0".parse().ok(), ..LinkArgs::default() },
            LinkArgs { rtt: "2min".parse().ok(), ..LinkArgs::default() },
            LinkArgs { burst_loss: "0.5".parse().ok(), ..LinkArgs::default() },
        ] {
            assert!(args.link().is_err(), "{args:?}");
        }
    }
}
