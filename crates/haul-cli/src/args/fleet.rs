//! Arguments of `haul fleet`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use haul_cc::ControllerChoice;
use haul_fleet::Way;
use haul_peer::Moment;

use super::cp::mode_help;
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
    Status(Box<FleetStatusArgs>),
    Report(FleetReportArgs),
}

/// Copy from the servers to this machine
///
/// SOURCE is a path on the servers; relative ones begin at the home directory there. Each server gives what it has of it.
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet get [OPTIONS] -H HOSTS SOURCE... TARGET", after_help = AFTER_HELP)]
pub struct FleetGetArgs {
    /// What to copy (one or more), then the directory or file here
    #[arg(value_names = ["SOURCE", "TARGET"], num_args = 2.., required = true, value_hint = clap::ValueHint::AnyPath)]
    pub operands: Vec<OsString>,
    /// How work is dealt out
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = GetPolicyArg::Dynamic, hide_default_value = true)]
    pub policy: GetPolicyArg,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Copy from this machine to the servers, spread over them
///
/// TARGET is a directory on the servers, made where its parent is there; a relative path begins at the home directory. Directories are made on all servers, each file on as many as there are to be replicas.
/// What a server has already, with the same size and modification time, counts after an interrupted job and with --update or --skip-same.
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet put [OPTIONS] -H HOSTS SOURCE... TARGET", after_help = AFTER_HELP)]
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
    pub hosts: HostsArgs,
}

/// Show how the servers are: load, memory, room, distance
#[derive(Debug, Args)]
#[command(override_usage = "haul fleet status [OPTIONS] -H HOSTS")]
pub struct FleetStatusArgs {
    /// Print one line of JSON for each server on standard output
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Make tables, charts and a page of what `--log` has written
///
/// DIR is a directory that was given to --log, with the logs of one job or several: several make a chart of the rate against the number of servers. Tables go to
/// standard output; `report.html`, which needs nothing else, the tables and the charts (SVG and PNG) go to the directory.
#[derive(Debug, Args)]
pub struct FleetReportArgs {
    /// The logs
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Where to write to [default: DIR]
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
    /// How to start them: `ssh-direct` (this machine logs in to each; the default), `ssh` (it logs in to the first, and that one to the others), `mpirun`, `srun`
    /// (inside a Slurm job), `daemon` (they run already). Those of the middle three call this machine back
    #[arg(long, value_name = "WAY", default_value_t = Way::SshDirect, hide_default_value = true)]
    pub start: Way,
    /// Leave out a server that has not come up within so long, and go on with the others
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Have the servers wait for this machine to call them, where they cannot call it
    #[arg(long)]
    pub dial_out: bool,
    /// UDP port or ports for the data, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
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
    pub pause: Option<crate::lab::args::Span>,
    /// Transfer nothing before this time
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<Moment>,
    #[arg(long, value_name = "MODE", default_value_t, hide_default_value = true, help = mode_help())]
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

    /// How long to wait before the first transfer.
    pub fn start_after(&self) -> Duration {
        self.start_at.map(|at| at.since(Moment::now())).unwrap_or_default()
    }
}

impl HostsArgs {
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

Exit status: 0 all copied and verified as asked, 1 some files were not, 2 wrong usage or failure, 130 interrupted.";
