//! Throughput of each protocol against packet loss.

use std::time::Duration;

use haul_lab::LinkOptions;
use haul_sim::Path;
use haul_units::{BitRate, Ratio};

use super::comparison::{Comparison, LABORATORY_RTT, Points, laboratory_rate, length, mbps, measure, rates_table, simulate};
use super::ground::Ground;
use super::simulated::CONTENDERS;
use super::{Experiment, Report, Scale};
use crate::plot::{Axis, Chart, Figure};

pub const LOSS: Experiment = Experiment {
    name: "loss",
    about: "Throughput of each protocol against packet loss",
    reproduces: "HpFP and xTCP: the laboratory experiment, throughput of TCP, HpFP and xTCP over packet loss",
    simulate: Some(simulated),
    measure: measured,
};

fn simulated(scale: Scale) -> Report {
    let path = Path::new(laboratory_rate(scale), LABORATORY_RTT);
    let length = length(scale);
    let paths: Vec<_> = percents(scale).iter().map(|&percent| (percent, path.loss(percent / 100.0))).collect();
    report("simulated", path.rate, path.rtt, length, &simulate(CONTENDERS, &paths, length))
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let link = |percent: f64| LinkOptions {
        rate: laboratory_rate(scale),
        rtt: LABORATORY_RTT,
        loss: Ratio::percent(percent),
        ..LinkOptions::default()
    };
    let paths: Vec<_> = percents(scale).iter().map(|&percent| (percent, link(percent))).collect();
    let comparison =
        Comparison { name: "loss", tools: &ground.tools, paths: &paths, length: length(scale), repeat: scale.pick(1, 3) };
    let (points, notes) = measure(&comparison, ground);
    Report {
        notes,
        ..report("real sockets over the emulated WAN", laboratory_rate(scale), LABORATORY_RTT, length(scale), &points)
    }
}

/// In per cent of the packets.
fn percents(scale: Scale) -> &'static [f64] {
    scale.pick(&[0.0, 1.0], &[0.0, 0.001, 0.01, 0.1, 1.0, 2.0, 5.0, 10.0])
}

fn report(how: &str, rate: BitRate, rtt: Duration, length: Duration, all: &[Points]) -> Report {
    let conditions =
        format!("{rate}, {} ms, queue of one bandwidth-delay product, {} s each, {how}", rtt.as_millis(), length.as_secs_f64());
    let lines = all.iter().map(|points| points.line(|turn| turn.mean)).collect();
    let axes =
        (Axis::log_and_zero("packet loss, each way", "%"), Axis::log_and_zero("throughput from the first packet on", "Mbit/s"));
    let chart = Chart::lines(axes.0, axes.1, lines).limit("rate of the link", mbps(rate));
    let title = "Throughput [Mbit/s] against loss: mean of the whole run, second half in brackets";
    Report {
        heading: format!("Throughput against packet loss: {conditions}"),
        tables: vec![rates_table("throughput", title, "loss %", all, |percent| percent.to_string())],
        charts: vec![("throughput".to_owned(), Figure::single("Throughput against packet loss", conditions, chart))],
        data: serde_json::json!(all),
        ..Report::default()
    }
}
