//! Arguments of `haul lab bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haul_bench::bench::{Effort, FileSet, GoalSet, Grid, Kind, Path, Tool, Work, goals};
use haul_lab::{LinkOptions, QueueSize};
use haul_units::{BitRate, Bytes, Ratio, Span, part};

/// Measure haul beside other tools
///
/// Every combination of the rates, round-trip times and losses is a row. The tools of a row take turns, each over a WAN made for it alone; what
/// counts is what arrives.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Rates of the links
    #[arg(long, value_name = "RATE,..", value_delimiter = ',', default_value = "1G")]
    pub rate: Vec<BitRate>,
    /// Round-trip times
    #[arg(long, value_name = "TIME,..", value_delimiter = ',', default_value = "100ms")]
    pub rtt: Vec<Span>,
    /// Packets lost in each direction
    #[arg(long, value_name = "RATIO,..", value_delimiter = ',', default_value = "0", value_parser = part)]
    pub loss: Vec<Ratio>,
    /// Queue of each direction: bandwidth-delay products, bytes or time
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    pub queue: QueueSize,
    /// Who takes part; by default everybody who can do the work
    #[arg(long, value_name = "TOOL,..", value_delimiter = ',')]
    pub tools: Vec<Tool>,
    /// How long each measurement in memory takes, or at most takes with --bytes [default: 10, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,
    /// Move this much in memory, and measure how long it takes
    #[arg(long, value_name = "SIZE", conflicts_with = "files")]
    pub bytes: Option<Bytes>,
    /// Copy files from RAM disk to RAM disk: their number and size, for instance 1x1GB or 2000x8KiB
    #[arg(long, value_name = "COUNTxSIZE", value_parser = file_set)]
    pub files: Option<FileSet>,
    /// How many turns each tool has in each row
    #[arg(long, value_name = "TURNS", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Measure the rows of the project's goals instead
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["rate", "rtt", "loss", "queue", "bytes", "files", "seconds"])]
    pub goals: Option<Goals>,
    /// Less time for each measurement of the goals, and a single turn
    #[arg(long, requires = "goals")]
    pub quick: bool,
    /// Directory of the results [default: bench/results/DATE-NAME in a checkout of haul, haul-bench-DATE elsewhere]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the results as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Files of the bench, made or checked where the disk of an emulator can be seen
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// What to do with them
    pub what: FilesCommand,
    /// Directory
    pub root: PathBuf,
    #[arg(long)]
    pub count: u32,
    #[arg(long)]
    pub size: u64,
    #[arg(long)]
    pub seed: u64,
}

/// What to do with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FilesCommand {
    /// Make them
    Make,
    /// Compare them with what was made
    Check,
}

/// Which goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Goals {
    /// Memory to memory, one connection
    Memory,
    /// Files from RAM disk to RAM disk, logging in included
    Files,
    /// Files where a firewall drops UDP: haul over TCP and through ssh beside scp and mscp
    Carriers,
}

/// What is to be measured.
pub fn grid(args: &BenchArgs) -> Result<Grid, String> {
    if let Some(which) = args.goals {
        let which = match which {
            Goals::Memory => GoalSet::Memory,
            Goals::Files => GoalSet::Files,
            Goals::Carriers => GoalSet::Carriers,
        };
        let (effort, repeat) = if args.quick { (Effort::Quick, 1) } else { (Effort::Full, args.repeat) };
        return Ok(goals(which, effort, &args.tools, repeat));
    }
    let work = work(args);
    let tools = if args.tools.is_empty() { Tool::usual(work.kind()).collect() } else { args.tools.clone() };
    if let Some(tool) = tools.iter().find(|tool| tool.kind() != work.kind()) {
        let (can, option) = if tool.kind() == Kind::Files {
            ("copies files", "--files")
        } else {
            ("moves bytes in memory", "--seconds or --bytes")
        };
        return Err(format!("{tool} only {can}: ask for that with {option}"));
    }
    if args.rate.contains(&BitRate::ZERO) {
        return Err("nothing would ever arrive at a rate of zero".to_owned());
    }
    let mut paths = Vec::new();
    for &rate in &args.rate {
        for rtt in &args.rtt {
            for &loss in &args.loss {
                paths.push(Path::Wan(LinkOptions { rate, rtt: rtt.0, loss, queue: args.queue, ..LinkOptions::default() }));
            }
        }
    }
    Ok(Grid::over("bench", paths, &work, &tools, args.repeat))
}

fn work(args: &BenchArgs) -> Work {
    let seconds = |default: u32| Duration::from_secs(u64::from(args.seconds.unwrap_or(default)));
    match (args.bytes, args.files) {
        (Some(bytes), _) => Work::Bytes { bytes, at_most: seconds(60) },
        (_, Some(files)) => Work::Files { files, at_most: seconds(60) },
        _ => Work::Time(seconds(10)),
    }
}

fn file_set(text: &str) -> Result<FileSet, String> {
    let wanted = || format!("`{text}` is no number and size of files: write for instance 1x1GB or 2000x8KiB");
    let (count, size) = text.split_once('x').ok_or_else(wanted)?;
    let (count, size) = (count.parse().map_err(|_| wanted())?, size.parse().map_err(|_| wanted())?);
    if count == 0 || count > MOST_FILES { Err(wanted()) } else { Ok(FileSet { count, size }) }
}

/// More do not fit into most memories.
const MOST_FILES: u32 = 10_000_000;

pub const AFTER_HELP: &str = "\
Tools, memory to memory: haul (haul-quickstart, haul-modest, haul-aggressive), cubic, bbr, reno (TCP by iperf3), udt, srt, quic-cubic, quic-bbr (quinn).
Tools that copy files: haul-cp (haul-cp-again: quickstart, the second time; haul-cp-tcp, haul-cp-ssh: without UDP), scp, mscp, rsync, tar, sftp (over ssh), gridftp, gridftp-bbr (parallel streams in clear text, no login).
What is not installed is skipped, and the table says what to install; scripts/setup-bench.sh installs and builds everything.

Examples:
  haul lab bench --rate 1G --rtt 10ms,100ms --loss 0,0.1%,1% --tools haul,cubic,bbr --seconds 20
  haul lab bench --rate 1G --rtt 100ms --files 1x1GB
  haul lab bench --goals memory";
