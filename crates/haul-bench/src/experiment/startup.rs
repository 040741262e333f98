//! The rate from the first packet on, and how long it takes to fill the path.

use std::time::Duration;

use haul_lab::LinkOptions;
use haul_sim::Path;
use haul_units::BitRate;

use super::comparison::{Comparison, LABORATORY_RTT, Points, laboratory_rate, length, mbps, measure, short, simulate};
use super::ground::Ground;
use super::simulated::{CONTENDERS, QUICKSTART};
use super::{Experiment, Report, Scale, Table};
use crate::bench::Tool;
use crate::plot::{Axis, Chart, Figure, Line};

pub const STARTUP: Experiment = Experiment {
    name: "startup",
    about: "Rate over time from the first packet on, and the time until 80 % of the path is used",
    reproduces: "HpFP and UDT: measured at the first moment; the slow start-up that the parallel UDT transfer named as the thing to improve",
    simulate: Some(simulated),
    measure: measured,
};

fn simulated(scale: Scale) -> Report {
    let contenders = [CONTENDERS, &[QUICKSTART]].concat();
    let (path, length) = (Path::new(laboratory_rate(scale), LABORATORY_RTT), length(scale));
    report("simulated", path.rate, path.rtt, length, &simulate(&contenders, &[(0.0, path)], length))
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let link = LinkOptions { rate: laboratory_rate(scale), rtt: LABORATORY_RTT, ..LinkOptions::default() };
    let mut tools = ground.tools.clone();
    if tools.contains(&Tool::Haul) && !tools.contains(&Tool::HaulQuickstart) {
        tools.push(Tool::HaulQuickstart);
    }
    let comparison =
        Comparison { name: "startup", tools: &tools, paths: &[(0.0, link)], length: length(scale), repeat: scale.pick(1, 5) };
    let (points, notes) = measure(&comparison, ground);
    Report {
        notes,
        ..report("real sockets over the emulated WAN", laboratory_rate(scale), LABORATORY_RTT, length(scale), &points)
    }
}

fn report(how: &str, rate: BitRate, rtt: Duration, length: Duration, all: &[Points]) -> Report {
    let conditions = format!("{rate}, {} ms, no loss, queue of one bandwidth-delay product, {how}", rtt.as_millis());
    let limit = rate.scaled(1428.0 / 1500.0);
    let whole = chart(all, length, limit).titled(format!("the whole {} s", length.as_secs_f64()));
    let begin = (rtt * 25).min(length);
    let charts = vec![
        chart(all, begin, limit).titled(format!("the first {} round trips", (begin.as_secs_f64() / rtt.as_secs_f64()).round())),
        whole,
    ];
    Report {
        heading: format!("Start-up: {conditions}"),
        tables: vec![table(all, rtt)],
        charts: vec![(
            "rate".to_owned(),
            Figure {
                title: "Start-up: what arrives after the first packet".to_owned(),
                subtitle: conditions,
                charts,
                columns: 2,
            },
        )],
        data: serde_json::json!(all),
        ..Report::default()
    }
}

fn chart(all: &[Points], until: Duration, limit: BitRate) -> Chart {
    let line = |points: &Points| {
        let turn = points.at.first()?.1.first()?;
        let seen = turn.series.rates().take_while(|(end, _)| *end <= until);
        let line = Line::through(points.title.clone(), seen.map(|(end, rate)| (end.as_secs_f64(), mbps(rate))));
        Some(line.plain().look(points.look)).filter(|line| !line.points.is_empty())
    };
    let axes =
        (Axis::linear("time since the first packet", "s").range(0.0, until.as_secs_f64()), Axis::linear("arriving", "Mbit/s"));
    Chart::lines(axes.0, axes.1, all.iter().filter_map(line).collect()).limit("80 % of what the link carries", mbps(limit) * 0.8)
}

fn table(all: &[Points], rtt: Duration) -> Table {
    let columns = ["protocol", "until 80 % [s]", "in round trips", "mean of the run [Mbit/s]", "second half [Mbit/s]"];
    let mut table = Table::new("startup", "Until 80 % of what the link carries arrived over a round trip", &columns);
    for points in all {
        let Some((_, turns)) = points.at.first() else { continue };
        let times: Vec<Duration> = turns.iter().filter_map(|turn| turn.startup).collect();
        // Whoever did not get there in one of the turns has no mean.
        let whole =
            (!turns.is_empty() && times.len() == turns.len()).then(|| times.iter().sum::<Duration>() / times.len() as u32);
        let print = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        table.rows.push(vec![
            points.title.clone(),
            print(whole.map(|time| time.as_secs_f64())),
            print(whole.map(|time| time.as_secs_f64() / rtt.as_secs_f64())),
            print(points.mean_at(0, |turn| turn.mean).map(mbps)),
            print(points.mean_at(0, |turn| turn.second_half).map(mbps)),
        ]);
    }
    table
}
