//! Arguments of `haul fleet`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use haul::{ControllerChoice, TransportConfig};
use haul_fleet::Way;
use haul_peer::Moment;
use haul_units::{BitRate, Bytes};

use super::cp::mode_help;
use super::mode::ModeParser;
use super::{FileArgs, Limit, PortRange, SilenceArgs, SshArgs};

/// Copy from and to many storage servers at once
///
/// One job, many servers: `get` takes files that lie spread over them, or in replicas, each from wherever it comes soonest; a large file comes from all servers that have it, in ranges. `put` spreads
/// files over them. A server that is slow gets less to do, one that dies loses its work to the others, and the same command goes on where an interrupted one stopped.
///
/// The servers need no catalogue and no daemon: `haul` must be installed there, and ssh must reach them. A file with the same name below the source, the same size and the same
/// modification time on two servers is a replica; two contents under one name are an error that names both servers.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct FleetArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    Get(Box<FleetGetArgs>),
    Put(Box<FleetPutArgs>),
    Up(Box<FleetUpArgs>),
    Down(FleetDownArgs),
    List(FleetListArgs),
    Status(Box<FleetStatusArgs>),
    Report(FleetReportArgs),
}

/// Copy from the servers to this machine
///
/// SOURCE is a path on the servers; relative ones begin at the home directory there. Each server gives what it has of it.
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet get [OPTIONS] <-H HOSTS|--name NAME> SOURCE... TARGET", after_help = AFTER_HELP)]
pub struct FleetGetArgs {
    /// What to copy (one or more), then the directory or file here
    #[arg(value_names = ["SOURCE", "TARGET"], num_args = 2.., required = true, value_hint = clap::ValueHint::AnyPath)]
    pub operands: Vec<OsString>,
    /// How work is dealt out
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = GetPolicyArg::Dynamic, hide_default_value = true)]
    pub policy: GetPolicyArg,
    /// When files of one name on several servers are replicas
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ReplicasByArg::Time, hide_default_value = true)]
    pub replicas_by: ReplicasByArg,
    /// Wait until all servers have said what they have: two contents under one name are then found before anything is written. Else files come from the first server that has said it,
    /// while others are still on their way
    #[arg(long)]
    pub wait_for_all: bool,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Copy from this machine to the servers, spread over them
///
/// TARGET is a directory on the servers, made where its parent is there; a relative path begins at the home directory. Directories are made on all servers, each file on as many as there are to be replicas. `any:NAME` leaves it to each server where NAME is to be.
/// What a server has already, with the same size and modification time, counts after an interrupted job and with --update or --skip-same.
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet put [OPTIONS] <-H HOSTS|--name NAME> SOURCE... TARGET", after_help = AFTER_HELP)]
pub struct FleetPutArgs {
    /// What to copy (one or more), then where to on the servers
    #[arg(value_names = ["SOURCE", "TARGET"], num_args = 2.., required = true, value_hint = clap::ValueHint::AnyPath)]
    pub operands: Vec<OsString>,
    /// On how many servers each file is to be
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub replicas: u8,
    /// Which server gets which file
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = PutPolicyArg::Dynamic, hide_default_value = true)]
    pub policy: PutPolicyArg,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Start servers that stay up for many jobs
