//! The lines of a log.

use std::path::Path;

use haul_files::WirePath;
use serde::Serialize;

use crate::observe::{JobEvent, MemberState, MemberView, Snapshot};
use haul_plan::Why;

/// Version of the format: a reader takes those that it knows.
pub(crate) const VERSION: u32 = 1;
/// The client's file, among all.
pub(super) const CLIENT: usize = 0;

/// One line, but for its time.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Record<'a> {
    Job { version: u32, kind: &'a str, about: &'a [String], members: &'a [String], unix_s: u64 },
    Member { name: &'a str },
    Up { rtt_us: u64 },
    Down { why: &'a str },
    Listed { files: u64, bytes: u64 },
    Found { files: u64, bytes: u64, complete: bool },
    Kept { files: u64, bytes: u64 },
    Ordered { path: String, from: u64, to: u64, why: &'static str },
    Delivered { path: String, from: u64, to: u64 },
    Unfit { path: String, why: String },
    Finished { path: String, size: u64 },
    Problem { path: String, why: String },
    Note { text: String },
    Client(ClientSample),
    Sample(MemberSample),
    LeftOut { lines: u64 },
    End,
}

/// The client, in a second.
#[derive(Debug, Serialize)]
pub(super) struct ClientSample {
    pub files: u64,
    pub bytes: u64,
    pub files_done: u64,
    pub bytes_done: u64,
    pub bytes_kept: u64,
    pub wasted: u64,
    pub rate_bps: u64,
    pub cpu: f64,
    pub memory_bytes: u64,
    pub load1: f64,
}

/// A member, in a second.
#[derive(Debug, Serialize)]
pub(super) struct MemberSample {
    state: &'static str,
    file: Option<String>,
    delivered: u64,
    files: u64,
    outstanding: u64,
    rate_bps: u64,
    rtt_us: u64,
    loss: Option<f64>,
    busiest: f64,
    cpu: Option<f64>,
    memory_bytes: Option<u64>,
    load1: Option<f64>,
    disk_read_bytes: Option<u64>,
    disk_written_bytes: Option<u64>,
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
}

impl Record<'_> {
    /// As a line, with its time in seconds.
    pub fn line(&self, seconds: f64) -> String {
        #[derive(Serialize)]
        struct Timed<'a> {
            t: f64,
            #[serde(flatten)]
            record: &'a Record<'a>,
        }
        // Microseconds are enough.
        let timed = Timed { t: (seconds * 1e6).round() / 1e6, record: self };
        let mut line = serde_json::to_string(&timed).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// What is written of an event, and in whose file; nothing of a snapshot, which is for samples.
pub(super) fn records<'a>(event: &'a JobEvent<'a>) -> Option<(Option<&'a str>, Record<'a>)> {
    Some(match event {
        JobEvent::Up { member, rtt } => {
            (Some(*member), Record::Up { rtt_us: u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX) })
        }
        JobEvent::Down { member, why } => (Some(*member), Record::Down { why }),
        JobEvent::Listed { member, files, bytes } => (Some(*member), Record::Listed { files: *files, bytes: bytes.as_u64() }),
        JobEvent::Found { files, bytes, complete } => {
            (None, Record::Found { files: *files, bytes: bytes.as_u64(), complete: *complete })
        }
        JobEvent::Kept { files, bytes } => (None, Record::Kept { files: *files, bytes: bytes.as_u64() }),
        JobEvent::Ordered { member, path, range, why } => {
            let why = match why {
                Why::Next => "next",
                Why::Taken(_) => "taken",
                Why::Twice(_) => "twice",
            };
            (Some(*member), Record::Ordered { path: shown(path), from: range.start, to: range.end, why })
        }
        JobEvent::Delivered { member, path, range } => {
            (Some(*member), Record::Delivered { path: shown(path), from: range.start, to: range.end })
        }
        JobEvent::Unfit { member, path, why } => (Some(*member), Record::Unfit { path: shown(path), why: why.to_string() }),
        JobEvent::FileFinished { member, path, size } => (*member, Record::Finished { path: shown(path), size: size.as_u64() }),
        JobEvent::Problem(problem) => (None, Record::Problem { path: problem.path.to_string(), why: problem.why.to_string() }),
        JobEvent::Note { member, note } => (*member, Record::Note { text: note.to_string() }),
        JobEvent::Progress(_) => return None,
    })
}

/// What a snapshot says of a member.
pub(super) fn sample(view: &MemberView) -> MemberSample {
    let machine = view.path.machine;
    MemberSample {
        state: match view.state {
            MemberState::Starting => "starting",
            MemberState::Listing => "listing",
            MemberState::Busy => "busy",
            MemberState::Idle => "idle",
            MemberState::Stalled => "stalled",
            MemberState::Done => "done",
            MemberState::Down => "down",
        },
        file: view.file.as_deref().map(shown),
        delivered: view.delivered.as_u64(),
        files: view.files,
        outstanding: view.outstanding.as_u64(),
        rate_bps: view.rate.as_bps(),
        rtt_us: view.path.rtt_us,
        loss: view.path.sender.and_then(|sender| sender.told_loss()).map(haul::Ratio::as_f64),
        busiest: view.path.server_demand.wanted,
        cpu: machine.map(|machine| machine.cpu),
        memory_bytes: machine.map(|machine| machine.memory_bytes),
        load1: machine.map(|machine| machine.load1),
        disk_read_bytes: machine.map(|machine| machine.disk_read_bytes),
        disk_written_bytes: machine.map(|machine| machine.disk_written_bytes),
        free_bytes: machine.and_then(|machine| machine.free_bytes),
        total_bytes: machine.and_then(|machine| machine.total_bytes),
    }
}

/// What a snapshot says of the job, at a rate since the last one.
pub(super) fn client_sample(snapshot: &Snapshot, rate_bps: u64, machine: haul_copy::MachineReport) -> ClientSample {
    ClientSample {
        files: snapshot.files,
        bytes: snapshot.bytes.as_u64(),
        files_done: snapshot.files_done,
        bytes_done: snapshot.bytes_done.as_u64(),
        bytes_kept: snapshot.bytes_kept.as_u64(),
        wasted: snapshot.wasted.as_u64(),
        rate_bps,
        cpu: machine.cpu,
        memory_bytes: machine.memory_bytes,
        load1: machine.load1,
    }
}

/// A path that anything may be in.
fn shown(path: &Path) -> String {
    WirePath::from(path).to_string()
}
