//! haul beside other tools on the same paths: what `loss`, `rtt` and `startup` share.
//!
//! Simulated and measured results have the same form, [`Points`], so that tables and charts are made once.

use std::time::Duration;

use haul_lab::LinkOptions;
use haul_sim::{Flow, Path};
use haul_units::BitRate;
use serde::Serialize;

use super::Scale;
use super::ground::Ground;
use super::report::Table;
use super::simulated::{Contender, limit, plan, run_all};
use crate::bench::figures::look;
use crate::bench::{self, Grid, Measurement, Outcome, Results, RowResults, Series, Tool, Work, quantities};
use crate::plot::{Line, Point, Value};

/// One protocol on several paths.
#[derive(Debug, Clone, Serialize)]
pub struct Points {
    /// Who.
    pub title: String,
    /// Look in charts.
    pub look: usize,
    /// Where on the horizontal axis, and what the turns gave there.
    pub at: Vec<(f64, Vec<Turn>)>,
}

/// What one turn gave.
#[derive(Debug, Clone, Serialize)]
pub struct Turn {
    /// Over the whole time, the start included.
    #[serde(serialize_with = "quantities::bits_per_second::serialize", rename = "mean_bps")]
    pub mean: BitRate,
    /// Over the second half.
    #[serde(serialize_with = "quantities::bits_per_second::serialize", rename = "second_half_bps")]
    pub second_half: BitRate,
    /// Until 80 % of what the path carries arrived over a round trip.
    #[serde(serialize_with = "quantities::seconds::option::serialize", rename = "startup_s")]
    pub startup: Option<Duration>,
    /// What arrived when.
    pub series: Series,
}

/// The laboratory's link.
pub fn laboratory_rate(scale: Scale) -> BitRate {
    scale.pick(BitRate::mbps(100), BitRate::gbps(1))
}

/// The laboratory's round-trip time.
pub const LABORATORY_RTT: Duration = Duration::from_millis(100);

/// How long each flow lasts.
pub fn length(scale: Scale) -> Duration {
    Duration::from_secs(scale.pick(4, 20))
}

/// Lets each of these run over each path; the number is its place on the horizontal axis.
pub fn simulate(contenders: &[Contender], paths: &[(f64, Path)], length: Duration) -> Vec<Points> {
    let plans: Vec<_> = contenders
        .iter()
        .flat_map(|contender| paths.iter().map(|(_, path)| plan(*path, vec![Flow::endless(contender.kind, 0, 1)], length)))
        .collect();
    let mut runs = run_all(&plans).into_iter();
    let mut points = Vec::new();
    for contender in contenders {
        let of_paths = paths.iter().zip(runs.by_ref());
        let turns =
            of_paths.map(|((x, path), run)| (*x, run.series.into_iter().map(|series| turn(series, path, length)).collect()));
        points.push(Points { title: contender.title.to_owned(), look: contender.look, at: turns.collect() });
    }
    points
}

/// Which tools on which paths, how long, and how often.
pub struct Comparison<'a> {
    /// What a person calls it.
    pub name: &'static str,
    /// Who.
    pub tools: &'a [Tool],
    /// Places on the horizontal axis, and what is there.
    pub paths: &'a [(f64, LinkOptions)],
    /// Each turn's.
    pub length: Duration,
    /// Turns of each.
    pub repeat: u32,
}

/// Lets tools run over each path, in turns; and what was left out, and why.
pub fn measure(comparison: &Comparison<'_>, ground: &Ground<'_>) -> (Vec<Points>, Vec<String>) {
    let Comparison { name, tools, paths, length, repeat } = *comparison;
    let rows = paths.iter().map(|(_, link)| bench::Path::Wan(link.clone()));
    let grid = Grid::over(name, rows, &Work::Time(length), tools, repeat);
    let results = bench::run(&grid, ground.sites, ground.programs, &mut **ground.observer.borrow_mut());
    let points = tools.iter().map(|&tool| {
        let turns = |row: &RowResults| row.of(tool).map(measured_turn).collect();
        let at = paths.iter().zip(&results.rows).map(|((x, _), row)| (*x, turns(row))).collect();
        Points { title: tool.title().to_owned(), look: look(tool), at }
    });
    (points.filter(|points| points.at.iter().any(|(_, turns)| !turns.is_empty())).collect(), left_out(&results))
}

