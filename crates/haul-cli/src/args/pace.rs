//! Arguments of `haul pace`.

use std::ffi::OsString;
use std::str::FromStr;

use clap::{Args, Subcommand};
use haul_units::{BitRate, Network};

/// Even distances between the packets of programs that know nothing of haul
///
/// Runs CMD, and holds its TCP connections, and those of what it starts, to a rate: all of them together, those that send in equal parts, whatever their congestion control. The kernel's TCP
/// spaces their packets by its own timer. With --follow the rate is TCP's own estimate, a window each round trip. With --queue UDP and all else is held too. As root.
///
/// A rate counts what a line carries: headers, and what Ethernet adds.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, override_usage = "haul pace [OPTIONS] -- CMD...\n       haul pace on [OPTIONS]\n       haul pace off\n       haul pace status [--json]", after_help = AFTER_HELP)]
pub struct PaceArgs {
    /// What else to do.
    #[command(subcommand)]
    pub command: Option<PaceCommand>,
    #[command(flatten)]
    pub classes: ClassArgs,
    #[command(flatten)]
    pub gaps: GapArgs,
    /// The program with its arguments
    #[arg(last = true, value_name = "CMD")]
    pub program: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  sudo haul pace --rate 930M -- rsync -a data far:/data
  sudo haul pace --follow -- iperf3 -c far
  sudo haul pace --rate 200M --queue eth0 -- iperf3 -u -b 0 -c far
  sudo haul pace on --to 10.1.0.0/16=200M --to 10.2.0.0/16=2G
  sudo haul pace --gaps eth0 --rate 500M --to 10.1.0.7 -- iperf3 -u -b 0 -c 10.1.0.7
  sudo haul pace --gaps eth0 --follow --to 10.1.0.7 -- iperf3 -c 10.1.0.7";

/// Who is held to what.
#[derive(Debug, Args)]
pub struct ClassArgs {
    /// The rate of each class that has none of its own
    #[arg(long, value_name = "RATE")]
    pub rate: Option<BitRate>,
    /// Not more than a window each round trip. With --gaps the rate is all of TCP's windows there together
    #[arg(long)]
    pub follow: bool,
    /// Connections to and from this network are a class, with a rate of its own perhaps; may be given several times, and then others are left alone
    #[arg(long, value_name = "NET[=RATE]")]
    pub to: Vec<ClassArg>,
    /// Hold UDP and all else too, where it leaves through this interface: in a queue there (by `tc`), in the place of the kernel's default, which comes back at the end
    #[arg(long, value_name = "INTERFACE", conflicts_with = "follow")]
    pub queue: Option<String>,
    /// What holds packets in that queue
    #[arg(long, value_name = "WAY", requires = "queue")]
    pub queue_by: Option<QueueBy>,
}

/// What holds packets in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum QueueBy {
    /// fq where the kernel has it, else htb (the default)
    Auto,
    /// A departure time for each packet
    Fq,
    /// A class of HTB for each of these
    Htb,
}

/// `10.1.0.0/16=200M`.
#[derive(Debug, Clone, Copy)]
pub struct ClassArg {
    /// Where to.
    pub to: Network,
    /// Its own rate.
    pub rate: Option<BitRate>,
}

impl FromStr for ClassArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (to, rate) = text.split_once('=').map_or((text, None), |(to, rate)| (to, Some(rate)));
        let rate = rate.map(|rate| rate.parse::<BitRate>().map_err(|error| error.to_string())).transpose()?;
        Ok(Self { to: Network::exact(to).map_err(|error| error.to_string())?, rate })
    }
}

/// How packets are spaced exactly.
#[derive(Debug, Args)]
pub struct GapArgs {
    /// Fill the gaps with PAUSE frames that the next switch drops: exact to the byte, any protocol. What leaves through this Ethernet interface for the networks of --to is
    /// spaced while CMD runs, whoever sends it
    #[arg(long, value_name = "INTERFACE", requires = "to", conflicts_with = "queue")]
    pub gaps: Option<String>,
    /// What the line of that interface carries, where it does not say so itself
    #[arg(long, value_name = "RATE", requires = "gaps")]
    pub line: Option<BitRate>,
}

/// What else to do.
#[derive(Debug, Subcommand)]
pub enum PaceCommand {
    /// Hold all TCP connections that open from now on to these rates, until `haul pace off` or a restart of the machine
    On {
        #[command(flatten)]
        classes: ClassArgs,
    },
    /// Take the rates back; connections that are open keep theirs
    Off,
    /// Show what is on, and how many connections have it
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
