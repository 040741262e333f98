//! Tables, goals and charts of the study.

use std::time::Duration;

use haul_scenarios::fattree::{Load, Pattern, Summary, Trace, Tree};

use super::cells::{Cell, Measured, alike};
use crate::experiment::comparison::short;
use crate::experiment::{Judged, Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure, Line};

pub fn report(all: &[Measured], typical: &[(Pattern, Trace)], scale: Scale) -> Report {
    let (cells, crowded): (Vec<Measured>, Vec<Measured>) = all.iter().cloned().partition(|cell| cell.cell.tree == Tree::Study);
    let cells = &cells[..];
    let flows: usize = cells.iter().map(|cell| cell.shorts.len()).sum();
    let events: u64 = all.iter().map(|cell| cell.events).sum();
    let mut charts = completion(cells, "simulated FatTree");
    if !typical.is_empty() {
        charts.push(("patterns".to_owned(), pictures(typical)));
    }
    Report {
        heading: format!(
            "FatTree, simulated: k = 4, 100, 200 and 400 Mbit/s, 0.5 ms, queues of 100 KB; {flows} short flows in {} cells",
            cells.len()
        ),
        verdicts: scale.pick(Vec::new(), verdicts(cells)),
        tables: vec![with_published(times(cells)), patterns(cells), longs(cells), crowded_tree(&crowded)],
        charts,
        notes: vec![
            format!(
                "the study's own simulation has rows of its own. Its hosts' traffic matrix, subflows' start and TCP are not published in full: here a third \
                 of the hosts send without end to a host each, TCP is CUBIC with an initial window of 10 packets, and the others send to random hosts. Its \
                 flows wait for a timer more often, as those with a smaller initial window would: fewer packets follow whose acknowledgements tell of a loss"
            ),
            "a long flow's goodput is compared on the wire: a packet of 1500 bytes carries 1428 of haul's and 1448 of TCP's".to_owned(),
            "marked: queues mark what finds more than 30 KB before it, and the long flows heed that".to_owned(),
            "timers: of TCP those of handshakes too, of haul the probe timers alone".to_owned(),
            "the figures of MMPTCP's paper are as they are quoted elsewhere".to_owned(),
            "a query is over with the last of its eight answers".to_owned(),
            "pattern by rule: time first, then whether anything was sent again; what is in none of the four has a column of its own".to_owned(),
            format!("{events} events"),
        ],
        data: data(cells),
        ..Report::default()
    }
}

/// Every time and rate, for programs.
pub fn data(cells: &[Measured]) -> serde_json::Value {
    let of = cells.iter().map(|cell| {
        serde_json::json!({
            "short": cell.cell.foreground.title, "load": load_title(cell.cell.load), "long": cell.cell.background_title(),
            "crowd": cell.cell.crowd, "times_ms": cell.times().ended_ms(), "long_mbps": cell.longs_mbps,
        })
    });
    of.collect()
}

/// A figure for each load.
pub fn completion(cells: &[Measured], network: &str) -> Vec<(String, Figure)> {
    let figure = |(load, title, name): (Load, &str, &str)| {
        let of: Vec<&Measured> = cells.iter().filter(|cell| cell.cell.load == load).collect();
        (!of.is_empty()).then(|| (format!("completion-{name}"), distributions(&of, title, network)))
    };
    LOADS.into_iter().filter_map(figure).collect()
}

