//! What the libraries log, for Python's logging.
//!
//! A thread of a library must not wait for Python, so its record goes into a queue of bounded length, which a thread of Python's empties (`haul/_logging.py`); of what finds no room only the number is kept.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Records that wait for Python, at most.
const MOST: usize = 1000;

/// Python's level, the target as Python names loggers, and the words.
type Record = (u8, String, String);

#[derive(Default)]
struct Waiting {
    records: VecDeque<Record>,
    dropped: u64,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { records: VecDeque::new(), dropped: 0 });
static FULLER: Condvar = Condvar::new();
static LEVEL: OnceLock<reload::Handle<LevelFilter, tracing_subscriber::Registry>> = OnceLock::new();

/// Logs from this level of Python's on.
#[pyfunction]
pub fn start_logging(py: Python<'_>, level: u8) {
    let filter = match level {
        0..=9 => LevelFilter::TRACE,
        10..=19 => LevelFilter::DEBUG,
        20..=29 => LevelFilter::INFO,
        30..=39 => LevelFilter::WARN,
        40..=49 => LevelFilter::ERROR,
        50.. => LevelFilter::OFF,
    };
    py.detach(|| {
        let handle = LEVEL.get_or_init(|| {
            let (layer, handle) = reload::Layer::new(filter);
            // Another subscriber is there only where another module of this process has one: then that one has the words.
            let _ = tracing_subscriber::registry().with(layer).with(ToPython).try_init();
            handle
        });
        let _ = handle.reload(filter);
    });
}

/// What was logged since the last call; waits for it, for a while.
#[pyfunction]
pub fn next_records(py: Python<'_>, timeout: f64) -> (Vec<Record>, u64) {
    py.detach(|| {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::from_secs(1));
        let waiting = lock();
        let (mut waiting, _) = FULLER
            .wait_timeout_while(waiting, timeout, |waiting| waiting.records.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut waiting.records).into(), std::mem::take(&mut waiting.dropped))
    })
}

struct ToPython;

impl<S: Subscriber> Layer<S> for ToPython {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut words = Words::default();
        event.record(&mut words);
        let level = match *event.metadata().level() {
            Level::TRACE => 5,
            Level::DEBUG => 10,
            Level::INFO => 20,
            Level::WARN => 30,
            Level::ERROR => 40,
        };
        let name = event.metadata().target().replace("::", ".").replacen("haul_", "haul.", 1);
        let mut waiting = lock();
        if waiting.records.len() >= MOST {
            waiting.dropped += 1;
            return;
        }
        waiting.records.push_back((level, name, words.message + &words.fields));
        FULLER.notify_one();
    }
}

#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ =
            if field.name() == "message" { write!(self.message, "{value:?}") } else { write!(self.fields, " {field}={value:?}") };
    }
}

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
