//! Throughput against round-trip time, and what that means for a genome on its way from Chicago to Amsterdam.

use std::time::Duration;

use haul_lab::LinkOptions;
use haul_sim::Path;
use haul_units::{BitRate, Bytes, Ratio};

use super::comparison::{Comparison, Points, length, mbps, measure, rates_table, simulate};
use super::ground::Ground;
use super::simulated::CONTENDERS;
use super::{Experiment, Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure};

pub const RTT: Experiment = Experiment {
    name: "rtt",
    about: "Throughput against round-trip time; how long a genome of 800 GB takes from Chicago to Amsterdam",
    reproduces: "UDT applications, University of Chicago: throughput of each tool by location; 12 hours by TCP, 28 minutes by UDT",
    simulate: Some(simulated),
    measure: measured,
};

fn simulated(scale: Scale) -> Report {
    let (rate, length) = (rate(scale), length(scale));
    let path = |ms: u32| (f64::from(ms), Path::new(rate, Duration::from_millis(ms.into())).loss(LOSS));
    let paths: Vec<_> = round_trips_ms(scale).iter().map(|&ms| path(ms)).collect();
    report("simulated", rate, length, &simulate(CONTENDERS, &paths, length))
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let link = |ms: u32| {
        let (rtt, loss) = (Duration::from_millis(ms.into()), Ratio::new(LOSS));
        (f64::from(ms), LinkOptions { rate: rate(scale), rtt, loss, ..LinkOptions::default() })
    };
    let paths: Vec<_> = round_trips_ms(scale).iter().map(|&ms| link(ms)).collect();
    let comparison =
        Comparison { name: "rtt", tools: &ground.tools, paths: &paths, length: length(scale), repeat: scale.pick(1, 3) };
    let (points, notes) = measure(&comparison, ground);
    Report { notes, ..report("real sockets over the emulated WAN", rate(scale), length(scale), &points) }
}

fn rate(scale: Scale) -> BitRate {
    scale.pick(BitRate::mbps(100), BitRate::gbps(10))
}

fn round_trips_ms(scale: Scale) -> &'static [u32] {
    scale.pick(&[10, 100], &[1, 5, 10, 20, 50, 100, 200])
}

fn report(how: &str, rate: BitRate, length: Duration, all: &[Points]) -> Report {
    let conditions =
        format!("{rate}, {} % loss, queue of one bandwidth-delay product, {} s each, {how}", LOSS * 100.0, length.as_secs_f64());
    let lines = all.iter().map(|points| points.line(|turn| turn.mean)).collect();
    let axes = (Axis::log("round-trip time", "ms"), Axis::log("throughput from the first packet on", "Mbit/s"));
    let chart = Chart::lines(axes.0, axes.1, lines).limit("rate of the link", mbps(rate));
    let title = "Throughput [Mbit/s] against round-trip time: mean of the whole run, second half in brackets";
    Report {
        heading: format!("Throughput against round-trip time: {conditions}"),
        tables: vec![rates_table("throughput", title, "RTT ms", all, |ms| ms.to_string()), genome(all)],
        charts: vec![("throughput".to_owned(), Figure::single("Throughput against round-trip time", conditions, chart))],
        data: serde_json::json!(all),
        ..Report::default()
    }
}

/// How long 800 GB take at the rate of the second half: within the city, and across the Atlantic.
fn genome(all: &[Points]) -> Table {
    let title = "A genome of 800 GB at these rates (reported: by TCP 55 min across Chicago and 12 h to Amsterdam, by UDT 28 min)";
    let mut table = Table::new("genome", title, &["protocol", "across Chicago", "Chicago to Amsterdam"]);
    for points in all {
        let near = points.mean_at(0, |turn| turn.second_half);
        let index = points.at.iter().position(|(ms, _)| (ms - AMSTERDAM_MS).abs() < 0.5);
        let far = index.and_then(|index| points.mean_at(index, |turn| turn.second_half));
        table.rows.push(vec![points.title.clone(), time_of_a_genome(near), time_of_a_genome(far)]);
    }
    table
}

fn time_of_a_genome(rate: Option<BitRate>) -> String {
    let Some(rate) = rate.filter(|rate| *rate > BitRate::ZERO) else { return "-".to_owned() };
    let minutes = rate.time_for(GENOME).as_secs_f64() / 60.0;
    match minutes {
        minutes if minutes < 120.0 => format!("{minutes:.0} min"),
        minutes if minutes < 48.0 * 60.0 => format!("{:.1} h", minutes / 60.0),
        minutes => format!("{:.1} days", minutes / 60.0 / 24.0),
    }
}

const GENOME: Bytes = Bytes(800_000_000_000);
const AMSTERDAM_MS: f64 = 100.0;
/// A little of it is on every long way.
const LOSS: f64 = 0.0001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_told_as_it_was() {
        // 800 GB in 12 hours and in 28 minutes were told as 0.148 and 3.72 Gbit/s.
        assert_eq!(time_of_a_genome(Some(BitRate::from_bps(148_000_000))), "12.0 h");
        assert_eq!(time_of_a_genome(Some(BitRate::from_bps(3_720_000_000))), "29 min");
        assert_eq!(time_of_a_genome(Some(BitRate::mbps(1))), "74.1 days");
        assert_eq!(time_of_a_genome(Some(BitRate::ZERO)), "-");
    }
}
