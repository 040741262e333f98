//! Tables and charts of the pacing experiment.

use std::time::Duration;

use haul_proto::Pacing;
use haul_units::Bytes;

use super::cases::Group;
use super::seen::{Constant, Seen};
use crate::bench::Series;
use crate::experiment::comparison::{mbps, short};
use crate::experiment::{Report, Table};
use crate::plot::{Axis, BarSeries, Bars, Chart, Figure, Line, Value};

pub fn report(how: &str, length: Duration, seen: &[Seen]) -> Report {
    let rate = seen.first().map_or_else(String::new, |seen| seen.case.rate.to_string());
    let conditions = format!("{rate}, a switch with a queue of 8 ms, {} s each, {how}", length.as_secs_f64());
    let mut charts = Vec::new();
    for (name, title, group) in [
        ("one-flow", "One flow, with and without pacing", Group::One),
        ("two-flows", "Two flows, with and without pacing", Group::Two),
        ("cross-traffic", "One flow beside constant UDP traffic, with and without pacing", Group::Cross),
    ] {
        let of_group: Vec<&Seen> = seen.iter().filter(|seen| seen.case.group() == group).collect();
        let figure = over_time(title, &conditions, length, &of_group);
        if !figure.charts.is_empty() {
            charts.push((name.to_owned(), figure));
        }
    }
    let crossed: Vec<&Seen> = seen.iter().filter(|seen| seen.constant.is_some()).collect();
    if !crossed.is_empty() {
        charts.push(("cross-traffic-loss-and-jitter".to_owned(), harm(&conditions, &crossed)));
    }
    Report {
        heading: format!("Pacing: {conditions}"),
        tables: vec![table(seen, length)],
        charts,
        data: seen.iter().map(|seen| serde_json::json!({ "case": seen.case.title(), "paced": seen.case.pacing == Pacing::On, "series": seen.series })).collect(),
        ..Report::default()
    }
}

fn table(seen: &[Seen], length: Duration) -> Table {
    let columns =
        ["case", "pacing", "mean Mbit/s", "second half Mbit/s", "variation per second %", "UDP loss %", "UDP jitter ms"];
    let mut table =
        Table::new("pacing", "With and without pacing: all window-based flows together; the UDP flow beside them", &columns);
    let mut sorted: Vec<&Seen> = seen.iter().collect();
    // Stable: both ways of a case beside each other.
    let first = |title: String| seen.iter().position(|seen| seen.case.title() == title);
    sorted.sort_by_key(|seen| first(seen.case.title()));
    for seen in sorted {
        let all = sum(&seen.series);
        let constant = |print: &dyn Fn(Constant) -> String| seen.constant.map_or_else(|| "-".to_owned(), print);
        table.rows.push(vec![
            seen.case.title(),
            pacing(seen.case.pacing).to_owned(),
            short(mbps(all.mean(length))),
            short(mbps(all.second_half(length))),
            variation(&all, length).map_or_else(|| "-".to_owned(), |part| format!("{:.1}", part * 100.0)),
            constant(&|met| format!("{:.3}", met.loss * 100.0)),
            constant(&|met| format!("{:.3}", met.jitter.as_secs_f64() * 1e3)),
        ]);
    }
    table
}

/// In words.
pub fn pacing(pacing: Pacing) -> &'static str {
    match pacing {
        Pacing::On => "with",
        Pacing::Off => "without",
    }
}

/// What all flows got together, in the stretches of the one with most of them.
fn sum(all: &[Series]) -> Series {
    let Some(finest) = all.iter().max_by_key(|series| series.intervals().len()) else { return Series::default() };
    let mut before = Bytes::ZERO;
    let stretch = |end| {
        let arrived: Bytes = all.iter().map(|series| series.arrived_by(end)).sum();
        let bytes = arrived.saturating_sub(before);
        before = arrived;
        (end, bytes)
    };
    finest.intervals().iter().map(|interval| interval.end).map(stretch).collect()
}

