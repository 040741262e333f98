//! Tables, verdicts and charts of the experiment on paths.

use std::time::Duration;

use super::cases::{Goal, Over, PAYLOAD, Pair, Seen, length, pairs};
use crate::experiment::comparison::{mbps, short};
use crate::experiment::{Judged, Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure, Line};

pub fn report(how: &str, scale: Scale, seen: &[Seen]) -> Report {
    let length = length(scale);
    let columns = ["links", "sent", "over", "Mbit/s", "of the links %", "by path MB"];
    let mut table = Table::new("paths", "Payload in the second half, and its part of what the links carry", &columns);
    table.rows = seen.iter().map(|one| row(one, length)).collect();
    let conditions = format!("mode fair, {} s each, {how}", length.as_secs());
    let charts = pairs(scale).iter().flat_map(|pair| [false, true].map(|is_ordered| chart(*pair, is_ordered, seen))).collect();
    Report {
        heading: format!("Two unlike links: {conditions}"),
        verdicts: pairs(scale).iter().flat_map(|pair| verdicts(*pair, seen, length)).collect(),
        tables: vec![table],
        charts: vec![(
            "paths".to_owned(),
            Figure { title: "Two unlike links".to_owned(), subtitle: conditions, charts, columns: 2 },
        )],
        data: seen
            .iter()
            .map(|one| {
                serde_json::json!({
                    "links": one.pair.name, "ordered": one.is_ordered, "over": over(one.pair, one.over),
                    "second_half_bps": one.rate(length).as_bps(), "by_path_bytes": one.by_path, "series": one.series,
                })
            })
            .collect(),
        ..Report::default()
    }
}

/// Of one run, in a line.
pub fn title(pair: Pair, of: Over, is_ordered: bool) -> String {
    format!("{}, {}, {}", pair.name, sent(is_ordered), over(pair, of))
}

fn sent(is_ordered: bool) -> &'static str {
    if is_ordered { "an ordered stream" } else { "blocks" }
}

fn over(pair: Pair, over: Over) -> String {
    match over {
        Over::Both => "both".to_owned(),
        Over::One(link) => {
            pair.links.get(link).map_or_else(String::new, |path| format!("{} {} ms", path.rate, path.rtt.as_millis()))
        }
    }
}

/// What the links of a run carry of payload, in Mbit/s.
fn capacity(pair: Pair, over: Over) -> f64 {
    let all = pair.links.iter().enumerate();
    let used = all.filter(|(number, _)| matches!(over, Over::Both) || over == Over::One(*number));
    used.map(|(_, path)| mbps(path.rate)).sum::<f64>() * PAYLOAD
}

fn row(one: &Seen, length: Duration) -> Vec<String> {
    let rate = mbps(one.rate(length));
    let by_path: Vec<String> = one.by_path.iter().map(|bytes| short(*bytes as f64 / 1e6)).collect();
    vec![
        one.pair.name.to_owned(),
        sent(one.is_ordered).to_owned(),
        over(one.pair, one.over),
        short(rate),
        format!("{:.1}", rate / capacity(one.pair, one.over) * 100.0),
        if by_path.is_empty() { "-".to_owned() } else { by_path.join(" + ") },
    ]
}

fn find(seen: &[Seen], pair: Pair, over: Over, is_ordered: bool) -> Option<&Seen> {
    seen.iter().find(|one| one.pair.name == pair.name && one.over == over && one.is_ordered == is_ordered)
}

fn verdicts(pair: Pair, seen: &[Seen], length: Duration) -> Vec<Judged> {
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let verdict = |is_ordered: bool| {
        let rate = |over| find(seen, pair, over, is_ordered).map(|one| mbps(one.rate(length)));
        let who = format!("{}, {}", pair.name, sent(is_ordered));
        match pair.goal {
            Goal::Sum(blocks, ordered) => {
                let part = rate(Over::Both).map(|both| both / capacity(pair, Over::Both));
                Judged::at_least(&who, "of the sum", part, if is_ordered { ordered } else { blocks }, percent)
            }
            Goal::First => {
                let part = rate(Over::Both).zip(rate(Over::One(0))).map(|(both, alone)| both / alone);
                Judged::at_least(&who, "of the first link alone", part, 1.0, percent)
            }
        }
    };
    [false, true].map(verdict).into()
}

fn chart(pair: Pair, is_ordered: bool, seen: &[Seen]) -> Chart {
    let of_chart = seen.iter().filter(|one| one.pair.name == pair.name && one.is_ordered == is_ordered);
    let line = |one: &Seen| {
        let rates = one.series.rates().map(|(end, rate)| (end.as_secs_f64(), mbps(rate)));
        Line::through(over(one.pair, one.over), rates.collect::<Vec<_>>()).plain()
    };
    let lines = of_chart.map(line).filter(|line| !line.points.is_empty()).collect();
    Chart::lines(Axis::linear("time", "s"), Axis::linear("arriving", "Mbit/s"), lines)
        .titled(format!("{}, {}", pair.name, sent(is_ordered)))
        .limit("what both carry", capacity(pair, Over::Both))
}
