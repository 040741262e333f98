//! How late a thread wakes up that paces trains, and what it costs: sleeping, or sleeping and then spinning for the last microseconds.
//!
//!     wakeups [--seconds N]

mod cpu;

use std::error::Error;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut time = Duration::from_secs(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--seconds", Some(seconds)) => time = Duration::from_secs_f64(seconds.parse()?),
            _ => return Err("usage: wakeups [--seconds N]".into()),
        }
    }
    sharpen_timers();
    println!("every us   spins for us   late us: p50     p90     p99   processor");
    for gap_us in [50, 200, 500, 2000] {
        for spin_us in [0, 20, 50] {
            if spin_us < gap_us {
                trial(Duration::from_micros(gap_us), Duration::from_micros(spin_us), time);
            }
        }
    }
    Ok(())
}

/// Wakes up every `gap`, the last `spin` of it without sleep.
fn trial(gap: Duration, spin: Duration, time: Duration) {
    let (lock, alarm) = (Mutex::new(()), Condvar::new());
    let (start, cpu) = (now(), cpu::thread_time());
    let mut deadline = start;
    let mut late = Vec::new();
    while deadline - start < time {
        deadline += gap;
        loop {
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                break;
            }
            if left > spin
                && let Ok(guard) = lock.lock()
            {
                drop(alarm.wait_timeout(guard, left.saturating_sub(spin)));
            } else {
                std::hint::spin_loop();
            }
        }
        late.push((now() - deadline).as_nanos() as f64 / 1e3);
    }
    let used = cpu::thread_time().saturating_sub(cpu).as_secs_f64() / (now() - start).as_secs_f64();
    late.sort_by(f64::total_cmp);
    let at = |percent: usize| late[(late.len() - 1) * percent / 100];
    println!(
        "{:8} {:14} {:14.1} {:7.1} {:7.1} {:9.1} %",
        gap.as_micros(),
        spin.as_micros(),
        at(50),
        at(90),
        at(99),
        used * 100.0
    );
}

/// As the send thread does.
fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    {
        let nanoseconds: libc::c_ulong = 1;
        // SAFETY: sets a number of the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds) };
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}
