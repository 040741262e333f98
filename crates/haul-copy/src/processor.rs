//! How busy the busiest thread of this process was, and how busy the machine's processors were with all programs together: a thread that never rests is the limit,
//! whatever the others do, and where no processor rests, what comes late may have waited here and not on the way.
//!
//! Linux counts for each thread the time that it ran and the time that it was ready and waited for a processor
//! (`/proc/PID/task/TID/schedstat`). Both count: on a crowded machine a thread may be the limit without running all the time. For all processors it counts the
//! time in each state (`/proc/stat`).

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_units::ProcessorTicks;
use serde::{Deserialize, Serialize};

use crate::clock;

/// All copies of a process share one reading of the counts, until it is so many times as old as it took to read: reading them takes at most one part in so many of a
/// processor. A daemon has several threads for each of its clients; were each copy to read for itself, the cost would grow by the square of their number.
const AGE_PER_COST: u32 = 20;

/// When the system was asked for what it counts, and for how long that took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) cost: Duration,
}

impl Asked {
    /// Asks.
    pub(crate) fn of<T>(read: impl FnOnce() -> T) -> (T, Self) {
        let at = clock::now();
        let counts = read();
        (counts, Self { at, cost: clock::now() - at })
    }

    /// Whether the answer is still as good as new.
    fn serves(self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.cost * AGE_PER_COST
    }
}

/// What was read a moment ago, or is read now.
pub(crate) fn latest<T>(
    kept: &Mutex<Option<Arc<T>>>,
    now: Instant,
    asked: fn(&T) -> Option<Asked>,
    read: impl FnOnce() -> T,
) -> Arc<T> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some(counts) if asked(counts).is_some_and(|asked| asked.serves(now)) => counts.clone(),
        Some(_) | None => kept.insert(Arc::new(read())).clone(),
    }
}

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
    before: Arc<Counts>,
}

/// What the system has counted until a moment.
#[derive(Debug, Default)]
struct Counts {
    /// By number, in order.
    threads: Vec<(u32, ThreadTimes)>,
    machine: ProcessorTicks,
    read: Option<Asked>,
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
        Self { before: counts() }
    }

    /// What the busiest thread has wanted since; nothing where too little time has passed to tell.
    pub fn busiest(&self) -> Demand {
        counts().since(&self.before)
    }
}

impl Counts {
    fn since(&self, before: &Self) -> Demand {
        let (Some(now), Some(then)) = (self.read, before.read) else { return Demand::default() };
        let elapsed_ns = (now.at - then.at).as_nanos().max(1) as f64;
        let part = |ns: u64| (ns as f64 / elapsed_ns).min(1.0);
        let mut earlier = before.threads.iter().peekable();
        let since = |&(thread, times): &(u32, ThreadTimes)| {
            while earlier.next_if(|(other, _)| *other < thread).is_some() {}
            let before = earlier.next_if(|(other, _)| *other == thread).map(|(_, times)| *times).unwrap_or_default();
            let [ran, waited] = [times.ran_ns.saturating_sub(before.ran_ns), times.waited_ns.saturating_sub(before.waited_ns)];
            (ran.saturating_add(waited), waited)
        };
        let (wanted, waited) = self.threads.iter().map(since).max().unwrap_or_default();
        Demand { wanted: part(wanted), waited: part(waited), taken: self.machine.taken_since(before.machine).unwrap_or(0.0) }
    }

    fn read() -> Self {
        let ((threads, machine), asked) = Asked::of(|| (thread_times(), machine_ticks()));
        Self { threads, machine, read: Some(asked) }
    }
}

/// What is counted now, or was a moment ago.
fn counts() -> Arc<Counts> {
    static LATEST: Mutex<Option<Arc<Counts>>> = Mutex::new(None);
    latest(&LATEST, clock::now(), |counts| counts.read, Counts::read)
}

/// What each thread has had of a processor so far, and waited for one.
fn thread_times() -> Vec<(u32, ThreadTimes)> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, parse(&text)?))
    };
    let mut times: Vec<_> = threads.filter_map(times).collect();
    times.sort_unstable_by_key(|(thread, _)| *thread);
    times
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

    #[test]
    fn the_busiest_is_found_among_those_that_come_and_go() {
        let start = clock::now();
        let counts = |at_s, threads: &[(u32, u64, u64)]| {
            let times = |&(thread, ran_ns, waited_ns): &_| (thread, ThreadTimes { ran_ns, waited_ns });
            let read = Some(Asked { at: start + Duration::from_secs(at_s), cost: Duration::ZERO });
            Counts { threads: threads.iter().map(times).collect(), read, ..Counts::default() }
        };
        const S: u64 = 1_000_000_000;
        let before = counts(0, &[(2, 9 * S, 0), (3, 5 * S, 0), (7, S, S)]);
        // Thread 2 has gone, 3 rested, 7 ran half the time and waited a quarter of it, and 9 is new.
        let now = counts(4, &[(3, 5 * S, 0), (7, 3 * S, 2 * S), (9, S, 0)]);
        assert_eq!(now.since(&before), Demand { wanted: 0.75, waited: 0.25, taken: 0.0 });
        let alone = Demand { wanted: 0.25, ..Demand::default() };
        assert_eq!(counts(4, &[(2, 10 * S, 0)]).since(&before), alone);
        assert_eq!(now.since(&Counts::default()), Demand::default());
    }

    #[test]
    fn many_copies_read_the_counts_no_more_often_than_one() {
        let (kept, start) = (Mutex::new(None), clock::now());
        let mut readings = 0;
        // Two hundred copies that ask every second for ten seconds, where a reading takes 10 ms.
        for ms in (0..10_000).step_by(5) {
            let now = start + Duration::from_millis(ms);
            let read = || {
                readings += 1;
                Counts { read: Some(Asked { at: now, cost: Duration::from_millis(10) }), ..Counts::default() }
            };
            latest(&kept, now, |counts| counts.read, read);
        }
        assert_eq!(readings, 50);
    }
}
