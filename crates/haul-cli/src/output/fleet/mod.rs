//! What the user sees of a job of a fleet: a row for each server and one for all of them, a line now and then in a log, JSON for programs.

mod json;
mod look;
mod rows;
mod table;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul_copy::milliseconds;
use haul_files::WirePath;
use haul_fleet::{AbsentError, JobEvent, JobObserver, Snapshot};
use haul_units::{Bytes, Cancel};

use self::look::{Look, Said};
use self::table::Table;
use super::monitor::Rates;
use super::ticker::Ticker;
use super::{STOPPING, Style};
use crate::exit::Failure;
use crate::{clock, interrupt, output};

pub use self::json::members as members_json;
pub use self::rows::summary as member_summary;

/// Time between lines in a log.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Time between progress events.
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// What waits to be shown at most: ten thousand small files a tick are more than anybody reads.
const MAX_SAID: usize = 10_000;

/// Keeps what a job tells until it is shown.
#[derive(Debug)]
pub struct JobTally {
    /// Whether finished files and orders are wanted.
    names: bool,
    /// When the command began.
    begun: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    latest: Snapshot,
    said: VecDeque<(Duration, Said)>,
}

impl JobTally {
    /// `names`: whether finished files and orders are wanted.
    pub fn new(names: bool) -> Self {
        Self { names, begun: clock::now(), inner: Mutex::default() }
    }

    /// How far the job was when it last said.
    pub fn latest(&self) -> Snapshot {
        self.lock().latest.clone()
    }

    /// Since the command began.
    fn elapsed(&self) -> Duration {
        clock::now() - self.begun
    }

    /// A server that has not come up. It was told of to people as the failure that it is.
    pub fn absent(&self, member: &str, why: &AbsentError) {
        self.say(Said::Absent { member: member.to_owned(), why: why.to_string(), failure: None });
    }

    /// A server that does not come up, of which people are still to be told.
    pub fn left_out(&self, member: &str, why: String, failure: Failure) {
        self.say(Said::Absent { member: member.to_owned(), why, failure: Some(failure) });
    }

    /// Tells people of those, where nothing is shown.
    pub fn print_absent(&self) {
        for (_, said) in self.take_said() {
            if let Said::Absent { failure: Some(failure), .. } = said {
                output::print_failure(&failure);
            }
        }
    }

    fn say(&self, said: Said) {
        let at = self.elapsed();
        let mut inner = self.lock();
        // What is wrong is never left out.
        if inner.said.len() < MAX_SAID || matches!(said, Said::Problem(_) | Said::Down { .. } | Said::Absent { .. }) {
            inner.said.push_back((at, said));
        }
    }

