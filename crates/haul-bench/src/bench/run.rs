//! Measuring a grid, turn by turn.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_lab::{Side, WanSpec};
use haul_units::BitRate;

use super::duel::MeasureError;
use super::machine;
use super::measurement::{Measurement, Outcome, Results, RowResults, Usage};
use super::plan::{Cell, Grid, Path, Work};
use super::programs::Programs;
use super::series::Series;
use super::site::{Loopback, Observer, Site, Sites};
use super::tool::Kind;
use super::tools::{self, Bench, Measured};

/// Measures everything, in the order of [`Grid::cells`]; what was measured until then, where the observer does not go on.
pub fn run(grid: &Grid, sites: &dyn Sites, programs: &Programs, observer: &mut dyn Observer) -> Results {
    let rows = grid.rows.iter().map(|row| RowResults { row: row.clone(), measurements: Vec::new() }).collect();
    let mut results = Results { name: grid.name.clone(), facts: machine::facts(programs), rows };
    let begun = machine::processor_ticks();
    for cell in grid.cells() {
        if !observer.go_on() {
            break;
        }
        observer.begins(&cell);
        let measurement = match programs.missing(cell.tool).or_else(|| tools::missing_tcp(cell.tool)) {
            Some(missing) => without_figures(&cell, Outcome::Skipped(missing)),
            None => match one(&cell, sites, programs, &*observer) {
                Ok(measured) => figures(&cell, measured),
                Err(MeasureError::Interrupted) => break,
                Err(error) => without_figures(&cell, Outcome::Failed(error.to_string())),
            },
        };
        observer.measured(&cell, &measurement);
        if let Some(row) = results.rows.get_mut(cell.row) {
            row.measurements.push(measurement);
        }
    }
    results.facts.insert("load average at the end".to_owned(), machine::load());
    results.facts.extend(begun.and_then(machine::stolen).map(|part| (machine::STOLEN.to_owned(), part)));
    results
}

fn one(cell: &Cell, sites: &dyn Sites, programs: &Programs, observer: &dyn Observer) -> Result<Measured, MeasureError> {
    let spec = WanSpec { tcp: tools::tcp(cell.tool).map(str::to_owned), ..cell.path.wan(cell.turn) };
    let site = sites.up(&spec).map_err(MeasureError::Site)?;
    let site: Box<dyn Site> = if cell.path == Path::Loopback { Box::new(Loopback(site)) } else { site };
    if cell.path == Path::Loopback && cell.work.kind() == Kind::Memory {
        // Packets as everywhere else: with 64 KiB each, who finds that out would win by it alone.
        let mut command = site.command(Side::A, "ip".as_ref());
        let set = command.args(["link", "set", "lo", "mtu", "1500"]).status();
        set.map_err(|error| MeasureError::Start { what: "ip", error })?;
    }
    tools::measure(&Bench { cell, site: &*site, programs, observer })
}

fn figures(cell: &Cell, measured: Measured) -> Measurement {
    let Measured { series, time, bytes, gave_up, sender, receiver, settings, parts_s } = measured;
    let in_memory = !matches!(cell.work, Work::Files { .. });
    let window = cell.path.rtt().max(SHORTEST_WINDOW);
    let startup = cell.path.limit().and_then(|limit| series.time_to(limit.scaled(STARTED), window));
    Measurement {
        tool: cell.tool,
        turn: cell.turn,
        path: cell.path.clone(),
        outcome: if gave_up { Outcome::GaveUp } else { Outcome::Done },
        time,
        bytes,
        mean: BitRate::of(bytes, time),
        second_half: in_memory.then(|| series.second_half(time)),
        startup,
        series,
        sender,
        receiver,
        settings,
        parts_s,
    }
}

fn without_figures(cell: &Cell, outcome: Outcome) -> Measurement {
    Measurement {
        tool: cell.tool,
        turn: cell.turn,
        path: cell.path.clone(),
        outcome,
        time: Duration::ZERO,
        bytes: haul_units::Bytes::ZERO,
        mean: BitRate::ZERO,
        second_half: None,
        startup: None,
        series: Series::default(),
        sender: Usage::default(),
        receiver: Usage::default(),
        settings: String::new(),
        parts_s: BTreeMap::new(),
    }
}

/// A start is over at this share of what the link carries, over a round trip.
const STARTED: f64 = 0.8;
/// Intervals are of 0.1 s: a mean over less is that of a part of one.
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