/// Issue of the study: long flows of haul do no more harm than TCP's, and carry what multipath TCP carries; haul's short flows are faster.
pub fn verdicts(cells: &[Measured]) -> Vec<Judged> {
    let mut verdicts = Vec::new();
    for reference in cells.iter().filter(|cell| among(cell, "TCP") && cell.cell.foreground.title == "TCP") {
        let same = |cell: &&Measured| cell.cell.load == reference.cell.load && alike(cell.cell.crowd, reference.cell.crowd);
        let place = format!("{}, {:.0} % long", load_title(reference.cell.load), reference.cell.crowd * 100.0);
        let beside_haul = cells
            .iter()
            .filter(same)
            .filter(|cell| cell.cell.foreground.title == "TCP" && cell.cell.background_title().starts_with("haul"));
        // In simulation LIA, which is the first of several.
        let is_mptcp =
            |cell: &&Measured| cell.cell.background_title().starts_with("MPTCP") && cell.cell.foreground.title == "TCP";
        let mptcp = cells.iter().filter(same).find(is_mptcp);
        for cell in beside_haul {
            let who = format!("TCP among {}, {place}", cell.cell.background_title());
            let (ours, theirs) = (cell.times(), reference.times());
            verdicts.push(no_longer(&who, "mean", mean(&ours), mean(&theirs), "TCP"));
            verdicts.push(no_longer(&who, "p95", ours.quantile_ms(0.95), theirs.quantile_ms(0.95), "TCP"));
            if let Some(mptcp) = mptcp.filter(|_| cell.cell.background_title().ends_with("4 paths")) {
                let rate = |mbps: f64| format!("{mbps:.1} Mbit/s");
                verdicts.push(Judged::at_least(
                    &who,
                    "a long flow takes of the wire",
                    Some(cell.mean_wire_mbps()),
                    mptcp.mean_wire_mbps(),
                    rate,
                ));
            }
        }
    }
    for ours in cells.iter().filter(|cell| cell.cell.foreground.title.starts_with("haul")) {
        let same = |cell: &&Measured| {
            cell.cell.load == ours.cell.load
                && alike(cell.cell.crowd, ours.cell.crowd)
                && cell.cell.background_title() == ours.cell.background_title()
                && cell.cell.foreground.title == "TCP"
        };
        let Some(tcp) = cells.iter().find(same) else { continue };
        let who = format!(
            "{} among {}, {}, {:.0} % long",
            ours.cell.foreground.title,
            ours.cell.background_title(),
            load_title(ours.cell.load),
            ours.cell.crowd * 100.0
        );
        let among = ours.cell.background_title();
        let (ours, theirs) = (ours.times(), tcp.times());
        verdicts.push(no_longer(&who, "mean", mean(&ours), mean(&theirs), among));
        verdicts.push(no_longer(&who, "p99", ours.quantile_ms(0.99), theirs.quantile_ms(0.99), among));
    }
    verdicts
}

/// A time that is to be no longer than that of TCP's flows among these: where some of them never ended, it has nothing to be held against.
fn no_longer(who: &str, what: &str, ours: f64, theirs: f64, among: &str) -> Judged {
    let judged = Judged::at_most(who, what, Some(ours), theirs, ms);
    let none = || format!("{what} at most that of TCP among {among}, some of whose flows never ended");
    Judged { goal: if theirs.is_infinite() { none() } else { judged.goal }, ..judged }
}

fn among(cell: &Measured, title: &str) -> bool {
    cell.cell.background_title() == title
}

/// Of all flows: where one never ended there is none.
fn mean(summary: &Summary) -> f64 {
    if summary.never == 0 { summary.mean_ms } else { f64::INFINITY }
}

pub fn times(cells: &[Measured]) -> Table {
    let late_ms = LATE_MS * f64::from(cells.iter().map(|cell| cell.slower).max().unwrap_or(1));
    let late = format!("> {late_ms:.0} ms");
    let mut columns = vec![
        "short flows",
        "by",
        "among",
        "hosts with long %",
        "n",
        "mean ms",
        "sd",
        "p50",
        "p95",
        "p99",
        &late,
        "never",
        "timers",
    ];
    let is_busy = cells.iter().any(|cell| cell.machine_busy.is_some());
    columns.extend(is_busy.then_some("machine busy %"));
    let mut table = Table::new("times", "Completion times of short flows", &columns);
    table.rows = cells
        .iter()
        .map(|measured| {
            let summary = measured.times();
            let mut row = names(&measured.cell);
            row.push(measured.shorts.len().to_string());
            row.extend([mean(&summary), summary.sd_ms].map(cell));
            row.extend([0.5, 0.95, 0.99].map(|part| cell(summary.quantile_ms(part))));
            let late = summary.times_ms.iter().filter(|time| **time > late_ms).count();
            row.extend([late.to_string(), summary.never.to_string(), measured.timeouts().to_string()]);
            let busy = || measured.machine_busy.map_or_else(|| "-".to_owned(), |busy| format!("{:.0}", busy * 100.0));
            row.extend(is_busy.then(busy));
            row
        })
        .collect();
    table
}

/// The study's own figures below ours.
fn with_published(mut table: Table) -> Table {
    for (among, mean, sd, p95) in PUBLISHED {
        let words = ["70 KB", "TCP, the study's", among, "-", "-", mean, sd, "-", p95, "-", "-", "-", "-"];
        table.rows.push(words.map(str::to_owned).to_vec());
    }
    table
}

