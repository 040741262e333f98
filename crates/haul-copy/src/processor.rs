//! How busy the busiest thread of this process was: one that never rests is the limit, whatever the others do.
//!
//! Linux counts for each thread the time that it ran and the time that it was ready and waited for a processor
//! (`/proc/PID/task/TID/schedstat`). Both count: on a crowded machine a thread may be the limit without running all the time.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use crate::clock;

/// Watches the threads from a moment on.
#[derive(Debug)]
pub struct ProcessorWatch {
    started: Instant,
    before_ns: HashMap<String, u64>,
}

impl ProcessorWatch {
    /// From now on.
    pub fn start() -> Self {
        Self { started: clock::now(), before_ns: demands_ns() }
    }

    /// The part of the time since the start that the busiest thread ran or was ready to; 0 where the system does not tell.
    pub fn busiest(&self) -> f64 {
        let elapsed_ns = (clock::now() - self.started).as_nanos().max(1) as f64;
        let since = |(thread, demand): (String, u64)| demand.saturating_sub(self.before_ns.get(&thread).copied().unwrap_or(0));
        demands_ns().into_iter().map(since).max().map_or(0.0, |most| (most as f64 / elapsed_ns).min(1.0))
    }
}

/// What each thread has wanted of a processor so far.
fn demands_ns() -> HashMap<String, u64> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.file_name().into_string().ok()?, demand_ns(&text)?))
        })
        .collect()
}

/// `RAN WAITED SLICES`, the first two in nanoseconds.
fn demand_ns(schedstat: &str) -> Option<u64> {
    let mut fields = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(ran.saturating_add(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_waiting_both_count() {
        assert_eq!(demand_ns("100 23 7\n"), Some(123));
        assert_eq!(demand_ns("100"), None);
        assert_eq!(demand_ns("x y z"), None);
    }
}
