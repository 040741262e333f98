//! What is measured: paths, work, rows, grids.

use std::fmt;
use std::time::Duration;

use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_units::{BitRate, Bytes, Ratio};
use serde::{Deserialize, Serialize};

use super::quantities;
use super::tool::{Kind, Tool};

/// What lies between sender and receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPath", into = "StoredPath")]
pub enum Path {
    /// One host's loopback: no emulator.
    Loopback,
    /// The emulated WAN, with IP packets of 1500 bytes.
    Wan(LinkOptions),
}

/// What is moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// As many bytes as go, from memory to memory, in this time.
    Time(#[serde(with = "quantities::seconds")] Duration),
    /// This many bytes from memory to memory, given up after a time.
    Bytes {
        /// How many.
        #[serde(with = "quantities::bytes")]
        bytes: Bytes,
        /// When to give up.
        #[serde(with = "quantities::seconds", rename = "at_most_s")]
        at_most: Duration,
    },
    /// Files, from RAM disk to RAM disk, given up after a time.
    Files {
        /// Which.
        files: FileSet,
        /// When to give up.
        #[serde(with = "quantities::seconds", rename = "at_most_s")]
        at_most: Duration,
    },
}

/// Files of one size and random content. One is a file, more are a tree with 1000 in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileSet {
    /// How many.
    pub count: u32,
    /// Size of each.
    #[serde(with = "quantities::bytes", rename = "size_bytes")]
    pub size: Bytes,
}

/// A tool, on the row's path or on another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Which.
    pub tool: Tool,
    /// Another path than that of the row: what haul does here is compared with what this tool does there.
    pub elsewhere: Option<Path>,
}

/// Tools that do the same work on the same path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What a person calls it.
    pub name: String,
    /// Where.
    pub path: Path,
    /// What.
    pub work: Work,
    /// Who. Results that were recorded earlier call them otherwise.
    #[serde(alias = "contestants")]
    pub candidates: Vec<Candidate>,
    /// What haul is to reach.
    pub bars: Vec<Bar>,
}

/// What haul is to reach in a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bar {
    /// The mean over the second half, of what the link carries.
    SecondHalfOfLimit(#[serde(with = "quantities::fraction")] Ratio),
    /// The bytes of the work in at most so many times what the link needs for them, and so many round trips.
    TimesIdealAndRtts(f64, f64),
    /// The work in at most this time.
    Within(#[serde(with = "quantities::seconds")] Duration),
    /// The same, by one of haul's ways to do it.
    WithinBy(Tool, #[serde(with = "quantities::seconds")] Duration),
    /// The work in at most so many times what the fastest of the others needed.
    TimesBestOther(f64),
    /// The same, by one of haul's ways to do it.
    TimesBestOtherBy(Tool, f64),
    /// At least so many times the rate of a tool.
    TimesRateOf(Tool, f64),
    /// The start is over within so many round trips, in one of haul's modes.
    StartedWithin(Tool, f64),
    /// At most two bandwidth-delay products and 128 MiB of memory on each side.
    MemoryOfEachSide,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// What a person calls it; part of the name of the directory with its results.
    pub name: String,
    /// Row by row.
    pub rows: Vec<Row>,
    /// How many times each tool has its turn in each row.
    pub repeat: u32,
}

/// One measurement to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Place of its row in the grid.
    pub row: usize,
    /// Which turn, from 0.
    pub turn: u32,
    /// Who.
    pub tool: Tool,
    /// Where.
    pub path: Path,
    /// What.
    pub work: Work,
}

impl Path {
    /// The link, where there is one.
    pub const fn link(&self) -> Option<&LinkOptions> {
        match self {
            Self::Loopback => None,
            Self::Wan(link) => Some(link),
        }
    }

    /// Its round-trip time; zero on loopback.
    pub fn rtt(&self) -> Duration {
        self.link().map_or(Duration::ZERO, |link| link.rtt)
    }

    /// What it carries of haul's payload in packets of 1500 bytes, losses taken off: every tool's share is of this.
    pub fn limit(&self) -> Option<BitRate> {
        let link = self.link()?;
        Some(link.rate.scaled(f64::from(PAYLOAD_BYTES) / f64::from(PACKET_BYTES) * (1.0 - link.loss.as_f64())))
    }

    /// The WAN to make for it; the chance of losses is another one each turn.
    pub fn wan(&self, turn: u32) -> WanSpec {
        let link = self.link().cloned().unwrap_or_default();
        WanSpec { link: LinkOptions { seed: link.seed.wrapping_add(u64::from(turn) * 1000), ..link }, ..WanSpec::default() }
    }
}

/// An IP packet, and what remains of it without the headers of IP, UDP and haul (28 + 28) and haul's tag (16).
const PACKET_BYTES: u16 = 1500;
const PAYLOAD_BYTES: u16 = PACKET_BYTES - 28 - 28 - 16;

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Wan(link) = self else { return f.pad("loopback") };
        let loss = if link.loss > Ratio::ZERO { format!(", {} loss", link.loss) } else { String::new() };
        let queue = if link.queue == QueueSize::Bdp(1.0) { String::new() } else { format!(", queue {}", link.queue) };
        f.pad(&format!("{}, {} ms{loss}{queue}", link.rate, link.rtt.as_secs_f64() * 1e3))
    }
}

impl FileSet {
    /// All of them together.
    pub fn total(&self) -> Bytes {
        self.size * u64::from(self.count)
    }
}

impl fmt::Display for FileSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "a file of {}", self.size),
            count => write!(f, "{count} files of {}", self.size),
        }
    }
}