/// MMPTCP's tree, with its figures beside ours.
fn crowded_tree(cells: &[Measured]) -> Table {
    let columns = [
        "short and long flows",
        "n",
        "mean ms",
        "sd",
        "p50",
        "p95",
        "p99",
        "> 200 ms",
        "timers",
        "long: mean Mbit/s",
        "core used %",
    ];
    let mut table = Table::new("crowded", CROWDED, &columns);
    table.rows = cells
        .iter()
        .map(|measured| {
            let summary = measured.times();
            let mut row = vec![measured.cell.foreground.title.to_owned(), measured.shorts.len().to_string()];
            row.extend([mean(&summary), summary.sd_ms].map(cell));
            row.extend([0.5, 0.95, 0.99].map(|part| cell(summary.quantile_ms(part))));
            let late = summary.times_ms.iter().filter(|time| **time > LATE_MS).count();
            row.extend([late.to_string(), measured.timeouts().to_string(), short(measured.mean_long_mbps())]);
            row.push(format!("{:.1}", measured.core_use * 100.0));
            row
        })
        .collect();
    for (who, mean, sd) in MMPTCP {
        table.rows.push([who, "-", mean, sd, "-", "-", "-", "-", "-", "-", "-"].map(str::to_owned).to_vec());
    }
    table
}

pub fn patterns(cells: &[Measured]) -> Table {
    let mut columns = vec!["short flows", "by", "among", "hosts with long %"];
    columns.extend(Pattern::ALL.map(Pattern::title));
    let mut table = Table::new("patterns", "How short flows went, in per cent of them", &columns);
    table.rows = cells
        .iter()
        .map(|measured| {
            let parts = Pattern::ALL.map(|pattern| format!("{:.1}", measured.part(pattern) * 100.0));
            names(&measured.cell).into_iter().chain(parts).collect()
        })
        .collect();
    table
}

pub fn longs(cells: &[Measured]) -> Table {
    let columns =
        ["long flows", "hosts with long %", "beside", "of", "mean Mbit/s", "least", "on the busiest path %", "core used %"];
    let mut table = Table::new("longs", "Flows without end, while short ones came", &columns);
    let with_long = cells.iter().filter(|cell| !cell.longs_mbps.is_empty());
    table.rows = with_long
        .map(|measured| {
            let least = measured.longs_mbps.iter().copied().fold(f64::INFINITY, f64::min);
            let Cell { load, crowd, foreground, .. } = measured.cell;
            vec![
                measured.cell.background_title().to_owned(),
                format!("{:.0}", crowd * 100.0),
                load_title(load).to_owned(),
                foreground.title.to_owned(),
                short(measured.mean_long_mbps()),
                short(least),
                format!("{:.0}", measured.busiest * 100.0),
                format!("{:.1}", measured.core_use * 100.0),
            ]
        })
        .collect();
    table
}

fn names(cell: &Cell) -> Vec<String> {
    let title = |title: &str| title.to_owned();
    vec![
        title(load_title(cell.load)),
        title(cell.foreground.title),
        title(cell.background_title()),
        format!("{:.0}", cell.crowd * 100.0),
    ]
}

/// How many are over after a time: TCP's among every kind of long flows, and every kind's among TCP's.
fn distributions(cells: &[&Measured], title: &str, network: &str) -> Figure {
    let crowd = cells.first().map_or(0.0, |cell| cell.cell.crowd);
    let of = |wanted: &dyn Fn(&Cell) -> bool, name: &dyn Fn(&Cell) -> String| {
        let lines = cells.iter().filter(|cell| alike(cell.cell.crowd, crowd) && wanted(&cell.cell));
        lines.map(|cell| line(name(&cell.cell), &cell.times())).collect::<Vec<_>>()
    };
    let axes = || (Axis::log("completion time", "ms"), Axis::linear("over by then", "%").range(0.0, 100.0));
    let by_tcp = of(&|cell| cell.foreground.title == "TCP", &|cell| cell.background_title().to_owned());
    let among_tcp = of(&|cell| cell.background_title() == "TCP", &|cell| cell.foreground.title.to_owned());
    let charts = vec![
        Chart::lines(axes().0, axes().1, by_tcp).titled("TCP's, among"),
        Chart::lines(axes().0, axes().1, among_tcp).titled("among TCP, by"),
    ];
    let subtitle = format!("{network} of 16 hosts, {:.0} % of them send without end", crowd * 100.0);
    Figure { title: title.to_owned(), subtitle, charts, columns: 2 }
}

fn line(name: String, times: &Summary) -> Line {
    let count = times.times_ms.len().max(1) as f64;
    let points = times.ended_ms().iter().enumerate().map(|(number, &time)| (time, (number + 1) as f64 * 100.0 / count));
    Line::through(name, points.collect::<Vec<_>>()).plain()
}