///
/// Logs in once; `haul fleet get --name`, `put --name` and `status --name` then begin at once, one after another or at the same time, from any program of this user on this machine. A process in the background keeps the servers, until
/// `haul fleet down` or its end by a signal; they end with it. It answers on a socket that only this user (and root) can use.
///
/// A server that dies while it rests is started again before the next job, if it can be. As nobody can answer questions later, logins must need none.
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet up [OPTIONS] --name NAME -H HOSTS")]
pub struct FleetUpArgs {
    /// What the fleet is called: letters, digits, `.`, `_`, `-`
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Stay in the foreground, for a service manager
    #[arg(long)]
    pub foreground: bool,
    /// Where the background process writes what happens [default: NAME.log beside its socket]
    #[arg(long, value_name = "FILE", conflicts_with = "foreground", value_hint = clap::ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    /// Print events as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Started by `up` itself, which waits for its word on standard output
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub in_background: bool,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// End the servers that `up` has started
///
/// Jobs that are under way find their servers gone; what has arrived is kept.
#[derive(Debug, Args)]
pub struct FleetDownArgs {
    /// What the fleet is called
    #[arg(long, value_name = "NAME")]
    pub name: String,
}

/// Show which fleets are up
#[derive(Debug, Args)]
pub struct FleetListArgs {
    /// Print one line of JSON for each on standard output
    #[arg(long)]
    pub json: bool,
}

/// A fleet that is up.
#[derive(Debug, Args)]
#[command(next_help_heading = "Servers")]
pub struct KeptArgs {
    /// Those of a fleet that `haul fleet up` has started; how they are reached was said there, and so was --mode
    #[arg(long, value_name = "NAME", conflicts_with_all = ["hosts", "start", "launcher", "launcher_arg", "launcher_on", "call_back", "timeout", "dial_out", "udp_port", "state", "max_packet", "memory", "dead_after", "port", "identity", "jump", "config", "option", "ipv4", "ipv6", "program", "remote_haul", "transport"])]
    pub name: Option<String>,
}

/// Show how the servers are: load, memory, room, distance; of a fleet that is up, also what they do
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet status [OPTIONS] <-H HOSTS|--name NAME>")]
pub struct FleetStatusArgs {
    /// Print one line of JSON for each server on standard output
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Make tables, charts and a page of what `--log` has written
///
/// DIR is a directory that was given to --log, with the logs of one job or several, or the directory of a job in it: several jobs make a chart of the rate against the
/// number of servers. Tables go to standard output; `report.html`, which needs nothing else, the tables and the charts (SVG and PNG) go to the directory, or that which several DIRs are in.
#[derive(Debug, Args)]
pub struct FleetReportArgs {
    /// The logs
    #[arg(value_name = "DIR", required = true, value_hint = clap::ValueHint::DirPath)]
    pub dirs: Vec<PathBuf>,
    /// Where to write to [default: DIR, or what several are in]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Which servers, and how they are started.
#[derive(Debug, Args)]
#[command(next_help_heading = "Servers")]
pub struct HostsArgs {
    /// The servers: names with commas between them, `node[01-13,20]`, or `@FILE` with one on each line; as ssh knows them, or `haul://host[:port]`. Without it,
    /// those of the Slurm or PBS job that this runs in
    #[arg(short = 'H', long, value_name = "HOSTS")]
    pub hosts: Vec<OsString>,
    /// What the configuration file says that each brings at most, in their order.
    #[arg(skip)]
    pub limits: Vec<Option<BitRate>>,
    /// How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun`
    /// (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back
    #[arg(long, value_name = "WAY", default_value_t = Way::SshDirect, hide_default_value = true)]
    pub start: Way,
    /// The `mpirun` or `srun` to call, where it is not found by its name
    #[arg(long, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandName)]
    pub launcher: Option<OsString>,
    /// A word for `mpirun` or `srun` before haul's own; several times, several words
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub launcher_arg: Vec<OsString>,
    /// Call `mpirun` or `srun` on this host, by ssh, and not here
    #[arg(long, value_name = "[USER@]HOST", value_hint = clap::ValueHint::Hostname)]
    pub launcher_on: Option<OsString>,
    /// Address of this machine that the servers call, where it is not the one that it reaches them from; several times, several addresses
    #[arg(long, value_name = "ADDRESS", conflicts_with = "dial_out")]
    pub call_back: Vec<IpAddr>,
    /// Leave out a server that has not come up within so long, and go on with the others
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Have the servers wait for this machine to call them, where they cannot call it
    #[arg(long)]
    pub dial_out: bool,
    /// UDP port or ports for the data, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// The largest packet to send and to take, in bytes behind the UDP header; without it the largest that gets through is found, up to 8972
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=65507))]
    pub max_packet: Option<u16>,
    /// Memory of this machine for each connection, at most: for what has come and is not written, and for what was sent and is not acknowledged; 2 MiB (two blocks) and more [default: 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<Bytes>,
    /// Directory of the identity key and the known hosts, for haul:// servers
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// How to reach them.
    #[command(flatten)]
    pub ssh: SshArgs,
}

