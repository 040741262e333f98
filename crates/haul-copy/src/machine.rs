//! How this machine does: what this process takes of it, how busy it is, and the room where it writes.

use std::fs;
use std::thread;
use std::time::Instant;

use haul_files::store::Space;
use serde::{Deserialize, Serialize};

use crate::clock;

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

/// Watches the machine from one report to the next.
#[derive(Debug)]
pub struct MachineWatch {
    at: Instant,
    ticks: u64,
    /// The limits of a process group are read from files: once.
    processors: u32,
}

impl MachineWatch {
    /// From now on.
    pub fn start() -> Self {
        let processors = thread::available_parallelism().map_or(0, |number| u32::try_from(number.get()).unwrap_or(u32::MAX));
        Self { at: clock::now(), ticks: ticks().unwrap_or(0), processors }
    }

    /// How it does since the last report; zero for what the system does not tell.
    pub fn report(&mut self, space: Option<Space>) -> MachineReport {
        let (now, ticks) = (clock::now(), ticks().unwrap_or(self.ticks));
        let seconds = (now - self.at).as_secs_f64().max(1.0 / TICKS_PER_S);
        let cpu = ticks.saturating_sub(self.ticks) as f64 / TICKS_PER_S / seconds;
        (self.at, self.ticks) = (now, ticks);
        let io = read("/proc/self/io").unwrap_or_default();
        let pages = read("/proc/self/statm").and_then(|text| nth(&text, 1)).unwrap_or(0u64);
        MachineReport {
            cpu,
            memory_bytes: pages.saturating_mul(PAGE_BYTES),
            disk_read_bytes: moved(&io, "read_bytes:"),
            disk_written_bytes: moved(&io, "write_bytes:"),
            processors: self.processors,
            load1: read("/proc/loadavg").and_then(|text| nth(&text, 0)).unwrap_or(0.0),
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

fn ticks() -> Option<u64> {
    ticks_of(&read("/proc/self/stat")?)
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