fn measured_turn(measurement: &Measurement) -> Turn {
    let Measurement { mean, second_half, startup, series, .. } = measurement;
    Turn { mean: *mean, second_half: second_half.unwrap_or(*mean), startup: *startup, series: series.clone() }
}

/// Each reason once.
fn left_out(results: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    for measurement in results.rows.iter().flat_map(|row| &row.measurements) {
        let title = measurement.tool.title();
        let note = match &measurement.outcome {
            Outcome::Skipped(why) => format!("{title}: left out, {why}"),
            Outcome::Failed(why) => format!("{title} on {}: failed, {why}", measurement.path),
            Outcome::Done | Outcome::GaveUp => continue,
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn turn(series: Series, path: &Path, length: Duration) -> Turn {
    Turn {
        mean: series.mean(length),
        second_half: series.second_half(length),
        startup: series.time_to(limit(path).scaled(STARTED), path.rtt.max(SHORTEST_WINDOW)),
        series,
    }
}

impl Points {
    /// A line through the means of some rate, in Mbit/s, with the spread of the turns.
    pub fn line(&self, rate: impl Fn(&Turn) -> BitRate) -> Line {
        let point = |(x, turns): &(f64, Vec<Turn>)| {
            Value::of(turns.iter().map(|turn| mbps(rate(turn)))).map(|value| Point { x: *x, value })
        };
        Line {
            name: self.title.clone(),
            points: self.at.iter().filter_map(point).collect(),
            markers: true,
            look: Some(self.look),
        }
    }

    /// Mean over the turns at one place.
    pub fn mean_at(&self, index: usize, rate: impl Fn(&Turn) -> BitRate) -> Option<BitRate> {
        let turns = &self.at.get(index)?.1;
        let sum: u64 = turns.iter().map(|turn| rate(turn).as_bps()).sum();
        (!turns.is_empty()).then(|| BitRate::from_bps(sum / turns.len() as u64))
    }
}

/// A row for each place, a column for each protocol: the mean with the second half in brackets.
pub fn rates_table(name: &str, title: &str, first: &str, all: &[Points], label: impl Fn(f64) -> String) -> Table {
    let titles = all.iter().map(|points| points.title.clone());
    let places: Vec<f64> = all.first().map(|points| points.at.iter().map(|(x, _)| *x).collect()).unwrap_or_default();
    let cell = |points: &Points, index: usize| {
        let mean = points.mean_at(index, |turn| turn.mean);
        let half = points.mean_at(index, |turn| turn.second_half);
        mean.zip(half).map_or_else(|| "-".to_owned(), |(mean, half)| format!("{} ({})", short(mbps(mean)), short(mbps(half))))
    };
    let row =
        |(index, x): (usize, &f64)| std::iter::once(label(*x)).chain(all.iter().map(|points| cell(points, index))).collect();
    let columns = std::iter::once(first.to_owned()).chain(titles).collect();
    Table { name: name.to_owned(), title: title.to_owned(), columns, rows: places.iter().enumerate().map(row).collect() }
}

/// In Mbit/s.
pub fn mbps(rate: BitRate) -> f64 {
    rate.as_bps() as f64 / 1e6
}

/// For a chart: means over half a second, in Mbit/s, by their ends in seconds.
pub fn smoothed(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let steps = (series.end().as_secs_f64() / SMOOTH.as_secs_f64()) as u32;
    (1..=steps).map(|step| ((SMOOTH * step).as_secs_f64(), mbps(series.mean_between(SMOOTH * (step - 1), SMOOTH * step))))
}

/// Three digits, or all before the point.
pub fn short(value: f64) -> String {
    match value.abs() {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A start is over at this share of what the path carries, over a round trip.
const STARTED: f64 = 0.8;
const SMOOTH: Duration = Duration::from_millis(500);
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
