//! The thread that looks at a copy ten times a second and shows how it goes.

use std::sync::Arc;
use std::time::Duration;

use haul_copy::told::{Look, Rates, events, outage_words};
use haul_copy::{ActiveFile, CopyControl, PathProbe, Seen, Tally};
use haul_files::{FileProblem, Note, WirePath};
use haul_peer::{Outage, Silence};
use haul_units::Bytes;

use super::bars::Bars;
use super::lines::Lines;
use super::ticker::Ticker;
use super::{STOPPING, Style, json};
use crate::{clock, interrupt};

/// What is looked at.
pub struct Watched {
    /// Counts.
    pub tally: Arc<Tally>,
    /// How the path does.
    pub path: PathProbe,
    /// What the user wants of it meanwhile (`haul ctl`).
    pub control: Arc<CopyControl>,
}

/// Starts to watch. `verbose`: also name every finished file.
pub fn start(style: Style, verbose: bool, watched: Watched) -> Ticker {
    let watch = move || Watch {
        view: View::new(style),
        verbose,
        rates: Rates::start(clock::now()),
        told: false,
        seen: watched.control.seen(),
        watched,
        outage: Silence::default(),
    };
    Ticker::start(watch, Watch::tick, |watch| watch.view.end())
}

/// What the thread keeps.
struct Watch {
    view: View,
    verbose: bool,
    watched: Watched,
    rates: Rates,
    /// Whether the user has been told that the interrupt was heard.
    told: bool,
    /// What the user wanted when it was last looked at.
    seen: Seen,
    outage: Silence,
}

impl Watch {
    fn tick(&mut self) {
        let now = clock::now();
        self.report();
        let counts = self.watched.tally.counts();
        if counts.arrived > Bytes::ZERO || counts.arrived_files > 0 {
            interrupt::under_way();
        }
        self.tell_interrupt();
        self.watched.control.news(&mut self.seen).iter().for_each(|news| self.view.note(news));
        let look = Look {
            counts,
            path: (self.watched.path)(),
            rate: self.rates.add(now, counts.arrived),
            elapsed: now - self.rates.begun(),
            active: self.watched.tally.active(),
        };
        let rtt = Duration::from_micros(look.path.rtt_us);
        if let Some(said) = self.outage.look(look.path.silence, look.path.timeout, rtt) {
            self.view.outage(said);
        }
        self.view.show(&look);
    }

    fn report(&self) {
        if self.watched.tally.take_resumed() {
            self.view.resumed();
        }
        for problem in self.watched.tally.take_problems() {
            self.view.problem(&problem);
        }
        for note in self.watched.tally.take_notes() {
            self.view.remark(&note);
        }
        for file in self.watched.tally.take_finished() {
            if self.verbose || matches!(self.view, View::Json(_)) {
                self.view.finished(&file);
            }
        }
    }

    fn tell_interrupt(&mut self) {
        if interrupt::requested() && !self.told && interrupt::is_under_way() {
            self.told = true;
            self.view.note(STOPPING);
        }
    }
}

/// Where looks go.
enum View {
    Quiet,
    Bars(Box<Bars>),
    Lines(Lines),
    Json(json::Events),
}

impl View {
    fn new(style: Style) -> Self {
        match style {
            Style::Quiet => Self::Quiet,
            Style::Bars => Self::Bars(Box::new(Bars::new())),
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

    fn remark(&self, note: &Note) {
        match self {
            Self::Quiet => {}
            Self::Bars(bars) => bars.above(|| super::print_note(&note.to_string())),
            Self::Json(_) => json::print(&events::note(note)),
            Self::Lines(_) => super::print_note(&note.to_string()),
        }
    }

    fn problem(&self, problem: &FileProblem) {
        match self {
            Self::Bars(bars) => bars.above(|| super::print_error(&problem.to_string())),
            Self::Json(_) => {
                json::print(&events::problem(problem));
                super::print_error(&problem.to_string());
            }
            Self::Quiet | Self::Lines(_) => super::print_error(&problem.to_string()),
        }
    }

    fn finished(&self, file: &ActiveFile) {
        let line = || super::print_line(&format!("{} ({})", WirePath::from(file.path.as_path()), file.size));
        match self {
            Self::Bars(bars) => bars.above(line),
            Self::Json(_) => json::print(&events::file(file)),
            Self::Quiet => {}
            Self::Lines(_) => line(),
        }
    }

    fn outage(&self, said: Outage) {
        if let Self::Json(_) = self {
            json::print(&events::outage(said));
        } else {
            self.note(&outage_words(said));
        }
    }

    fn resumed(&self) {
        if let Self::Json(_) = self {
            super::print_event(&serde_json::json!({ "event": "resume" }));
        } else {
            self.note("going on with a copy that was interrupted");
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
