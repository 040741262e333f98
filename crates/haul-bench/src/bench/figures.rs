//! Charts of results: throughput against loss, against round-trip time, over time, and how long files took.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_lab::LinkOptions;

use super::measurement::{Results, RowResults};
use super::plan::Work;
use super::tool::{Kind, Tool};
use crate::plot::{Axis, BarSeries, Bars, Chart, Figure, Line, Point, Value};

/// Name of the file, and what is in it; whatever the results have the rows for.
pub fn figures(results: &Results) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    figures.extend(sweep(results, &LOSS).map(|figure| ("loss".to_owned(), figure)));
    figures.extend(sweep(results, &RTT).map(|figure| ("rtt".to_owned(), figure)));
    let over_time = |(number, row): (usize, &RowResults)| Some((format!("time-{}", number + 1), over_time(row)?));
    figures.extend(results.rows.iter().enumerate().filter_map(over_time));
    figures.extend(files(results).map(|figure| ("files".to_owned(), figure)));
    figures
}

/// What is varied, and what is the same in a chart.
struct Sweep {
    title: &'static str,
    axis: fn() -> Axis,
    place: fn(&LinkOptions) -> f64,
    group: fn(&LinkOptions) -> String,
}

const LOSS: Sweep = Sweep {
    title: "Throughput against packet loss",
    axis: || Axis::log_and_zero("packets lost", "%"),
    place: |link| link.loss.as_f64() * 100.0,
    group: |link| format!("{}, {} ms", link.rate, link.rtt.as_secs_f64() * 1e3),
};

const RTT: Sweep = Sweep {
    title: "Throughput against round-trip time",
    axis: || Axis::log("round-trip time", "ms"),
    place: |link| link.rtt.as_secs_f64() * 1e3,
    group: |link| format!("{}, {} loss", link.rate, link.loss),
};

/// A chart for each group of rows that differ in nothing else; nothing where no group has two.
fn sweep(results: &Results, sweep: &Sweep) -> Option<Figure> {
    let mut groups: BTreeMap<String, Vec<(f64, &RowResults)>> = BTreeMap::new();
    let in_memory = results.rows.iter().filter(|row| row.row.work.kind() == Kind::Memory);
    for (row, link) in in_memory.filter_map(|row| Some((row, row.row.path.link()?))) {
        groups.entry((sweep.group)(link)).or_default().push(((sweep.place)(link), row));
    }
    groups.retain(|_, rows| {
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        rows.len() > 1
    });
    let chart = |(name, rows): (&String, &Vec<(f64, &RowResults)>)| {
        let lines: Vec<Line> = Tool::all().filter_map(|tool| sweep_line(tool, rows)).collect();
        let axes = ((sweep.axis)(), Axis::log("mean throughput, start included", "Mbit/s"));
        (!lines.is_empty()).then(|| Chart::lines(axes.0, axes.1, lines).titled(name.clone()))
    };
    let charts: Vec<Chart> = groups.iter().filter_map(chart).collect();
    let columns = if charts.len() > 1 { 2 } else { 1 };
    (!charts.is_empty()).then(|| Figure { title: sweep.title.to_owned(), subtitle: conditions(results), charts, columns })
}

fn sweep_line(tool: Tool, rows: &[(f64, &RowResults)]) -> Option<Line> {
    let point = |&(x, row): &(f64, &RowResults)| {
        // A scale of powers of ten has no place for nothing.
        let rates = row.of(tool).map(|turn| (turn.mean.as_bps() as f64 / 1e6).max(LEAST_MBPS));
        Some(Point { x, value: Value::of(rates)? })
    };
    let points: Vec<Point> = rows.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| Line { name: tool.title().to_owned(), points, markers: true, look: Some(look(tool)) })
}

/// What arrived over time in the first turn of each tool.
fn over_time(row: &RowResults) -> Option<Figure> {
    if row.row.work.kind() == Kind::Files {
        return None;
    }
    let mut end = Duration::ZERO;
    let mut lines = Vec::new();
    for tool in Tool::all() {
        let Some(turn) = row.of(tool).next().filter(|turn| !turn.series.intervals().is_empty()) else { continue };
        end = end.max(turn.series.end());
        let rates = turn.series.rates().map(|(end, rate)| (end.as_secs_f64(), rate.as_bps() as f64 / 1e6));
        lines.push(Line::through(tool.title(), rates).plain().look(look(tool)));
    }
    if lines.is_empty() {
        return None;
    }
    let axes =
        (Axis::linear("time since the connection was up", "s").range(0.0, end.as_secs_f64()), Axis::linear("arriving", "Mbit/s"));
    let chart = Chart::lines(axes.0, axes.1, lines);
    let chart = match row.row.path.limit() {
        Some(limit) => chart.limit("what the link carries of haul's payload", limit.as_bps() as f64 / 1e6),
        None => chart,
    };
    Some(Figure::single("What arrives over time", format!("{}, first turn of each", row.row.path), chart))
}

/// How long the files of each row took.
fn files(results: &Results) -> Option<Figure> {
    let rows: Vec<&RowResults> = results.rows.iter().filter(|row| matches!(row.row.work, Work::Files { .. })).collect();
    let times = |tool: Tool| {
        let of = |row: &&RowResults| Value::of(row.of(tool).map(|turn| turn.time.as_secs_f64()));
        let values: Vec<Option<Value>> = rows.iter().map(of).collect();
        let series = BarSeries { name: tool.title().to_owned(), values, look: Some(look(tool)) };
        series.values.iter().any(Option::is_some).then_some(series)
    };
    let series: Vec<BarSeries> = Tool::all().filter_map(times).collect();
    if series.is_empty() {
        return None;
    }
    let groups = rows.iter().map(|row| format!("{}, {}", row.row.work, row.row.path)).collect();
    let chart = Chart::bars("", Axis::linear("time, logging in included", "s"), Bars { groups, series });
    Some(Figure::single("Copying files", conditions(results), chart))
}

fn conditions(results: &Results) -> String {
    let turns = results.rows.iter().flat_map(|row| &row.measurements).map(|turn| turn.turn + 1).max().unwrap_or(0);
    let fact = |name: &str| results.facts.get(name).map_or("", String::as_str);
    let turns = if turns == 1 { "one turn".to_owned() } else { format!("mean of {turns} turns and their spread") };
    format!("{turns}; {}, {} cores, {}", fact("cpu"), fact("cores"), fact("date"))
}

/// A tool looks the same in all charts.
pub fn look(tool: Tool) -> usize {
    match tool {
        Tool::Haul | Tool::HaulCp => 0,
        Tool::Cubic | Tool::Scp => 1,
        Tool::Bbr | Tool::Rsync => 2,
        Tool::Reno | Tool::Tar => 3,
        Tool::Udt | Tool::Sftp => 4,
        Tool::Srt | Tool::Gridftp => 5,
        Tool::QuicCubic | Tool::GridftpBbr => 6,
        Tool::QuicBbr | Tool::Mscp => 7,
        Tool::HaulQuickstart | Tool::HaulCpAgain => 8,
        Tool::HaulModest | Tool::HaulCpTcp => 9,
        Tool::HaulAggressive | Tool::HaulCpSsh => 10,
        Tool::HaulCpDaemon => 11,
    }
}

/// Nothing, where a chart has no place for it.
const LEAST_MBPS: f64 = 0.01;
