//! The kernel's TCP with haul's laws, beside its own and beside haul's transport: throughput against loss, the laboratory experiment of xTCP with its three bars.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_lab::{LinkOptions, WanSpec};
use haul_proto::Pacing;
use haul_sim::Path;
use haul_tcp::{Choice, Law, Tcp};
use haul_units::{BitRate, Ratio};

use super::comparison::{mbps, short, simulate};
use super::ground::{Ground, Program, Sender};
use super::simulated::CONTENDERS;
use super::{Experiment, Judged, Report, Scale, Table};
use crate::bench::MeasureError;
use crate::plot::{Axis, BarSeries, Bars, Chart, Figure, Line, Value};

pub const KERNEL: Experiment = Experiment {
    name: "kernel",
    about: "The kernel's TCP with haul's laws (haul tcp), its own CUBIC and BBR, and haul's transport, against packet loss",
    reproduces: "xTCP: the laboratory experiment, TCP, HpFP and xTCP in its modes over packet loss",
    simulate: Some(simulated),
    measure: measured,
};

/// A path.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    rtt: Duration,
    loss_percent: f64,
}

/// Who sends.
const PARTIES: [(&str, Program); 7] = [
    ("CUBIC", Program::Tcp("cubic")),
    ("BBR", Program::Tcp("bbr")),
    ("TCP fair", Program::Tcp("haul_fair")),
    ("TCP quickstart", Program::Tcp("haul_quickstart")),
    ("TCP aggressive", Program::Tcp("haul_aggressive")),
    ("TCP modest", Program::Tcp("haul_modest")),
    ("haul fair", Program::Haul(ControllerChoice::Fair, Pacing::On)),
];

/// Who sent, where, and what came of it: the mean of the whole run, and that of its second half.
type Row = (String, Case, BitRate, BitRate);

fn rate(scale: Scale) -> BitRate {
    scale.pick(BitRate::mbps(50), BitRate::gbps(1))
}

/// A start takes some ten round trips, and what is lost again and again some more: the second half leaves both out.
fn length(case: Case, scale: Scale) -> Duration {
    let full = (case.rtt * 100).clamp(Duration::from_secs(6), Duration::from_secs(16));
    scale.pick(Duration::from_secs(4), full)
}

const ALL_LOSSES: &[f64] = &[1.0, 5.0, 0.0, 0.1, 10.0];

fn cases(scale: Scale) -> Vec<Case> {
    // The laboratory's own first: a run that is interrupted has it.
    let paths: &[(u64, &[f64])] =
        scale.pick(&[(100, &[1.0])], &[(100, ALL_LOSSES), (200, &[0.1]), (20, ALL_LOSSES), (300, ALL_LOSSES)]);
    let of = |&(rtt, losses): &(u64, &'static [f64])| {
        losses.iter().map(move |&loss_percent| Case { rtt: Duration::from_millis(rtt), loss_percent })
    };
    paths.iter().flat_map(of).collect()
}

fn round_trips(scale: Scale) -> Vec<Duration> {
    let mut round_trips: Vec<Duration> = cases(scale).iter().map(|case| case.rtt).collect();
    round_trips.dedup();
    round_trips
}

/// Models of TCP and haul's transport on the same paths: the kernel's TCP itself has no virtual time.
fn simulated(scale: Scale) -> Report {
    let mut seen = Vec::new();
    for rtt in round_trips(scale) {
        let of_rtt: Vec<Case> = cases(scale).into_iter().filter(|case| case.rtt == rtt).collect();
        let path = Path::new(rate(scale), rtt);
        let paths: Vec<_> = of_rtt.iter().map(|case| (case.loss_percent, path.loss(case.loss_percent / 100.0))).collect();
        let Some(case) = of_rtt.first() else { continue };
        for points in simulate(CONTENDERS, &paths, length(*case, scale)) {
            for (x, turns) in &points.at {
                let (Some(turn), Some(case)) = (turns.first(), of_rtt.iter().find(|case| same(case.loss_percent, *x))) else {
                    continue;
                };
                seen.push((points.title.clone(), *case, turn.mean, turn.second_half));
            }
        }
    }
    report("simulated: models of TCP, and haul's transport", scale, &seen, Vec::new())
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    with_laws(|| throughput(scale, ground))
}

