//! Tables and charts of the experiment on gaps.

use std::time::Duration;

use haul_netdev::ethernet::MOST;
use haul_units::{BitRate, Bytes, Distribution};

use super::cases::{Case, NEAR, Seen};
use crate::experiment::comparison::{mbps, short};
use crate::experiment::{Judged, Report, Table};
use crate::plot::{Axis, Chart, Figure, Line};

pub fn report(how: &str, seen: &[Seen]) -> Report {
    let columns = ["rate", "spaced by", "on the line Mbit/s", "place us", "p1 us", "p50 us", "p99 us", "in place %", "remark"];
    let mut table = Table::new("gaps", "Gaps between full frames, where the switch sees their ends", &columns);
    table.rows = seen.iter().map(row).collect();
    let mut cases: Vec<Case> = Vec::new();
    for one in seen {
        if !cases.contains(&one.case) {
            cases.push(one.case);
        }
    }
    let charts = cases.iter().map(|case| chart(*case, seen)).collect();
    let title = "Gaps between packets".to_owned();
    let subtitle = format!("{how}; the dashed line is where all should be");
    let figure = Figure { title, subtitle, charts, columns: 2 };
    let of_gaps = seen.iter().filter(|one| one.sender == "gap frames");
    let verdicts = of_gaps.map(|one| {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        Judged::at_least(&one.case.title(), "gaps within 5 % of their place", in_place(one), 0.99, percent)
    });
    Report {
        heading: format!("Gaps: {how}"),
        verdicts: verdicts.collect(),
        tables: vec![table],
        charts: vec![("gaps".to_owned(), figure)],
        data: seen
            .iter()
            .map(|one| {
                let classes: Vec<_> = one.gaps.classes().collect();
                serde_json::json!({ "case": one.case.title(), "spaced_by": one.sender, "gaps_ns": classes })
            })
            .collect(),
        ..Report::default()
    }
}

fn row(seen: &Seen) -> Vec<String> {
    let micros = |part| seen.gaps.quantile(part).map_or_else(|| "-".to_owned(), |gap| short(gap as f64 / 1e3));
    vec![
        seen.case.title(),
        seen.sender.clone(),
        mean(&seen.gaps).map_or_else(|| "-".to_owned(), |rate| short(mbps(rate))),
        short(seen.case.place().as_secs_f64() * 1e6),
        micros(0.01),
        micros(0.5),
        micros(0.99),
        in_place(seen).map_or_else(|| "-".to_owned(), |part| format!("{:.1}", part * 100.0)),
        seen.remark.clone(),
    ]
}

/// How many gaps do not exceed a time, over the time.
fn chart(case: Case, seen: &[Seen]) -> Chart {
    let lines = seen.iter().filter(|one| one.case == case).map(|one| {
        let all = one.gaps.count().max(1) as f64;
        let mut below = 0;
        let points = one.gaps.classes().map(|(low, high, count)| {
            below += count;
            // What is shorter than a frame on the line is measured, not sent.
            ((low + high) as f64 / 2e3, below as f64 * 100.0 / all)
        });
        Line::through(one.sender.clone(), points.filter(|(micros, _)| *micros > 0.5).collect::<Vec<_>>()).plain()
    });
    let place = case.place().as_secs_f64() * 1e6;
    let axes = (Axis::log("gap", "us").range(0.5, 20_000.0), Axis::linear("gaps not longer", "%").range(0.0, 100.0));
    let guide = Line::through("its place", [(place, 0.0), (place, 100.0)]).plain().look(15);
    Chart::lines(axes.0, axes.1, lines.chain([guide]).collect()).titled(case.title())
}

/// The rate of full frames with these gaps.
fn mean(gaps: &Distribution) -> Option<BitRate> {
    let nanos: u128 = gaps.classes().map(|(low, high, count)| u128::from(low + (high - low) / 2) * u128::from(count)).sum();
    let time = Duration::from_nanos(u64::try_from(nanos).ok()?);
    (!time.is_zero()).then(|| BitRate::of(Bytes(MOST.0 * gaps.count()), time))
}

/// The part of the gaps that are near what the rate means: their classes touch it.
fn in_place(seen: &Seen) -> Option<f64> {
    let place = seen.case.place().as_nanos() as f64;
    let near = |(low, high, _): &(u64, u64, u64)| *high as f64 >= place * (1.0 - NEAR) && *low as f64 <= place * (1.0 + NEAR);
    let all = seen.gaps.count();
    let near: u64 = seen.gaps.classes().filter(near).map(|(_, _, count)| count).sum();
    (all > 0).then(|| near as f64 / all as f64)
}
