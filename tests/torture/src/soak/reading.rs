//! What a soak is judged by: which window it was when, what the daemon held, what the clients moved.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use e2e::{Stopwatch, pause};
use hostile::Readings;

use super::Window;
use super::client::Done;

/// How often the daemon is looked at.
const EVERY: Duration = Duration::from_millis(500);

/// What the daemon held at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    at: Duration,
    /// All of it.
    pub readings: Readings,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy)]
struct Span {
    window: Window,
    from: Duration,
    to: Duration,
}

/// The clock, the windows, and the samples of a process.
pub struct Watch {
    clock: Stopwatch,
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
    spans: Mutex<Vec<Span>>,
}

impl Watch {
    /// Begins, and looks at this process from here on.
    pub fn start(process: u32) -> Self {
        let (samples, stop) = (Arc::<Mutex<Vec<Sample>>>::default(), Arc::new(AtomicBool::new(false)));
        let (kept, stopped, clock) = (Arc::clone(&samples), Arc::clone(&stop), Stopwatch::start());
        thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                lock(&kept).push(Sample { at: clock.elapsed(), readings: Readings::of(process) });
                pause(EVERY);
            }
        });
        Self { clock: Stopwatch::start(), samples, stop, spans: Mutex::default() }
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// From now on it is this window.
    pub fn enter(&self, window: Window) {
        self.leave_at(false);
        let from = self.elapsed();
        lock(&self.spans).push(Span { window, from, to: Duration::MAX });
    }

    /// Whether there was a window of faults since then.
    pub fn had_faults_since(&self, since: Duration) -> bool {
        lock(&self.spans).iter().any(|span| span.window == Window::Faults && span.to >= since)
    }

    /// No window any more, nor samples.
    pub fn leave(&self) {
        self.leave_at(true);
    }

    fn leave_at(&self, for_good: bool) {
        let now = self.elapsed();
        if let Some(span) = lock(&self.spans).last_mut() {
            span.to = span.to.min(now);
        }
        self.stop.store(for_good, Ordering::Relaxed);
    }

    /// What the daemon holds now, in words.
    pub fn line(&self, window: Window) -> String {
        match lock(&self.samples).last() {
            Some(Sample { readings, .. }) => format!(
                "{window:?} is over: {} MiB, {} threads, {} descriptors",
                readings.rss_bytes >> 20,
                readings.threads,
                readings.descriptors
            ),
            None => format!("{window:?} is over"),
        }
    }

    /// The most of something in each quarter of the run.
    pub fn quarters(&self, most: fn(&Sample) -> u64) -> [u64; 4] {
        let samples = lock(&self.samples);
        let whole = samples.last().map_or(Duration::ZERO, |sample| sample.at);
        [0, 1, 2, 3].map(|quarter: u32| {
            let (from, to) = (whole * quarter / 4, whole * (quarter + 1) / 4);
            samples.iter().filter(|sample| sample.at >= from && sample.at <= to).map(most).max().unwrap_or(0)
        })
    }

    /// Bytes a second in all windows of a kind. What a copy moved is taken to have moved evenly from its beginning to its end.
    pub fn rate(&self, window: Window, done: &[Done]) -> f64 {
        let spans: Vec<Span> = lock(&self.spans).iter().filter(|span| span.window == window).copied().collect();
        let seconds: f64 = spans.iter().map(|span| (span.to.saturating_sub(span.from)).as_secs_f64()).sum();
        let moved: f64 =
            done.iter().map(|done| spans.iter().map(|span| share(done, span)).sum::<f64>() * done.bytes as f64).sum();
        moved / seconds.max(f64::EPSILON)
    }
}

/// How much of a copy's time was in a span.
fn share(done: &Done, span: &Span) -> f64 {
    let together = done.ended.min(span.to).saturating_sub(done.began.max(span.from));
    together.as_secs_f64() / done.ended.saturating_sub(done.began).as_secs_f64().max(f64::EPSILON)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_where_it_was() {
        let span = Span { window: Window::Calm, from: Duration::from_secs(10), to: Duration::from_secs(20) };
        let done = |began, ended| Done { began: Duration::from_secs(began), ended: Duration::from_secs(ended), bytes: 1 };
        let percent = |began, ended| (share(&done(began, ended), &span) * 100.0).round() as u64;
        assert_eq!([percent(12, 14), percent(5, 15), percent(0, 10), percent(18, 38)], [100, 50, 0, 10]);
    }
}
