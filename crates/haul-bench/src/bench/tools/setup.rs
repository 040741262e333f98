//! What a tool is given to be measured by, and what is made of what it did.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use haul_units::Bytes;

use crate::bench::duel::Fought;
use crate::bench::measurement::Usage;
use crate::bench::plan::{Cell, Path, Work};
use crate::bench::programs::Programs;
use crate::bench::series::Series;
use crate::bench::site::{Observer, Site};
use crate::bench::tool::Tool;

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
    /// Where the time went, where it tells.
    pub parts_s: BTreeMap<String, f64>,
}

impl Measured {
    /// What came of a duel whose receiver told these intervals: until the bytes of the work had arrived, or its time was over.
    pub fn of(cell: &Cell, series: &Series, fought: &Fought, settings: String) -> Self {
        // Of which an interval's end tells half an interval too much or too little.
        let series = series.from_first_byte(cell.path.rtt() + Duration::from_millis(50));
        let (time, gave_up) = match cell.work {
            Work::Bytes { bytes, at_most } => series.time_of(bytes).map_or((at_most, true), |time| (time, false)),
            _ => (cell.work.at_most(), fought.gave_up),
        };
        let series = series.up_to(time);
        let (bytes, sender, receiver) = (series.total(), fought.client.usage, fought.server.usage);
        Self { series, time, bytes, gave_up, sender, receiver, settings, ..Self::default() }
    }
}

/// The TCP congestion control that the hosts are to use, for a tool that uses TCP.
pub const fn tcp(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::Bbr | Tool::GridftpBbr => Some("bbr"),
        Tool::Reno => Some("reno"),
        Tool::Cubic
        | Tool::HaulCp
        | Tool::HaulCpAgain
        | Tool::HaulCpDaemon
        | Tool::HaulCpTcp
        | Tool::HaulCpSsh
        | Tool::Mscp
        | Tool::Scp
        | Tool::Rsync
        | Tool::Tar
        | Tool::Sftp
        | Tool::Gridftp => Some("cubic"),
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

/// Twice what the path holds, and enough for a fast one without delay. Over loopback, a few of its buffers: what is more is dropped there.
pub fn window(path: &Path) -> Bytes {
    let Some(link) = path.link() else { return LOOPBACK_WINDOW };
    let twice = link.rate.bytes_in(link.rtt * 2);
    Bytes(twice.0.clamp(SMALLEST_WINDOW.0, LARGEST_WINDOW.0))
}

const LOOPBACK_WINDOW: Bytes = Bytes::mib(4);
const SMALLEST_WINDOW: Bytes = Bytes::mib(64);
/// What an `int` counts, in which some tools have it.
const LARGEST_WINDOW: Bytes = Bytes((2 << 30) - (1 << 20));

/// The longest that a round trip can take with a full queue of one product and the system's own delays.
pub fn round_trip(path: &Path) -> Duration {
    path.rtt() * 2 + Duration::from_millis(50)
}

/// How a command line reads, from the program on.
pub fn words(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    // Before `--` is how to get to the host.
    let from = words.iter().position(|word| word == "--").map_or(0, |place| place + 1);
    let mut words = words[from..].to_vec();
    if let Some(name) = words.first_mut() {
        *name = std::path::Path::new(name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    }
    words.join(" ")
}
