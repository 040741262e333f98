//! How each tool is set up, run and read.
//!
//! Every tool gets windows and buffers of two bandwidth-delay products or more, where it takes any; the hosts allow TCP windows of 2 GiB. What a
//! tool was told is in its settings.

mod copy;
mod driver;
mod gridftp;
mod haul;
mod iperf;
mod ssh;

use std::process::Command;
use std::time::Duration;

use haul_units::Bytes;

use super::duel::{Fought, MeasureError};
use super::measurement::Usage;
use super::plan::{Cell, Path, Work};
use super::programs::Programs;
use super::series::Series;
use super::site::{Observer, Site};
use super::tool::Tool;

pub use self::iperf::parse as parse_intervals;

/// Where and with what a cell is measured.
pub struct Bench<'a> {
    /// What is to be done.
    pub cell: &'a Cell,
    /// Where.
    pub site: &'a dyn Site,
    /// By what.
    pub programs: &'a Programs,
    /// Who watches.
    pub observer: &'a dyn Observer,
}

/// What a tool did.
#[derive(Debug, Default)]
pub struct Measured {
    /// What arrived when.
    pub series: Series,
    /// How long all of it took.
    pub time: Duration,
    /// Payload that arrived.
    pub bytes: Bytes,
    /// Whether it was stopped before it was done.
    pub gave_up: bool,
    /// What each side used.
    pub sender: Usage,
    /// See `sender`.
    pub receiver: Usage,
    /// What it was told.
    pub settings: String,
}

impl Measured {
    /// What came of a duel whose receiver told these intervals: until the bytes of the work had arrived, or its time was over.
    fn of(cell: &Cell, series: &Series, fought: &Fought, settings: String) -> Self {
        let (time, gave_up) = match cell.work {
            Work::Bytes { bytes, at_most } => series.time_of(bytes).map_or((at_most, true), |time| (time, false)),
            _ => (cell.work.at_most(), fought.gave_up),
        };
        let series = series.up_to(time);
        let (bytes, sender, receiver) = (series.total(), fought.client.usage, fought.server.usage);
        Self { series, time, bytes, gave_up, sender, receiver, settings }
    }
}

/// Runs the cell's tool once.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    match bench.cell.tool {
        Tool::Cubic | Tool::Bbr | Tool::Reno => iperf::measure(bench),
        Tool::Udt | Tool::Srt | Tool::QuicCubic | Tool::QuicBbr => driver::measure(bench),
        Tool::Haul | Tool::HaulQuickstart | Tool::HaulModest | Tool::HaulAggressive => haul::measure(bench),
        Tool::HaulCp
        | Tool::HaulCpAgain
        | Tool::Scp
        | Tool::Rsync
        | Tool::Tar
        | Tool::Sftp
        | Tool::Gridftp
        | Tool::GridftpBbr => copy::measure(bench),
    }
}

/// The TCP congestion control that the hosts are to use, for a tool that uses TCP.
pub const fn tcp(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Bbr | Tool::GridftpBbr => Some("bbr"),
        Tool::Reno => Some("reno"),
        Tool::Cubic | Tool::HaulCp | Tool::HaulCpAgain | Tool::Scp | Tool::Rsync | Tool::Tar | Tool::Sftp | Tool::Gridftp => {
            Some("cubic")
        }
        Tool::Haul
        | Tool::HaulQuickstart
        | Tool::HaulModest
        | Tool::HaulAggressive
        | Tool::Udt
        | Tool::Srt
        | Tool::QuicCubic
        | Tool::QuicBbr => None,
    }
}

/// Why a tool cannot be measured on this kernel.
pub fn missing_tcp(tool: Tool) -> Option<String> {
    let name = tcp(tool)?;
    let available = haul_lab::setting("ipv4/tcp_available_congestion_control").unwrap_or_default();
    let there = available.split_whitespace().any(|known| known == name);
    (!there).then(|| format!("this kernel has no TCP {name} (it has {available}): modprobe tcp_{name}"))
}

/// Twice what the path holds, and enough for a fast one without delay. Over loopback, a few of its buffers: what is more is dropped there.
fn window(path: &Path) -> Bytes {
    let Some(link) = path.link() else { return LOOPBACK_WINDOW };
    let twice = link.rate.bytes_in(link.rtt * 2);
    Bytes(twice.0.clamp(SMALLEST_WINDOW.0, LARGEST_WINDOW.0))
}

const LOOPBACK_WINDOW: Bytes = Bytes::mib(4);
const SMALLEST_WINDOW: Bytes = Bytes::mib(64);
/// What an `int` counts, in which some tools have it.
const LARGEST_WINDOW: Bytes = Bytes((2 << 30) - (1 << 20));

/// The longest that a round trip can take with a full queue of one product and the system's own delays.
fn round_trip(path: &Path) -> Duration {
    path.rtt() * 2 + Duration::from_millis(50)
}

/// How a command line reads, from the program on.
fn words(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    // Before `--` is how to get to the host.
    let from = words.iter().position(|word| word == "--").map_or(0, |place| place + 1);
    let mut words = words[from..].to_vec();
    if let Some(name) = words.first_mut() {
        *name = std::path::Path::new(name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    }
    words.join(" ")
}
