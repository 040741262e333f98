//! What the user sees of a job of a fleet: a row for each server and one for all of them, a line now and then in a log, JSON for programs.

mod table;

use std::sync::Arc;
use std::time::Duration;

use haul_copy::told::Rates;
use haul_fleet::told::{self, Look, Said, events, text};
use haul_units::Cancel;

use self::table::Table;
use super::ticker::Ticker;
use super::{STOPPING, Style};
use crate::exit::Failure;
use crate::{clock, interrupt, output};

/// What a job tells; of a server that does not come, with what is said of that.
pub type JobTally = told::JobTally<Failure>;

/// Tells people of the servers that do not come, where nothing is shown.
pub fn print_absent(tally: &JobTally) {
    for (_, said) in tally.take_said() {
        if let Said::Absent { untold: Some(failure), .. } = said {
            output::print_failure(&failure);
        }
    }
}

/// Time between lines in a log.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Time between progress events.
const EVENT_EVERY: Duration = Duration::from_secs(1);
/// Starts to show a job, and to pass an interrupt on to it.
pub fn show(style: Style, tally: Arc<JobTally>, cancel: Cancel) -> Ticker {
    let watch = move || Watch { view: View::new(style), tally, cancel, rates: Rates::start(clock::now()), told: false };
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
        if interrupt::requested() {
            if !self.told && interrupt::is_under_way() {
                self.told = true;
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
                    output::print_line(&text::total(look));
                }
            }
            Self::Json(printed) => {
                if look.since_command >= *printed + EVENT_EVERY {
                    *printed = look.since_command;
                    output::print_event(&events::progress(look));
                }
            }
        }
    }

    fn say(&self, at: Duration, said: &Said<Failure>) {
        if let Self::Json(_) = self {
            output::print_event(&events::said(at, said));
        }
        match said {
            Said::Problem(problem) => self.above(|| output::print_error(&problem.to_string())),
            Said::Down { member, why } => self.above(|| output::print_error(&format!("{member}: {why}; left out from here on"))),
            Said::Absent { untold, .. } => untold.iter().for_each(|failure| self.above(|| output::print_failure(failure))),
            _ if matches!(self, Self::Json(_) | Self::Quiet) => {}
            Said::Note { member, note } => {
                let from = member.as_deref().map(|member| format!("{member}: ")).unwrap_or_default();
                self.above(|| output::print_note(&format!("{from}{note}")));
            }
            Said::Up { .. } | Said::Listed { .. } | Said::Ordered { .. } | Said::File { .. } => self.verbosely(said),
        }
    }

    fn verbosely(&self, said: &Said<Failure>) {
        if let Some(line) = text::said(said, matches!(self, Self::Lines(_))) {
            self.above(|| output::print_line(&line));
        }
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
