//! Facts of the machine and of the programs: without them, figures say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use haul_units::{Bytes, ProcessorTicks};

use super::plan::{Grid, Row};
use super::programs::Programs;
use super::tools::tcp;

/// By name.
pub fn facts(programs: &Programs) -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1)).unwrap_or("unknown").trim();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
    let memory = read("/proc/meminfo");
    let memory_kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    let mut facts = BTreeMap::from([
        ("cpu".to_owned(), model.to_owned()),
        ("cores".to_owned(), cores.to_string()),
        ("kernel".to_owned(), read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("memory".to_owned(), Bytes::kib(memory_kib.unwrap_or(0)).to_string()),
        ("memory for TCP".to_owned(), tcp_memory().map_or_else(|| "unknown".to_owned(), |memory| memory.to_string())),
        ("load average at the start".to_owned(), load()),
        ("date".to_owned(), date() + " UTC"),
    ]);
    facts.extend(VERSIONS.iter().filter_map(|version| Some((format!("version of {}", version.program), version.ask(programs)?))));
    facts
}

/// What all of TCP on this machine may have before the kernel shortens windows and drops what waits at receivers, whatever each of them is
/// allowed (tcp(7), `tcp_mem`). It counts for all network namespaces together, and only the machine's first one can change it.
pub fn tcp_memory() -> Option<Bytes> {
    let pages: u64 = haul_lab::setting("ipv4/tcp_mem")?.split_whitespace().nth(1)?.parse().ok()?;
    Some(Bytes(pages * rustix::param::page_size() as u64))
}

/// What to do where the machine has less memory for TCP than a row of the grid can need.
pub fn tcp_hint(grid: &Grid) -> Option<String> {
    let uses_tcp = |row: &&Row| row.candidates.iter().any(|candidate| tcp(candidate.tool).is_some());
    let product = |row: &Row| row.path.link().map(|link| link.rate.bytes_in(link.rtt));
    let needed = grid.rows.iter().filter(uses_tcp).filter_map(product).max()? * TCP_PRODUCTS;
    let memory = tcp_memory().filter(|memory| *memory < needed)?;
    let pages = needed.0 / rustix::param::page_size() as u64;
    Some(format!(
        "TCP can need {needed} here, and this machine gives it {memory} before it shortens windows: \
         sysctl -w net.ipv4.tcp_mem='{} {pages} {}'",
        pages / 4 * 3,
        pages / 2 * 3
    ))
}

/// In bandwidth-delay products: a window that has grown to three of them before the first loss is told, whose packets each take twice their
/// size at the sender and again at the receiver, where they wait for what was lost. CUBIC at 10 Gbit/s and 200 ms stood still for seconds with
/// 6 of them, and never did with 16.
const TCP_PRODUCTS: u64 = 16;

/// Over one, five and fifteen minutes: on a machine that does other things, figures are theirs too.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// The name of the fact.
pub const STOLEN: &str = "stolen by the host";

/// What the processors have done so far.
pub fn processor_ticks() -> Option<ProcessorTicks> {
    ProcessorTicks::parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// As a fact: what was stolen since then.
pub fn stolen(since: ProcessorTicks) -> Option<String> {
    Some(format!("{:.1} % of the processors' time", processor_ticks()?.stolen_since(since)? * 100.0))
}

/// How a program tells its version.
struct Version {
    program: &'static str,
    words: &'static [&'static str],
}

const VERSIONS: &[Version] = &[
    Version { program: "haul", words: &["--version"] },
    Version { program: "iperf3", words: &["--version"] },
    Version { program: "udt-bulk", words: &["version"] },
    Version { program: "srt-bulk", words: &["version"] },
    Version { program: "quinn-bulk", words: &["version"] },
    Version { program: "ssh", words: &["-V"] },
    Version { program: "rsync", words: &["--version"] },
    Version { program: "tar", words: &["--version"] },
    Version { program: "globus-url-copy", words: &["-version"] },
];

impl Version {
    fn ask(&self, programs: &Programs) -> Option<String> {
        let output = Command::new(programs.find(self.program)?).args(self.words).stdin(Stdio::null()).output().ok()?;
        // ssh and globus-url-copy write it as an error.
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// The day and the time in UTC: `2026-11-20 17:05`.
pub fn date() -> String {
    let seconds = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    // SAFETY: an all-zero tm is valid, and both places outlive the call, which only fails for years that an int does not count.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&raw const seconds, &raw mut time);
        time
    };
    format!("{}-{:02}-{:02} {:02}:{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, time.tm_hour, time.tm_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_processor_and_a_kernel() {
        let facts = facts(&Programs::beside("/nowhere/haul".into()));
        assert!(facts["cores"] != "0" && !facts["kernel"].is_empty() && facts["memory"] != "0 B", "{facts:?}");
        assert!(processor_ticks().is_some());
    }
}