impl Work {
    /// What kind of tool can do it.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Time(_) | Self::Bytes { .. } => Kind::Memory,
            Self::Files { .. } => Kind::Files,
        }
    }

    /// How much there is to move, where that is known.
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Time(_) => None,
            Self::Bytes { bytes, .. } => Some(*bytes),
            Self::Files { files, .. } => Some(files.total()),
        }
    }

    /// The longest it may take.
    pub const fn at_most(&self) -> Duration {
        match self {
            Self::Time(time) => *time,
            Self::Bytes { at_most, .. } | Self::Files { at_most, .. } => *at_most,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{} s", time.as_secs_f64()),
            Self::Bytes { bytes, .. } => bytes.fmt(f),
            Self::Files { files, .. } => files.fmt(f),
        }
    }
}

impl Row {
    /// A row without a bar, named after its path.
    pub fn new(path: Path, work: Work, tools: &[Tool]) -> Self {
        let candidates = tools.iter().map(|&tool| Candidate { tool, elsewhere: None }).collect();
        Self { name: path.to_string(), path, work, candidates, bars: Vec::new() }
    }
}

impl Grid {
    /// Every path with the same work and tools.
    pub fn over(name: &str, paths: impl IntoIterator<Item = Path>, work: &Work, tools: &[Tool], repeat: u32) -> Self {
        let rows = paths.into_iter().map(|path| Row::new(path, work.clone(), tools)).collect();
        Self { name: name.to_owned(), rows, repeat }
    }

    /// The measurements in the order in which they are made: row by row, and within a row the tools take turns.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.rows.iter().enumerate().flat_map(move |(number, row)| (0..self.repeat).flat_map(move |turn| row.cells(number, turn)))
    }
}

impl Row {
    fn cells(&self, row: usize, turn: u32) -> impl Iterator<Item = Cell> {
        self.candidates.iter().map(move |candidate| Cell {
            row,
            turn,
            tool: candidate.tool,
            path: candidate.elsewhere.clone().unwrap_or_else(|| self.path.clone()),
            work: self.work.clone(),
        })
    }
}

/// How a path is stored: what the bench varies of it.
#[derive(Serialize, Deserialize)]
struct StoredPath {
    rate_bps: Option<u64>,
    rtt_s: f64,
    loss: f64,
    queue: String,
    burst_loss_pkts: Option<f64>,
    reorder: f64,
    seed: u64,
}

impl From<Path> for StoredPath {
    fn from(path: Path) -> Self {
        let rate_bps = path.link().map(|link| link.rate.as_bps());
        let link = path.link().cloned().unwrap_or_default();
        let rtt_s = if rate_bps.is_some() { link.rtt.as_secs_f64() } else { 0.0 };
        let queue = match link.queue {
            QueueSize::Bdp(factor) => format!("{factor}bdp"),
            QueueSize::Bytes(bytes) => bytes.0.to_string(),
            QueueSize::Time(time) => format!("{}us", time.as_micros()),
        };
        Self {
            rate_bps,
            rtt_s,
            loss: link.loss.as_f64(),
            queue,
            burst_loss_pkts: link.burst_loss,
            reorder: link.reorder.as_f64(),
            seed: link.seed,
        }
    }
}

impl From<StoredPath> for Path {
    fn from(stored: StoredPath) -> Self {
        let Some(rate_bps) = stored.rate_bps else { return Self::Loopback };
        let ratio = |value: f64| Ratio::new(if value.is_finite() { value } else { 0.0 });
        Self::Wan(LinkOptions {
            rate: BitRate::from_bps(rate_bps),
            rtt: Duration::try_from_secs_f64(stored.rtt_s).unwrap_or_default(),
            loss: ratio(stored.loss),
            queue: stored.queue.parse().unwrap_or(QueueSize::Bdp(1.0)),
            burst_loss: stored.burst_loss_pkts,
            reorder: ratio(stored.reorder),
            seed: stored.seed,
            ..LinkOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(loss_percent: f64) -> Path {
        Path::Wan(LinkOptions { rate: BitRate::gbps(1), loss: Ratio::percent(loss_percent), ..LinkOptions::default() })
    }

    #[test]
    fn tools_take_turns_within_a_row() {
        let work = Work::Time(Duration::from_secs(2));
        let grid = Grid::over("test", [path(0.0), path(1.0)], &work, &[Tool::Haul, Tool::Bbr], 2);
        let order: Vec<_> = grid.cells().map(|cell| (cell.row, cell.turn, cell.tool)).collect();
        let row = |n| [(n, 0, Tool::Haul), (n, 0, Tool::Bbr), (n, 1, Tool::Haul), (n, 1, Tool::Bbr)];
        assert_eq!(order, [row(0), row(1)].concat());
        let seeds: Vec<_> = grid.cells().map(|cell| cell.path.wan(cell.turn).link.seed).collect();
        assert_eq!(seeds[0], seeds[1], "the same chance for all");
        assert_ne!(seeds[0], seeds[2], "another one the next time");
    }

    #[test]
    fn the_limit_is_what_headers_and_losses_leave() {
        assert_eq!(path(0.0).limit(), Some(BitRate::from_bps(952_000_000)));
        assert_eq!(path(10.0).limit(), Some(BitRate::from_bps(856_800_000)));
        assert_eq!(Path::Loopback.limit(), None);
        assert_eq!(path(1.0).to_string(), "1.00 Gbit/s, 100 ms, 1.00 % loss");
    }

    #[test]
    fn paths_are_stored_and_read_back() {
        for path in [Path::Loopback, path(0.1)] {
            let stored = serde_json::to_string(&path).expect("plain");
            assert_eq!(serde_json::from_str::<Path>(&stored).ok(), Some(path), "{stored}");
        }
    }
}