    fn take_said(&self) -> VecDeque<(Duration, Said)> {
        std::mem::take(&mut self.lock().said)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobObserver for JobTally {
    fn event(&self, event: &JobEvent<'_>) {
        let said = match event {
            JobEvent::Progress(snapshot) => {
                self.lock().latest = (*snapshot).clone();
                return;
            }
            JobEvent::Up { member, rtt } => Said::Up { member: (*member).to_owned(), rtt: *rtt },
            JobEvent::Down { member, why } => Said::Down { member: (*member).to_owned(), why: (*why).to_owned() },
            JobEvent::Listed { member, files, bytes } => {
                Said::Listed { member: (*member).to_owned(), files: *files, bytes: *bytes }
            }
            JobEvent::Ordered { member, path, range, why } if self.names => {
                Said::Ordered { member: (*member).to_owned(), path: path.to_path_buf(), range: range.clone(), why: *why }
            }
            JobEvent::FileFinished { member, path, size } if self.names => {
                Said::File { member: member.map(str::to_owned), path: path.to_path_buf(), size: *size }
            }
            JobEvent::Problem(problem) => Said::Problem((*problem).clone()),
            JobEvent::Note(note) => Said::Note((*note).clone()),
            _ => return,
        };
        self.say(said);
    }
}

/// Starts to show a job, and to pass an interrupt on to it.
pub fn show(style: Style, tally: Arc<JobTally>, cancel: Cancel) -> Ticker {
    let watch = move || Watch { view: View::new(style), tally, cancel, rates: Rates::start(), told: false };
    Ticker::start(watch, Watch::tick, |watch| watch.view.end())
}

struct Watch {
    view: View,
    tally: Arc<JobTally>,
    cancel: Cancel,
    rates: Rates,
    /// Whether the user has been told that the interrupt was heard.
    told: bool,
}

impl Watch {
    fn tick(&mut self) {
        for (at, said) in self.tally.take_said() {
            self.view.say(at, &said);
        }
        let latest = self.tally.latest();
        if latest.bytes_done > latest.bytes_kept || latest.files_done > 0 {
            interrupt::under_way();
        }
        if interrupt::requested() && !self.told {
            self.told = true;
            if interrupt::is_under_way() {
                self.view.note(STOPPING);
            }
            self.cancel.cancel();
        }
        let rate = self.rates.add(clock::now(), latest.bytes_done.saturating_sub(latest.bytes_kept));
        self.view.show(&Look { job: latest, rate, since_command: self.tally.elapsed() });
    }
}

/// Where looks go.
enum View {
    Quiet,
    Table(Box<Table>),
    Lines(Duration),
    Json(Duration),
}

impl View {
    fn new(style: Style) -> Self {
        match style {
            Style::Quiet => Self::Quiet,
            Style::Bars => Self::Table(Box::new(Table::new())),
            Style::Lines => Self::Lines(Duration::ZERO),
            Style::Json => Self::Json(Duration::ZERO),
        }
    }

    fn show(&mut self, look: &Look) {
        match self {
            Self::Quiet => {}
            Self::Table(table) => table.show(look),
            Self::Lines(printed) => {
                if look.since_command >= *printed + LINE_EVERY {
                    *printed = look.since_command;
                    output::print_line(&rows::total(look));
                }
            }
            Self::Json(printed) => {
                if look.since_command >= *printed + EVENT_EVERY {
                    *printed = look.since_command;
                    output::print_event(&json::progress(look));
                }
            }
        }
    }

    fn say(&self, at: Duration, said: &Said) {
        if let Self::Json(_) = self {
            output::print_event(&json::said(at, said));
        }
        match said {
            Said::Problem(problem) => self.above(|| output::print_error(&problem.to_string())),
            Said::Down { member, why } => self.above(|| output::print_error(&format!("{member}: {why}; left out from here on"))),
            Said::Absent { failure, .. } => failure.iter().for_each(|failure| self.above(|| output::print_failure(failure))),
            _ if matches!(self, Self::Json(_) | Self::Quiet) => {}
            Said::Note(note) => self.above(|| output::print_note(&note.to_string())),
            Said::Up { .. } | Said::Listed { .. } | Said::Ordered { .. } | Said::File { .. } => self.verbosely(said),
        }
    }

    /// Only told of where names are wanted; a table shows the rest by itself.
    fn verbosely(&self, said: &Said) {
        let line = match said {
            Said::File { member: Some(member), path, size } => {
                format!("{} ({size}) on {member}", WirePath::from(path.as_path()))
            }
            Said::File { member: None, path, size } => format!("{} ({size})", WirePath::from(path.as_path())),
            Said::Ordered { member, path, range, why } => {
                let (path, length) = (WirePath::from(path.as_path()), Bytes(range.end - range.start));
                format!("{member}: {path} from {}, {length}{}", Bytes(range.start), rows::because(*why))
            }
            // Where the first answer came through ssh, the distance is known a little later.
            Said::Up { member, rtt } if matches!(self, Self::Lines(_)) && rtt.is_zero() => format!("{member}: up"),
            Said::Up { member, rtt } if matches!(self, Self::Lines(_)) => {
                format!("{member}: up, RTT {}", milliseconds(u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)))
            }
            Said::Listed { member, files, bytes } if matches!(self, Self::Lines(_)) => {
                let plural = if *files == 1 { "" } else { "s" };
                format!("{member}: has {files} file{plural}, {bytes}")
            }
            _ => return,
        };
        self.above(|| output::print_line(&line));
    }

    fn note(&self, text: &str) {
        if !matches!(self, Self::Quiet | Self::Json(_)) {
            self.above(|| output::print_line(text));
        }
    }

    fn above(&self, print: impl FnOnce()) {
        match self {
            Self::Table(table) => table.above(print),
            _ => print(),
        }
    }

    fn end(self) {
        if let Self::Table(table) = self {
            table.end();
        }
    }
}
