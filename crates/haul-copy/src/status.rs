//! How a server is, without a copy: what `gfhost -l` and `gfdf` tell of a storage server, asked of haul there.
//!
//! The client says in its opening what it wants to know of; behind its reply the server writes one line, and parts.

use std::fs;
use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use haul::Connection;
use haul_files::store::{Scheme, Space, Store, StoreError};
use haul_files::{Access, CopyError, Stop, WirePath};
use haul_peer::{RepliedStream, from_bounded_line, to_line};
use haul_units::{Cancel, PeerText};
use serde::{Deserialize, Serialize};

use crate::here::{Local, storage};
use crate::machine::{MachineReport, MachineWatch};
use crate::opening::{Opening, Purpose};
use crate::places::{Places, is_any};
use crate::storage::StorageReport;
use crate::{CLOSE_ABORTED, CLOSE_DONE, stores};

/// Places of which a server tells at most: the answer is one line of bounded length.
const MAX_PLACES: usize = 16;
/// Copies of which a server tells at most, for the same reason.
pub const MAX_WORK: usize = 4;
/// The answer is no longer, in bytes: names of hosts have up to 255.
const MAX_LINE: usize = 64 << 10;
/// How often a client that waits looks whether it is still to.
const LOOK: Duration = Duration::from_millis(20);

/// How a server is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusReport {
    /// Version of haul there.
    pub version: PeerText,
    /// What the machine calls itself.
    pub host: PeerText,
    /// Processors, their load, and this process; the room is in `places`.
    pub machine: MachineReport,
    /// All memory, in bytes.
    pub memory_total_bytes: u64,
    /// What programs may still take of it.
    pub memory_available_bytes: u64,
    /// Since the machine started, in seconds.
    pub up_s: u64,
    /// Where this client's files can be: the directory that was asked about, or what is exported.
    pub places: Vec<PlaceReport>,
    /// What it does for this client's programs at present, if it is kept for several: the first [`MAX_WORK`].
    pub work: Vec<WorkReport>,
}

/// One copy that is under way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkReport {
    /// Whether it sends; else it receives.
    pub sends: bool,
    /// What was asked for, the first of it.
    pub what: PeerText,
    /// For how long, in seconds.
    pub since_s: f64,
    /// Bytes that have gone, or have come.
    pub bytes: u64,
    /// How fast of late, in bits per second.
    pub rate_bps: u64,
}

/// The room in one place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaceReport {
    /// As the client would name it.
    pub name: PeerText,
    /// What may still be written, in bytes; none where that is not known.
    pub free_bytes: Option<u64>,
    /// All there is.
    pub total_bytes: Option<u64>,
    /// Whether this client may write there.
    pub writable: bool,
    /// Why nothing is known of it, where that is so.
    pub problem: Option<PeerText>,
    /// The servers behind it, where it is spread over several (Gfarm): the first 64.
    pub storage: Vec<StorageReport>,
}

impl StatusReport {
    /// This machine's, for who may do this; `path` is the directory that it asks about, if it names one.
    pub fn of(access: &Access, choice: &Places, path: Option<&WirePath>, cancel: &Cancel) -> Self {
        let memory = read("/proc/meminfo");
        let kib = |name: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
        };
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            host: PeerText::from(read("/proc/sys/kernel/hostname").trim()),
            machine: MachineWatch::start().report(None),
            memory_total_bytes: kib("MemTotal"),
            memory_available_bytes: kib("MemAvailable"),
            up_s: read("/proc/uptime").split(['.', ' ']).next().and_then(|text| text.parse().ok()).unwrap_or(0),
            places: places(access, choice, path, cancel),
            work: Vec::new(),
        }
    }
}

fn places(access: &Access, choice: &Places, path: Option<&WirePath>, cancel: &Cancel) -> Vec<PlaceReport> {
    if let (Access::Account { .. }, Some(path)) = (access, path.filter(|path| is_any(path))) {
        return match choice.each(path) {
            Ok(all) => all.iter().take(MAX_PLACES).map(|name| place(name, true, room_of(access, name, cancel))).collect(),
            Err(error) => vec![place(path, true, Err(error.into()))],
        };
    }
    let all: Vec<(WirePath, bool)> = match (access, path) {
        (Access::Account { .. }, None) => vec![(WirePath(b".".to_vec()), true)],
        (Access::Account { .. }, Some(path)) => vec![(path.clone(), true)],
        (Access::Root(root), path) => vec![(path.cloned().unwrap_or(WirePath(b".".to_vec())), root.writable)],
        (Access::Exports(_), Some(path)) => vec![(path.clone(), false)],
        (Access::Exports(exports), None) => exports
            .iter()
            .take(MAX_PLACES)
            .map(|export| (WirePath([b"/", export.name.as_bytes()].concat()), export.writable))
            .collect(),
    };
    let in_account = matches!(access, Access::Account { .. });
    let storage = |name: &WirePath| match Scheme::split(&name.0).0 {
        Scheme::Gfarm if in_account => storage(cancel),
        _ => Vec::new(),
    };
    all.into_iter()
        .map(|(name, writable)| PlaceReport { storage: storage(&name), ..place(&name, writable, room_of(access, &name, cancel)) })
        .collect()
}

