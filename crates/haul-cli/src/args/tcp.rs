//! Arguments of `haul tcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haul_tcp::Choice;
use haul_units::{BitRate, Network};

/// Congestion control for the kernel's own TCP: programs that know nothing of haul use it
///
/// Modes and algorithms are programs that the kernel runs as congestion control of its TCP. They work for the end that sends: a download needs them at the server. As root,
/// on Linux 6.10 or newer.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TcpArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TcpCommand,
}

const AFTER_HELP: &str = "\
Modes: fair (for all connections alike, blind to random loss), quickstart (as fair, and starts with what it remembers of the peer's path), modest (short queues, gives way), aggressive (as much as can be had).

Algorithms: fast, highspeed, scalable, bic, westwood; and those that the kernel has: reno (also called standard), cubic, bbr.

For Multipath TCP: lia, olia, balia. The subflows of a connection grow together, so that on a link that they share they take what one flow takes.";

/// What to do with the kernel's TCP.
#[derive(Debug, Subcommand)]
pub enum TcpCommand {
    /// Give new connections a mode or an algorithm
    ///
    /// Without an option all of this network namespace (its default); with --to those to and from a network (by the congestion control of its route, or, where it has no
    /// route of its own, by a program at the root of the cgroups); with --cgroup those of the programs in it. Stays in force until `haul tcp off` or a restart of the machine.
    On {
        /// Mode or algorithm: fair, quickstart, modest, aggressive, or one that `haul tcp --help` names
        #[arg(value_name = "MODE")]
        mode: Choice,
        /// For which connections.
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Put back what was there: everything, or what was done for these connections
    ///
    /// Connections that are open keep what they have. What somebody else has changed since then stays.
    Off {
        /// For which connections.
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Show what is loaded, who gets what and how, and each connection with what is known of its path
    Status {
        /// Connections of this network namespace
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the connections again and again
    Watch {
        /// Connections of this network namespace
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// Seconds between two looks
        #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
    /// Change a setting while connections live; without one, show all
    Set {
        /// What to set
        #[arg(value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Give connections that are open another mode or algorithm
    Switch {
        /// Mode or algorithm: fair, quickstart, modest, aggressive, or one that `haul tcp --help` names
        #[arg(value_name = "MODE")]
        mode: Choice,
        /// Connections to and from this network; may be given several times; without it all
        #[arg(long, value_name = "NET", value_parser = Network::exact)]
        to: Vec<Network>,
        /// Of this network namespace
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Run a program whose connections, and those of what it starts, have a mode or an algorithm
    Run {
        /// Mode or algorithm: fair, quickstart, modest, aggressive, or one that `haul tcp --help` names
        #[arg(long, value_name = "MODE")]
        mode: Choice,
        /// The program with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
        command: Vec<std::ffi::OsString>,
    },
    /// Show what new connections get where nothing narrower says, or set it
    Default {
        /// Mode or algorithm; the same as `haul tcp on MODE`
        #[arg(value_name = "MODE")]
        mode: Option<Choice>,
        /// Of this network namespace
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Have what is on now switched on at each start of the machine, by a systemd unit
    Install {
        /// Print the unit and change nothing
        #[arg(long)]
        print: bool,
        /// Take the unit away
        #[arg(long, conflicts_with = "print")]
        remove: bool,
    },
    /// Say what the path to a host needs of this machine's buffers
    Check {
        /// The other end
        #[arg(value_name = "HOST")]
        host: String,
        /// Port to measure the round-trip time by; one that refuses will do
        #[arg(long, value_name = "PORT", default_value_t = 22)]
        port: u16,
        /// The rate to be reached
        #[arg(long, value_name = "RATE", default_value = "1G")]
        rate: BitRate,
    },
}

/// Whose connections.
#[derive(Debug, Args, Default)]
pub struct ScopeArgs {
    /// Connections to and from this network, as 10.1.0.0/16, or host; may be given several times
    #[arg(long, value_name = "NET", value_parser = Network::exact)]
    pub to: Vec<Network>,
    /// Of this network namespace, by its name for `ip netns`
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Of the programs in this directory of the cgroup2 file system
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
}