/// The laws are in the kernel as long as a program is said to have one.
pub fn with_laws(measure: impl FnOnce() -> Report) -> Report {
    let laws = match Tcp::default().run(&Choice::Own(Law::Fair)).and_then(|run| run.leave().map(|()| run)) {
        Ok(run) => run,
        Err(error) => return Report { notes: vec![format!("the laws cannot be loaded: {error}")], ..Report::default() },
    };
    let mut report = measure();
    if let Err(error) = laws.end() {
        report.notes.push(format!("the laws were not taken back: {error} (`haul tcp off` does it)"));
    }
    report
}

fn throughput(scale: Scale, ground: &Ground<'_>) -> Report {
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    let cases = cases(scale);
    'all: for (case, number) in cases.iter().zip(1..) {
        for (party, program) in PARTIES {
            ground.tell(&format!("{number}/{}: {} ms, {} %, {party}", cases.len(), case.rtt.as_millis(), case.loss_percent));
            match run(scale, *case, party, program, ground) {
                Ok(row) => seen.push(row),
                Err(MeasureError::Interrupted) => break 'all,
                Err(error) => {
                    notes.push(format!("{} ms, {} %, {party}: failed, {error}", case.rtt.as_millis(), case.loss_percent));
                }
            }
        }
    }
    report("real sockets over the emulated WAN", scale, &seen, notes)
}

fn run(scale: Scale, case: Case, party: &str, program: Program, ground: &Ground<'_>) -> Result<Row, MeasureError> {
    let link =
        LinkOptions { rate: rate(scale), rtt: case.rtt, loss: Ratio::percent(case.loss_percent), ..LinkOptions::default() };
    let lasts = length(case, scale);
    let sender = Sender { program, from: Duration::ZERO, lasts, extra_rtt: Duration::ZERO };
    let heard = ground.together(&WanSpec { link, ..WanSpec::default() }, &[sender])?;
    let series = heard.into_iter().next().unwrap_or_default().series;
    Ok((party.to_owned(), case, series.mean(lasts), series.second_half(lasts)))
}

fn report(how: &str, scale: Scale, seen: &[Row], notes: Vec<String>) -> Report {
    let rate = rate(scale);
    let lengths = cases(scale).into_iter().map(|case| length(case, scale).as_secs());
    let (least, most) = lengths.fold((u64::MAX, 0), |(least, most), length| (least.min(length), most.max(length)));
    let conditions = format!("{rate}, queue of one bandwidth-delay product, {least} to {most} s each, {how}");
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in seen {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let cases = cases(scale);
    let find = |name: &str, case: Case| seen.iter().find(|(of, at, ..)| of == name && *at == case);
    let mut table = Table::new(
        "throughput",
        "Throughput [Mbit/s] of payload: mean of the whole run, second half in brackets",
        &[&["rtt ms", "loss %"], &names[..]].concat(),
    );
    table.rows = cases
        .iter()
        .map(|case| {
            let cell = |name: &&str| {
                find(name, *case).map_or_else(
                    || "-".to_owned(),
                    |(_, _, mean, half)| format!("{} ({})", short(mbps(*mean)), short(mbps(*half))),
                )
            };
            let head = [case.rtt.as_millis().to_string(), case.loss_percent.to_string()];
            head.into_iter().chain(names.iter().map(cell)).collect()
        })
        .collect();
    // Where an experiment was interrupted there is nothing of some.
    let charts = round_trips(scale).into_iter().filter_map(|rtt| {
        let lines = names.iter().map(|name| {
            let of_rtt = cases.iter().filter(|case| case.rtt == rtt);
            let points = of_rtt.filter_map(|case| find(name, *case).map(|(_, _, _, half)| (case.loss_percent, mbps(*half))));
            Line::through(*name, points.collect::<Vec<_>>())
        });
        let axes = (Axis::log_and_zero("packet loss, each way", "%"), Axis::log_and_zero("throughput, second half", "Mbit/s"));
        let lines: Vec<Line> = lines.filter(|line| !line.points.is_empty()).collect();
        if lines.is_empty() {
            return None;
        }
        let chart = Chart::lines(axes.0, axes.1, lines).titled(format!("{} ms", rtt.as_millis()));
        Some(chart.limit("rate of the link", mbps(rate)))
    });
    let figure = Figure {
        title: "Throughput against packet loss".to_owned(),
        subtitle: conditions.clone(),
        charts: charts.collect(),
        columns: 2,
    };
    let bars = laboratory(rate, &cases, &names, &find, conditions.clone()).map(|figure| ("laboratory".to_owned(), figure));
    Report {
        heading: format!("The kernel's TCP with haul's laws: {conditions}"),
        verdicts: GOALS.iter().map(|goal| verdict(goal, rate, &find)).collect(),
        tables: vec![table],
        charts: [Some(("throughput".to_owned(), figure)), bars].into_iter().flatten().collect(),
        notes,
        data: seen
            .iter()
            .map(|(name, case, mean, half)| {
                serde_json::json!({ "who": name, "rtt_ms": case.rtt.as_millis(), "loss_percent": case.loss_percent, "mean_bps": mean.as_bps(), "second_half_bps": half.as_bps() })
            })
            .collect(),
        ..Report::default()
    }
}

/// The laboratory's own picture: at each loss a bar for TCP, one for the transport in user land, and one for each mode of the kernel's TCP. None where nothing was measured there.
fn laboratory<'a>(
    rate: BitRate,
    cases: &[Case],
    names: &[&str],
    find: &impl Fn(&str, Case) -> Option<&'a Row>,
    conditions: String,
) -> Option<Figure> {
    let mut of_rtt: Vec<Case> = cases.iter().copied().filter(|case| case.rtt == LABORATORY).collect();
    of_rtt.sort_by(|one, other| one.loss_percent.total_cmp(&other.loss_percent));
    let series = names.iter().map(|name| {
        let value = |case: &Case| find(name, *case).and_then(|(_, _, _, half)| Value::of([mbps(*half)]));
        BarSeries { name: (*name).to_owned(), values: of_rtt.iter().map(value).collect(), look: None }
    });
    let series: Vec<BarSeries> = series.filter(|series| series.values.iter().any(Option::is_some)).collect();
    if series.is_empty() {
        return None;
    }
    let bars = Bars { groups: of_rtt.iter().map(|case| format!("{} %", case.loss_percent)).collect(), series };
    let chart = Chart::bars("packet loss, each way", Axis::linear("throughput, second half", "Mbit/s"), bars);
    let title = format!("TCP, haul's transport, and the kernel's TCP by mode: {} ms", LABORATORY.as_millis());
    Some(Figure::single(title, conditions, chart.limit("rate of the link", mbps(rate))))
}

