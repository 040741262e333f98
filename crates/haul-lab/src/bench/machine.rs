//! Facts of the machine and of the programs: without them, figures say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use haul_units::Bytes;

use super::programs::Programs;

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
        ("load average at the start".to_owned(), load()),
        ("date".to_owned(), date() + " UTC"),
    ]);
    facts.extend(VERSIONS.iter().filter_map(|version| Some((format!("version of {}", version.program), version.ask(programs)?))));
    facts
}

/// Over one, five and fifteen minutes: on a machine that does other things, figures are theirs too.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
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
    }
}
