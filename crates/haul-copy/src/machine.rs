//! How this machine does: what this process takes of it, how busy it is, and the room where it writes.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;

use haul_files::store::Space;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::processor::{Asked, latest};

/// In which `/proc/PID/stat` counts, on every Linux that haul runs on: `USER_HZ`, 100 a second.
const TICKS_PER_S: f64 = 100.0;
/// Of a page of memory, as `/proc/PID/statm` counts on x86-64 and most others.
const PAGE_BYTES: u64 = 4096;

/// How a machine does.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineReport {
    /// Processor time of this process since the last report, in processors: 1.5 is one and a half of them.
    pub cpu: f64,
    /// Memory of this process that is resident, in bytes.
    pub memory_bytes: u64,
    /// Processes of the machine that ran or waited to, in the average over the last minute.
    pub load1: f64,
    /// The processors that it may run on; 0 from one that does not tell.
    pub processors: u32,
    /// Bytes that this process has read from disks since it began; what was in memory already does not count.
    pub disk_read_bytes: u64,
    /// Bytes that it has given to disks.
    pub disk_written_bytes: u64,
    /// Room where it writes; none where it does not, or does not know.
    pub free_bytes: Option<u64>,
    /// All there is there.
    pub total_bytes: Option<u64>,
}

/// What the system counts of this process, and of the machine. To add up what its threads have had of a processor takes the kernel the longer the more there are, so all copies of the process
/// share one reading.
#[derive(Debug)]
struct Counts {
    asked: Asked,
    /// None where the system does not tell.
    ticks: Option<u64>,
    pages: u64,
    load1: f64,
    /// Bytes read from disks, and given to them.
    moved: [u64; 2],
}

impl Counts {
    fn read() -> Self {
        let read_all =
            || ["self/stat", "self/statm", "self/io", "loadavg"].map(|name| read(&format!("/proc/{name}")).unwrap_or_default());
        let ([stat, statm, io, load], asked) = Asked::of(read_all);
        Self {
            asked,
            ticks: ticks_of(&stat),
            pages: nth(&statm, 1).unwrap_or(0),
            load1: nth(&load, 0).unwrap_or(0.0),
            moved: ["read_bytes:", "write_bytes:"].map(|name| moved(&io, name)),
        }
    }

    /// Processors that this process had in the mean.
    fn cpu_since(&self, before: &Self) -> f64 {
        let seconds = (self.asked.at - before.asked.at).as_secs_f64().max(1.0 / TICKS_PER_S);
        let ticks = self.ticks.zip(before.ticks).map_or(0, |(now, before)| now.saturating_sub(before));
        ticks as f64 / TICKS_PER_S / seconds
    }
}

/// What is counted now, or was a moment ago.
fn counts() -> Arc<Counts> {
    static LATEST: Mutex<Option<Arc<Counts>>> = Mutex::new(None);
    latest(&LATEST, clock::now(), |counts| Some(counts.asked), Counts::read)
}

/// Watches the machine from one report to the next.
#[derive(Debug)]
pub struct MachineWatch {
    before: Arc<Counts>,
    /// The limits of a process group are read from files: once.
    processors: u32,
}

impl MachineWatch {
    /// From now on.
    pub fn start() -> Self {
        let processors = thread::available_parallelism().map_or(0, |number| u32::try_from(number.get()).unwrap_or(u32::MAX));
        Self { before: counts(), processors }
    }

    /// How it does since the last report; zero for what the system does not tell.
    pub fn report(&mut self, space: Option<Space>) -> MachineReport {
        let now = counts();
        let cpu = now.cpu_since(&self.before);
        let [disk_read_bytes, disk_written_bytes] = now.moved;
        self.before = Arc::clone(&now);
        MachineReport {
            cpu,
            memory_bytes: now.pages.saturating_mul(PAGE_BYTES),
            disk_read_bytes,
            disk_written_bytes,
            processors: self.processors,
            load1: now.load1,
            free_bytes: space.map(|space| space.free.as_u64()),
            total_bytes: space.map(|space| space.total.as_u64()),
        }
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A count of `/proc/PID/io`; zero for what the system does not tell.
fn moved(io: &str, name: &str) -> u64 {
    io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

/// Time in user and kernel mode: the 14th and 15th fields. The second is a name in brackets that may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let (user, system): (u64, u64) = (nth(rest, 11)?, nth(rest, 12)?);
    user.checked_add(system)
}

fn nth<T: std::str::FromStr>(text: &str, at: usize) -> Option<T> {
    text.split_ascii_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_units::Bytes;

    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        assert_eq!(ticks_of("7 (a) b) 9) S 1 2 3 4 5 6 7 8 9 10 31 12 13 14"), Some(43));
        assert_eq!(ticks_of("7 (a) S 1"), None);
        assert_eq!(ticks_of(""), None);
    }

    #[test]
    fn what_was_moved_is_read_by_its_name() {
        let io = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!((moved(io, "read_bytes:"), moved(io, "write_bytes:"), moved("", "read_bytes:")), (4096, 8192, 0));
    }

    #[test]
    fn processors_are_counted_between_two_readings_and_one_that_is_shared_has_none() {
        let at = clock::now();
        let counts = |after_s, ticks| {
            let asked = Asked { at: at + Duration::from_secs(after_s), cost: Duration::ZERO };
            Counts { asked, ticks, pages: 0, load1: 0.0, moved: [0; 2] }
        };
        let (before, now) = (counts(0, Some(1000)), counts(4, Some(1600)));
        assert!((now.cpu_since(&before) - 1.5).abs() < 1e-9 && now.cpu_since(&now).abs() < 1e-9);
        assert!(counts(4, None).cpu_since(&before).abs() < 1e-9);
    }

    #[test]
    fn this_process_has_memory_and_its_room_is_told() {
        let mut watch = MachineWatch::start();
        let report = watch.report(Some(Space { free: Bytes(5), total: Bytes(9) }));
        assert!(report.memory_bytes > 100_000, "{report:?}");
        assert_eq!((report.free_bytes, report.total_bytes), (Some(5), Some(9)));
        assert_eq!(watch.report(None).free_bytes, None);
    }

    #[test]
    fn servers_of_other_versions_can_be_read() {
        let report: MachineReport = serde_json::from_str("{\"cpu\":0.5,\"colour\":1}").expect("fields may be added and missing");
        assert_eq!(report, MachineReport { cpu: 0.5, ..MachineReport::default() });
    }
}