/// Standard deviation by mean of the rate a second, in the second half.
fn variation(series: &Series, length: Duration) -> Option<f64> {
    let second = Duration::from_secs(1);
    let (first, last) = ((length / 2).as_secs() as u32, length.as_secs() as u32);
    let rates: Vec<f64> = (first..last).map(|n| mbps(series.mean_between(second * n, second * (n + 1)))).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    (mean > 0.0).then(|| squares.sqrt() / mean)
}

/// A chart for each title, with and without pacing in it.
fn over_time(title: &str, conditions: &str, length: Duration, seen: &[&Seen]) -> Figure {
    let mut titles: Vec<String> = Vec::new();
    for seen in seen {
        if !titles.contains(&seen.case.title()) {
            titles.push(seen.case.title());
        }
    }
    let chart = |title: &String| {
        let lines = seen.iter().filter(|seen| seen.case.title() == *title).flat_map(|seen| lines(seen)).collect();
        let rate = seen.first().map_or(1.0, |seen| mbps(seen.case.rate));
        let axes =
            (Axis::linear("time", "s").range(0.0, length.as_secs_f64()), Axis::linear("arriving", "Mbit/s").range(0.0, rate));
        Chart::lines(axes.0, axes.1, lines).titled(title.clone())
    };
    Figure { title: title.to_owned(), subtitle: conditions.to_owned(), charts: titles.iter().map(chart).collect(), columns: 2 }
}

fn lines(seen: &Seen) -> impl Iterator<Item = Line> {
    let (name, look) = if seen.case.pacing == Pacing::On { ("with pacing", 0) } else { ("without pacing", 1) };
    let second = |series: &Series| {
        let steps = series.end().as_secs() as u32;
        let one = Duration::from_secs(1);
        let rates: Vec<_> = (1..=steps).map(|n| (f64::from(n), mbps(series.mean_between(one * (n - 1), one * n)))).collect();
        rates
    };
    // The second flow is dashed: the same colour, eight looks on.
    let line = move |(flow, series): (usize, &Series)| {
        let name = if flow == 0 { name.to_owned() } else { format!("{name}, second flow") };
        Line::through(name, second(series)).plain().look(look + flow * 8)
    };
    seen.series.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect::<Vec<_>>().into_iter()
}

/// Loss and jitter of the constant flow as bars.
fn harm(conditions: &str, seen: &[&Seen]) -> Figure {
    let mut groups: Vec<String> = Vec::new();
    for seen in seen {
        if !groups.contains(&seen.case.short_title()) {
            groups.push(seen.case.short_title());
        }
    }
    let bars = |value: &dyn Fn(Constant) -> f64| {
        let of = |wanted: Pacing, name: &str, look: usize| {
            let value_of = |title: &String| {
                let found = seen.iter().find(|seen| seen.case.pacing == wanted && seen.case.short_title() == *title)?;
                found.constant.map(|met| Value { mean: value(met), spread: None })
            };
            BarSeries { name: name.to_owned(), values: groups.iter().map(value_of).collect(), look: Some(look) }
        };
        let series = vec![of(Pacing::On, "with pacing", 0), of(Pacing::Off, "without pacing", 1)];
        Bars { groups: groups.clone(), series }
    };
    let loss = Chart::bars("", Axis::linear("loss of the UDP flow", "%"), bars(&|met| met.loss * 100.0)).titled("loss");
    let jitter = Chart::bars("", Axis::linear("jitter of the UDP flow", "ms"), bars(&|met| met.jitter.as_secs_f64() * 1e3))
        .titled("jitter");
    let title = "What the flow does to constant UDP traffic beside it".to_owned();
    Figure { title, subtitle: conditions.to_owned(), charts: vec![loss, jitter], columns: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_added_by_time_whatever_their_stretches() {
        let ms = Duration::from_millis;
        let fine: Series = (1..=4).map(|n| (ms(n * 500), Bytes(100))).collect();
        let late: Series = [(ms(1000), Bytes(0)), (ms(2000), Bytes(400))].into_iter().collect();
        let both: Vec<_> = sum(&[fine, late]).intervals().iter().map(|interval| (interval.end, interval.bytes)).collect();
        assert_eq!(both, [(ms(500), Bytes(100)), (ms(1000), Bytes(100)), (ms(1500), Bytes(300)), (ms(2000), Bytes(300))]);
    }
}
