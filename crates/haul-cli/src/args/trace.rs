//! Arguments of `haul trace`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// What connections did, from a trace that HAUL_TRACE wrote
///
/// Prints a line for each connection: how long it lasted, its congestion control, the smallest round-trip time, what it sent and received, what was lost, and how long it was in which
/// phase. With --out it draws one, or writes all of them as qlog.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TraceArgs {
    /// The trace; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Write it as what the name ends with: .svg or .png a picture of rate, delay, bytes under way and loss, with the phases behind them; .qlog for viewers of QUIC's logs
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// The connection to draw; without it the one that carried most
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

const AFTER_HELP: &str = "\
Examples:
  HAUL_TRACE=near.jsonl haul cp big host:
  haul trace near.jsonl                   a line for each connection
  haul trace near.jsonl -o near.svg       a picture of the one that carried most
  haul trace near.jsonl -o near.qlog      all of them, for viewers

Exit status: 0 done, 2 wrong usage or failure.";