/// Window, what has arrived, and what was sent again, over time.
fn pictures(typical: &[(Pattern, Trace)]) -> Figure {
    let chart = |(pattern, trace): &(Pattern, Trace)| {
        let over_time = |value: &dyn Fn(&haul_scenarios::fattree::Sample) -> f64| {
            trace.samples.iter().map(|sample| (sample.at.as_secs_f64() * 1e3, value(sample))).collect::<Vec<_>>()
        };
        let full = 1448.0;
        let lines = vec![
            Line::through("window", over_time(&|sample| sample.window_pkts)).plain(),
            Line::through("arrived", over_time(&|sample| sample.received.as_u64() as f64 / full)).plain(),
            Line::through("sent again", over_time(&|sample| sample.resent_pkts as f64)).plain(),
        ];
        let took = trace.short.took.unwrap_or(Duration::MAX).as_secs_f64() * 1e3;
        let title = format!("{}: {took:.0} ms", pattern.title());
        Chart::lines(Axis::linear("since the flow began", "ms"), Axis::linear("packets", "of 1448 bytes"), lines).titled(title)
    };
    let charts = typical.iter().map(chart).collect();
    let subtitle = "70 KB by TCP among TCP, simulated; of each pattern the flow with its middle time".to_owned();
    Figure { title: "Four ways for a short flow to go".to_owned(), subtitle, charts, columns: 2 }
}

pub fn load_title(load: Load) -> &'static str {
    LOADS.iter().find(|(known, ..)| *known == load).map_or("short", |(_, title, _)| title)
}

fn ms(time: f64) -> String {
    if time.is_infinite() { "some never ended".to_owned() } else { format!("{time:.1} ms") }
}

fn cell(time: f64) -> String {
    if time.is_finite() { format!("{time:.1}") } else { "-".to_owned() }
}

const LOADS: [(Load, &str, &str); 3] =
    [(Load::REPRODUCTION, "70 KB", "70k"), (Load::Messages, "50 KB to 1 MB", "messages"), (Load::Queries, "queries", "queries")];
const LATE_MS: f64 = 200.0;
/// Of the study's own simulation: among whom, mean, standard deviation and the 95th percentile.
const PUBLISHED: [(&str, &str, &str, &str); 2] = [("TCP", "78.4", "122.5", "266.7"), ("MPTCP", "91", "140.6", "510.5")];
/// Of MMPTCP's, as they are quoted elsewhere: mean and standard deviation of 70 KB flows.
const MMPTCP: [(&str, &str, &str); 2] = [("MPTCP, the paper's", "126", "425"), ("scatter, MPTCP, the paper's", "116", "101")];
const CROWDED: &str = "MMPTCP's tree: k = 8, 512 hosts, four for each port upwards, 100 Mbit/s, queues of 100 packets; a third send without end, 256 flows of 70 KB a second";

#[cfg(test)]
mod tests {
    use haul_scenarios::fattree::{Contender, Short};
    use haul_units::Bytes;

    use super::*;
    use crate::experiment::fattree::cells::{CROWDS, Cell, HAUL, TCP};

    /// Flows that took so many milliseconds; 0 is one that never ended.
    fn measured(foreground: Contender, background: Contender, times_ms: &[u64]) -> Measured {
        let (load, crowd, background) = (Load::REPRODUCTION, CROWDS[0], Some(background));
        let cell = Cell { tree: Tree::Study, load, crowd, foreground, background, marked: false };
        let short = |&ms: &u64| {
            let took = (ms > 0).then(|| Duration::from_millis(ms));
            Short { size: Bytes(70_000), took, resent_pkts: 0, timeouts: 0 }
        };
        Measured { shorts: times_ms.iter().map(short).collect(), ..Measured::of(cell, &[]) }
    }

    #[test]
    fn flows_that_never_ended_are_named_where_a_goal_has_no_bound() {
        let said = |tcp: &[u64], haul: &[u64]| {
            let cells = [measured(TCP, TCP, tcp), measured(TCP, HAUL, haul), measured(HAUL, HAUL, &[12, 14])];
            let of = |judged: Judged| (judged.goal, judged.value, judged.met);
            verdicts(&cells).into_iter().map(of).filter(|(goal, ..)| goal.starts_with("mean")).collect::<Vec<_>>()
        };
        let goal = |goal: &str, value: &str, met| (goal.to_owned(), value.to_owned(), met);
        assert_eq!(
            said(&[20, 0], &[10, 20]),
            [
                goal("mean at most that of TCP among TCP, some of whose flows never ended", "15.0 ms", None),
                goal("mean at most 15.0 ms", "13.0 ms", Some(true)),
            ]
        );
        assert_eq!(
            said(&[20, 30], &[10, 0]),
            [
                goal("mean at most 25.0 ms", "some never ended", Some(false)),
                goal("mean at most that of TCP among haul, fair, some of whose flows never ended", "13.0 ms", None),
            ]
        );
    }
}
