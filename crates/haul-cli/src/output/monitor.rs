//! The thread that looks at a copy ten times a second, shows how it goes, and passes an interrupt on.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul_files::{Cancel, FileProblem, WirePath};
use haul_units::{BitRate, Bytes};

use super::bars::Bars;
use super::lines::Lines;
use super::tally::{ActiveFile, Counts};
use super::{Style, Tally, json};
use crate::session::PathView;
use crate::{clock, interrupt};

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);
/// Time that the shown rate is averaged over.
const RATE_OVER: Duration = Duration::from_secs(5);

/// Reads how the path does.
pub type PathSource = Box<dyn Fn() -> PathView + Send + Sync>;

/// The watching thread, until [`Monitor::finish`].
pub struct Monitor {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    path: Arc<Mutex<Option<PathSource>>>,
}

/// One look.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Totals.
    pub counts: Counts,
    /// The path, while there is a connection.
    pub path: Option<PathView>,
    /// Rate at which bytes have arrived of late.
    pub rate: BitRate,
    /// Since the start.
    pub elapsed: Duration,
    /// A file under way, and how many more.
    pub active: Option<(ActiveFile, usize)>,
}

impl Look {
    /// Time until everything found has arrived, if that can be said.
    pub fn left(&self) -> Option<Duration> {
        let missing = self.counts.found.saturating_sub(self.counts.present());
        (self.counts.complete && self.rate > BitRate::ZERO).then(|| self.rate.time_for(missing))
    }
}

impl Monitor {
    /// Starts to watch. `verbose`: also name every finished file.
    pub fn start(style: Style, verbose: bool, tally: Arc<Tally>, cancel: Cancel) -> Self {
        let (stop, stopped) = mpsc::channel();
        let path: Arc<Mutex<Option<PathSource>>> = Arc::default();
        let source = Arc::clone(&path);
        let thread = thread::spawn(move || {
            let mut watch = Watch { view: View::new(style), verbose, tally, cancel, rates: Rates::start(), told: false };
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                watch.tick(source.lock().unwrap_or_else(PoisonError::into_inner).as_deref());
            }
            watch.tick(source.lock().unwrap_or_else(PoisonError::into_inner).as_deref());
            watch.view.end();
        });
        Self { stop: Some(stop), thread: Some(thread), path }
    }

    /// From now on the path is read there.
    pub fn watch_path(&self, source: PathSource) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// Shows what is left to show, and ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread keeps.
struct Watch {
    view: View,
    verbose: bool,
    tally: Arc<Tally>,
    cancel: Cancel,
    rates: Rates,
    /// Whether the user has been told that the interrupt was heard.
    told: bool,
}

impl Watch {
    fn tick(&mut self, path: Option<&(dyn Fn() -> PathView + Send + Sync)>) {
        for problem in self.tally.take_problems() {
            self.view.problem(&problem);
        }
        for file in self.tally.take_finished() {
            if self.verbose || matches!(self.view, View::Json(_)) {
                self.view.finished(&file);
            }
        }
        if interrupt::requested() && !self.told {
            self.told = true;
            self.view.note("stopping, and keeping what has arrived; interrupt again to end at once");
            self.cancel.cancel();
        }
        let counts = self.tally.counts();
        let now = clock::now();
        let look = Look {
            counts,
            path: path.map(|path| path()),
            rate: self.rates.add(now, counts.arrived),
            elapsed: now - self.rates.begun,
            active: self.tally.active(),
        };
        self.view.show(&look);
    }
}

/// Where looks go.
enum View {
    Quiet,
    Bars(Bars),
    Lines(Lines),
    Json(json::Events),
}

impl View {
    fn new(style: Style) -> Self {
        match style {
            Style::Quiet => Self::Quiet,
            Style::Bars => Self::Bars(Bars::new()),
            Style::Lines => Self::Lines(Lines::default()),
            Style::Json => Self::Json(json::Events::default()),
        }
    }

    fn show(&mut self, look: &Look) {
        match self {
            Self::Quiet => {}
            Self::Bars(bars) => bars.show(look),
            Self::Lines(lines) => lines.show(look),
            Self::Json(events) => events.show(look),
        }
    }

    fn problem(&self, problem: &FileProblem) {
        match self {
            Self::Bars(bars) => bars.above(|| super::print_error(&problem.to_string())),
            Self::Json(_) => {
                json::problem(problem);
                super::print_error(&problem.to_string());
            }
            Self::Quiet | Self::Lines(_) => super::print_error(&problem.to_string()),
        }
    }

    fn finished(&self, file: &ActiveFile) {
        let line = || super::print_line(&format!("{} ({})", WirePath::from(file.path.as_path()), file.size));
        match self {
            Self::Bars(bars) => bars.above(line),
            Self::Json(_) => json::file(file),
            Self::Quiet => {}
            Self::Lines(_) => line(),
        }
    }

    fn note(&self, text: &str) {
        match self {
            Self::Bars(bars) => bars.above(|| super::print_line(text)),
            Self::Lines(_) => super::print_line(text),
            Self::Quiet | Self::Json(_) => {}
        }
    }

    fn end(self) {
        if let Self::Bars(bars) = self {
            bars.end();
        }
    }
}

/// Arrivals over the last seconds.
struct Rates {
    begun: Instant,
    samples: std::collections::VecDeque<(Instant, Bytes)>,
}

impl Rates {
    fn start() -> Self {
        let begun = clock::now();
        Self { begun, samples: [(begun, Bytes::ZERO)].into() }
    }

    fn add(&mut self, now: Instant, arrived: Bytes) -> BitRate {
        self.samples.push_back((now, arrived));
        while self.samples.len() > 2 && self.samples.front().is_some_and(|(then, _)| now - *then > RATE_OVER) {
            self.samples.pop_front();
        }
        match self.samples.front() {
            Some(&(then, before)) if now > then => BitRate::of(arrived.saturating_sub(before), now - then),
            _ => BitRate::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rates = Rates::start();
        let at = |seconds| rates.begun + Duration::from_secs(seconds);
        let times = [at(1), at(2), at(10), at(11)];
        assert_eq!(rates.add(times[0], Bytes(1_000_000)), BitRate::mbps(8));
        assert_eq!(rates.add(times[1], Bytes(2_000_000)), BitRate::mbps(8));
        rates.add(times[2], Bytes(2_000_000));
        assert_eq!(rates.add(times[3], Bytes(2_000_000)), BitRate::ZERO);
    }

    #[test]
    fn time_left_is_not_guessed() {
        let counts = Counts { found: Bytes(2_000_000), arrived: Bytes(500_000), kept: Bytes(500_000), ..Counts::default() };
        let mut look = Look { counts, path: None, rate: BitRate::mbps(8), elapsed: Duration::ZERO, active: None };
        assert_eq!(look.left(), None);
        look.counts.complete = true;
        assert_eq!(look.left(), Some(Duration::from_secs(1)));
        look.rate = BitRate::ZERO;
        assert_eq!(look.left(), None);
    }
}
