//! What came out: of one tool's turn, of a row, of a grid.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

use super::plan::{Path, Row};
use super::quantities;
use super::series::Series;
use super::tool::Tool;

/// One turn of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Who.
    pub tool: Tool,
    /// Which turn, from 0.
    pub turn: u32,
    /// Where.
    pub path: Path,
    /// How it ended.
    pub outcome: Outcome,
    /// How long: of work in memory at the receiver, of files what the whole command took.
    #[serde(with = "quantities::seconds", rename = "time_s")]
    pub time: Duration,
    /// Payload that arrived in that time.
    #[serde(with = "quantities::bytes", rename = "bytes")]
    pub bytes: Bytes,
    /// Over the whole time, the start included.
    #[serde(with = "quantities::bits_per_second", rename = "mean_bps")]
    pub mean: BitRate,
    /// Over the second half of the time; where the tool tells no intervals, not known.
    #[serde(with = "quantities::bits_per_second::option", rename = "second_half_bps")]
    pub second_half: Option<BitRate>,
    /// Until 80 % of what the link carries arrived for a round trip.
    #[serde(with = "quantities::seconds::option", rename = "startup_s")]
    pub startup: Option<Duration>,
    /// What arrived when; empty where the tool does not tell.
    pub series: Series,
    /// What the sender used of the machine.
    pub sender: Usage,
    /// What the receiver used of the machine.
    pub receiver: Usage,
    /// How the tool was set up: command lines and buffers, for people.
    pub settings: String,
    /// Where the time went, in seconds by the names of `haul cp --trace`; empty where the tool does not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts_s: BTreeMap<String, f64>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All done, and right where that can be seen.
    Done,
    /// It was still at work when its time was over; what had arrived by then is told.
    GaveUp,
    /// It is not installed: what is missing, and what to do.
    Skipped(String),
    /// It failed: why.
    Failed(String),
}

/// What one side used.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time, in the kernel too, of the process and those it waited for.
    #[serde(with = "quantities::seconds::option", rename = "cpu_s")]
    pub cpu: Option<Duration>,
    /// Largest memory of one process.
    #[serde(with = "quantities::bytes::option", rename = "memory_bytes")]
    pub memory: Option<Bytes>,
}

/// A row and its measurements, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowResults {
    /// What was measured.
    pub row: Row,
    /// What came out.
    pub measurements: Vec<Measurement>,
}

/// Everything that came out of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The grid's name.
    pub name: String,
    /// Facts of the machine and of the tools, by name: `cpu`, `kernel`, `date`, ..
    pub facts: BTreeMap<String, String>,
    /// Row by row.
    pub rows: Vec<RowResults>,
}

impl Measurement {
    /// Whether its figures count.
    pub const fn counts(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::GaveUp)
    }

    /// Whether it did all of its work.
    pub fn done(&self) -> bool {
        self.outcome == Outcome::Done
    }
}

impl RowResults {
    /// The turns of a tool on the row's own path that count.
    pub fn of(&self, tool: Tool) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(move |found| found.tool == tool && found.path == self.row.path && found.counts())
    }

    /// Mean over the turns of a tool of some rate; nothing if no turn counts.
    pub fn mean_of(&self, tool: Tool, rate: impl Fn(&Measurement) -> Option<BitRate>) -> Option<BitRate> {
        let rates: Vec<u64> = self.of(tool).filter_map(rate).map(BitRate::as_bps).collect();
        let count = rates.len() as u64;
        (count > 0).then(|| BitRate::from_bps(rates.iter().sum::<u64>() / count))
    }
}