const LABORATORY: Duration = Duration::from_millis(100);

/// Who is to reach which part of what the link carries: round-trip time, loss in per cent, part.
const GOALS: &[(&str, u64, f64, f64)] = &[
    ("TCP fair", 100, 1.0, 0.93),
    ("TCP aggressive", 100, 1.0, 0.93),
    ("TCP fair", 100, 5.0, 0.85),
    ("TCP aggressive", 100, 5.0, 0.85),
    ("TCP fair", 200, 0.1, 0.95),
    ("TCP aggressive", 200, 0.1, 0.95),
];

fn verdict<'a>(
    &(name, rtt_ms, loss_percent, part): &(&str, u64, f64, f64),
    rate: BitRate,
    find: &impl Fn(&str, Case) -> Option<&'a Row>,
) -> Judged {
    // None where it failed, or the experiment was interrupted.
    let half = find(name, Case { rtt: Duration::from_millis(rtt_ms), loss_percent }).map(|(_, _, _, half)| mbps(*half));
    // 1448 bytes of payload in packets of 1500, and what is lost is sent again.
    let limit = mbps(rate) * 1448.0 / 1500.0 * (1.0 - loss_percent / 100.0);
    let who = format!("{name}, {rtt_ms} ms, {loss_percent} % loss");
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    Judged::at_least(&who, "second half, of what the link carries,", half.map(|half| half / limit), part, percent)
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_before_an_interrupt_is_drawn() {
        let first = cases(Scale::Full)[0];
        let row = ("CUBIC".to_owned(), first, BitRate::mbps(1), BitRate::mbps(1));
        let report = report("interrupted", Scale::Full, &[row], Vec::new());
        let drawn: Vec<_> =
            report.charts.iter().map(|(name, figure)| (name.as_str(), figure.charts.len(), figure.svg().is_ok())).collect();
        assert_eq!(drawn, [("throughput", 1, true), ("laboratory", 1, true)]);
        assert!(report.verdicts.len() == GOALS.len() && report.verdicts.iter().all(|judged| judged.met.is_none()));
    }
}
