//! How busy the busiest thread of this process was, and how busy the machine's processors were with all programs together: a thread that never rests is the limit,
//! whatever the others do, and where no processor rests, what comes late may have waited here and not on the way.
//!
//! Linux counts for each thread the time that it ran and the time that it was ready and waited for a processor
//! (`/proc/PID/task/TID/schedstat`). Both count: on a crowded machine a thread may be the limit without running all the time. For all processors it counts the
//! time in each state (`/proc/stat`).

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use haul_units::ProcessorTicks;
use serde::{Deserialize, Serialize};

use crate::clock;

/// What the thread of a process that wanted a processor most wanted of it, in parts of the time; 0 where the system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Demand {
    /// It ran, or was ready to.
    #[serde(rename = "busiest")]
    pub wanted: f64,
    /// It was ready, and others ran.
    pub waited: f64,
    /// Of the time of all the machine's processors, what was taken: by whatever program, by the kernel, or by another machine on the same host.
    pub taken: f64,
}

/// Watches the threads from a moment on.
#[derive(Debug)]
pub struct ProcessorWatch {
    started: Instant,
    before: HashMap<String, ThreadTimes>,
    machine: ProcessorTicks,
}

/// Times of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ThreadTimes {
    ran_ns: u64,
    waited_ns: u64,
}

impl ProcessorWatch {
    /// From now on.
    pub fn start() -> Self {
        Self { started: clock::now(), before: thread_times(), machine: machine_ticks() }
    }

    /// What the busiest thread has wanted since.
    pub fn busiest(&self) -> Demand {
        let elapsed_ns = (clock::now() - self.started).as_nanos().max(1) as f64;
        let part = |ns: u64| (ns as f64 / elapsed_ns).min(1.0);
        let since = |(thread, times): (String, ThreadTimes)| {
            let before = self.before.get(&thread).copied().unwrap_or_default();
            let [ran, waited] = [times.ran_ns.saturating_sub(before.ran_ns), times.waited_ns.saturating_sub(before.waited_ns)];
            (ran.saturating_add(waited), waited)
        };
        let (wanted, waited) = thread_times().into_iter().map(since).max().unwrap_or_default();
        Demand { wanted: part(wanted), waited: part(waited), taken: machine_ticks().taken_since(self.machine).unwrap_or(0.0) }
    }
}

/// What each thread has had of a processor so far, and waited for one.
fn thread_times() -> HashMap<String, ThreadTimes> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.file_name().into_string().ok()?, parse(&text)?))
        })
        .collect()
}

/// `RAN WAITED SLICES`, the first two in nanoseconds.
fn parse(schedstat: &str) -> Option<ThreadTimes> {
    let mut fields = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran_ns, waited_ns) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(ThreadTimes { ran_ns, waited_ns })
}

fn machine_ticks() -> ProcessorTicks {
    fs::read_to_string("/proc/stat").ok().and_then(|stat| ProcessorTicks::parse(&stat)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_waiting_are_told_apart() {
        assert_eq!(parse("100 23 7\n"), Some(ThreadTimes { ran_ns: 100, waited_ns: 23 }));
        assert_eq!(parse("100"), None);
        assert_eq!(parse("x y z"), None);
    }
}