/// Why a place does not say how much room it has.
#[derive(Debug, thiserror::Error)]
enum NoRoom {
    /// It cannot be a destination.
    #[error("{0}")]
    Place(Stop),
    /// Its file system does not tell.
    #[error(transparent)]
    Space(#[from] StoreError),
    /// Its store cannot be asked.
    #[error(transparent)]
    Store(#[from] CopyError),
}

fn room_of(access: &Access, name: &WirePath, cancel: &Cancel) -> Result<Space, NoRoom> {
    match (access, Scheme::split(&name.0).0) {
        // Gfarm and memory are for those who have the whole account.
        (Access::Account { .. }, Scheme::Ram | Scheme::Gfarm) => Ok(stores::space(&name.to_path(), cancel)?),
        _ => room_below(&Local::of(access.clone()), name),
    }
}

fn room_below(store: &Local, name: &WirePath) -> Result<Space, NoRoom> {
    let place = store.destination(name, true).map_err(NoRoom::Place)?;
    Ok(store.space(&place.root)?)
}

fn place(name: &WirePath, writable: bool, room: Result<Space, NoRoom>) -> PlaceReport {
    let told = PlaceReport { name: PeerText::from(name.to_string().as_str()), writable, ..PlaceReport::default() };
    match room {
        Ok(space) => PlaceReport { free_bytes: Some(space.free.as_u64()), total_bytes: Some(space.total.as_u64()), ..told },
        Err(problem) => PlaceReport { problem: Some(PeerText::from(problem.to_string())), ..told },
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Asks the server at the other end of a connection how it is, and ends the connection.
pub fn ask(connection: &Connection, path: Option<WirePath>, cancel: &Cancel) -> io::Result<StatusReport> {
    let asking = connection.clone();
    let asked = thread::spawn(move || {
        let (mut send, receive) = asking.open_bi()?;
        let opening = Opening::new(Purpose::Status(path));
        send.write_all(&to_line(&opening))?;
        send.flush()?;
        from_bounded_line::<StatusReport>(&mut RepliedStream::new(receive), MAX_LINE)
    });
    while !asked.is_finished() && !cancel.is_cancelled() {
        thread::park_timeout(LOOK);
    }
    let is_heard = asked.is_finished();
    connection.close(if is_heard { CLOSE_DONE } else { CLOSE_ABORTED }, "done");
    asked.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asks has failed")))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use haul_files::{Export, Ownership};
    use haul_peer::from_line;

    use super::*;
    use crate::storage::MAX_STORAGE;

    #[test]
    fn the_machine_and_its_room_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let account = Access::Account { home: dir.path().to_owned() };
        let report = StatusReport::of(&account, &Places::default(), None, &Cancel::new());
        assert!(report.machine.processors > 0 && report.memory_total_bytes > report.memory_available_bytes && report.up_s > 0);
        assert!(report.places[0].free_bytes <= report.places[0].total_bytes && report.places[0].total_bytes > Some(0));
        let missing = StatusReport::of(&account, &Places::default(), Some(&WirePath(b"no/such".to_vec())), &Cancel::new());
        assert!(missing.places[0].problem.is_some() && missing.places[0].free_bytes.is_none(), "{missing:?}");
    }

    #[test]
    fn places_of_which_one_would_be_chosen_are_told_to_an_account() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let account = Access::Account { home: dir.path().to_owned() };
        let choice = Places::told_by(|| Ok(vec![WirePath(b"a".to_vec()), WirePath(b"no/such".to_vec())]));
        let any = WirePath(b"any:".to_vec());
        let told = StatusReport::of(&account, &choice, Some(&any), &Cancel::new()).places;
        let told: Vec<_> = told.iter().map(|place| (place.name.to_string(), place.free_bytes.is_some())).collect();
        assert_eq!(told, [("a".to_owned(), true), ("no/such".to_owned(), false)]);
        let none = StatusReport::of(&account, &Places::default(), Some(&any), &Cancel::new()).places;
        assert!(none[0].problem.as_ref().is_some_and(|problem| problem.to_string().contains("places = [")), "{none:?}");
    }

    #[test]
    fn of_a_daemon_its_exports_are_told_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let export = |name: &str, writable| Export {
            name: name.into(),
            path: dir.path().to_owned(),
            writable,
            ownership: Ownership::Mask,
        };
        let exports = Access::Exports(vec![export("a", true), export("b", false)]);
        let report = StatusReport::of(&exports, &Places::default(), None, &Cancel::new());
        let told: Vec<_> =
            report.places.iter().map(|place| (place.name.to_string(), place.writable, place.total_bytes > Some(0))).collect();
        assert_eq!(told, [("/a".to_owned(), true, true), ("/b".to_owned(), false, false)]);
        let outside = StatusReport::of(&exports, &Places::default(), Some(&WirePath(b"/etc".to_vec())), &Cancel::new());
        assert!(outside.places[0].problem.is_some() && outside.places[0].total_bytes.is_none());
    }

    #[test]
    fn reports_of_other_versions_can_be_read() {
        let report: StatusReport = from_line(&mut &b"{\"host\":\"x\\u001b[2J\",\"colour\":1}\n"[..]).unwrap();
        assert_eq!(report.host.to_string(), "x\\u{1b}[2J");
    }

    #[test]
    fn the_longest_report_can_be_read() {
        let long: PeerText = "x".repeat(255).as_str().into();
        let server = StorageReport { host: long.clone(), architecture: "x86_64-linux".into(), ..StorageReport::default() };
        let place = PlaceReport { name: long, storage: vec![server; MAX_STORAGE], ..PlaceReport::default() };
        let report = StatusReport { places: vec![place], ..StatusReport::default() };
        let line = to_line(&report);
        assert_eq!(from_bounded_line::<StatusReport>(&mut &line[..], MAX_LINE).unwrap(), report);
    }
}