/// What a job is like, whichever way it goes.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// What becomes of files.
    #[command(flatten)]
    pub files: FileArgs,
    /// Limit the rate of all servers together; a bare number is in Kbit/s, as with scp
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// Limit the rate of each server
    #[arg(long, value_name = "LIMIT")]
    pub limit_each: Option<Limit>,
    /// Rest so long after each file, on each server; then a server has one file at a time
    #[arg(long, value_name = "TIME")]
    pub pause: Option<haul_units::Span>,
    /// Transfer nothing before this time
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<Moment>,
    #[arg(long, value_name = "MODE", value_parser = ModeParser, conflicts_with = "name", hide_possible_values = true, default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    /// Write what each server did, and when, into a new directory in this one: see haul-fleet-report(1)
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Say more; twice, and ssh says more too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print events as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Values of `get --policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GetPolicyArg {
    /// Servers get more to do when they have little left: ranges of files, from the fast ones more. The default
    Dynamic,
    /// Whole files, dealt to their holders in turn before anything is sent
    RoundRobin,
}

/// Values of `get --replicas-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReplicasByArg {
    /// Where size and modification time are equal. The default
    Time,
    /// Where the content is: of files whose sizes are equal and whose times differ, the servers compute BLAKE3 before anything is fetched
    Hash,
}

/// Values of `put --policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PutPolicyArg {
    /// The next file goes to a server that has little left to take. The default
    Dynamic,
    /// Files go to the servers in turn
    RoundRobin,
    /// More files go to where there is more room
    Space,
}

impl JobArgs {
    /// The rest after each file.
    pub fn pause(&self) -> Duration {
        self.pause.map(|pause| pause.0).unwrap_or_default()
    }

    /// What is asked of each server at most.
    pub fn limit_each(&self) -> Option<BitRate> {
        self.limit_each.map(|limit| limit.0)
    }

    /// How long to wait before the first transfer.
    pub fn start_after(&self) -> Duration {
        self.start_at.map(|at| at.since(Moment::now())).unwrap_or_default()
    }
}

/// One block of content is written while another one comes.
const LEAST_MEMORY: Bytes = Bytes::mib(2);

fn memory(text: &str) -> Result<Bytes, String> {
    let memory: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if memory < LEAST_MEMORY { Err(format!("at least {LEAST_MEMORY} are needed")) } else { Ok(memory) }
}

impl HostsArgs {
    /// How connections to them behave, but for the mode.
    pub fn transport(&self) -> TransportConfig {
        let usual = TransportConfig { idle_timeout: self.silence.timeout(), ..TransportConfig::default() };
        let (max_packet, memory) = (self.max_packet.unwrap_or(usual.max_packet), self.memory.unwrap_or(usual.memory));
        TransportConfig { max_packet, memory, ..usual }
    }

    /// How long a server may take to come up.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

const AFTER_HELP: &str = "\
Examples:
  haul fleet get -H 'store[01-13]' -r data/run7 .          a data set that lies spread over 13 servers
  haul fleet get -H a,b,c big.h5 /scratch/                 one file from its three replicas
  haul fleet put -H a,b,c -r results archive/ --replicas 2 each file on two of three servers
  haul fleet up --name store -H 'store[01-13]'             log in once; then get, put and status with --name store

Exit status: 0 all copied and verified as asked, 1 some files were not, 2 wrong usage or failure, 130 interrupted.";

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        hosts: HostsArgs,
    }

    #[test]
    fn words_of_the_transport_are_what_connections_get() {
        let line = |words: &[&str]| <Line as clap::Parser>::try_parse_from([&["haul"], words].concat());
        let transport = |words: &[&str]| line(words).expect("sound").hosts.transport();
        let (usual, told) = (transport(&[]), transport(&["--max-packet", "1472", "--memory", "64M", "--dead-after", "30"]));
        let defaults = TransportConfig::default();
        assert_eq!((usual.max_packet, usual.memory), (defaults.max_packet, defaults.memory));
        assert_eq!((told.max_packet, told.memory, told.idle_timeout), (1472, Bytes::mib(64), Duration::from_secs(30)));
        for wrong in [["--max-packet", "1199"], ["--max-packet", "65508"], ["--memory", "1M"], ["--memory", "much"]] {
            assert!(line(&wrong).is_err(), "{wrong:?}");
        }
        assert!(line(&["--memory", "1M"]).expect_err("too little").to_string().contains("at least 2.00 MiB are needed"));
    }
}
