//! The kernel's TCP, by iperf3: its congestion control is that of the hosts, its windows grow by themselves up to 2 GiB.

use std::process::Command;
use std::time::Duration;

use haul_lab::Side;
use haul_units::Bytes;
use rustix::process::Signal;
use serde::Deserialize;

use super::setup::{Bench, Measured, round_trip, tcp, words};
use crate::bench::duel::{Duel, Fought, Listens, MeasureError};
use crate::bench::series::Series;

/// Measures TCP with the congestion control of the cell's tool.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    let cell = bench.cell;
    let time = cell.work.at_most();
    let seconds = time.as_secs_f64().ceil().to_string();
    let mut server = bench.site.command(Side::B, "iperf3".as_ref());
    server.args(["--server", "--one-off", "--json", "--interval", "0.1"]);
    let mut client = bench.site.command(Side::A, "iperf3".as_ref());
    client.args(["--client", &bench.site.address(Side::B).to_string(), "--congestion", tcp(cell.tool).unwrap_or("cubic")]);
    client.args(["--time", &seconds, "--length", "1M", "--interval", "0"]);
    let settings = settings(&client);
    let slack = round_trip(&cell.path) * 20 + Duration::from_secs(5);
    let fought =
        Duel { server, client, listens: Listens::Tcp(PORT), end_by: Signal::INT, at_most: time + slack, farewell: slack }
            .fight(bench.site, bench.observer)?;
    let series = parse(&fought.server_output, "iperf3")?;
    // Its server reads on what was under way when the client's time was over.
    let fought = Fought { gave_up: false, ..fought };
    Ok(Measured::of(cell, &series, &fought, settings))
}

fn settings(client: &Command) -> String {
    format!("{}; rmem and wmem up to 2 GiB, clear text", words(client))
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    intervals: Vec<ReportInterval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct ReportInterval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    end: f64,
    bytes: u64,
}

/// The intervals of a receiver, in iperf3's JSON.
pub fn parse(json: &str, who: &'static str) -> Result<Series, MeasureError> {
    let unexpected = |said: String| MeasureError::Unexpected { who, said };
    let report: Report = serde_json::from_str(json).map_err(|error| unexpected(error.to_string()))?;
    if report.intervals.is_empty() {
        return Err(unexpected(report.error.unwrap_or_else(|| "no intervals".to_owned())));
    }
    let interval = |interval: &ReportInterval| {
        (Duration::try_from_secs_f64(interval.sum.end).unwrap_or_default(), Bytes(interval.sum.bytes))
    };
    Ok(report.intervals.iter().map(interval).collect())
}

const PORT: u16 = 5201;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_servers_json_tells_what_arrived_when() {
        let series = parse(include_str!("recorded/iperf3.json"), "iperf3").expect("real output");
        assert_eq!(series.total(), Bytes(5_968_656));
        assert_eq!(series.intervals()[1].bytes, Bytes(1_508_816));
        assert!(series.end() > ms(1017) && series.up_to(ms(1000)).end() == ms(1000));
    }

    #[test]
    fn a_server_that_was_interrupted_tells_what_had_arrived() {
        let series = parse(include_str!("recorded/iperf3-interrupted.json"), "iperf3").expect("real output");
        assert!((ms(1000)..ms(2000)).contains(&series.end()) && series.total() > Bytes::mib(4), "{series:?}");
    }

    #[test]
    fn haul_perf_tells_it_in_the_same_form() {
        let series = parse(include_str!("recorded/haul-perf.json"), "haul perf").expect("real output");
        assert_eq!((series.end(), series.total()), (ms(1000), Bytes(4_342_816)));
    }

    #[test]
    fn anything_else_is_refused_in_its_words() {
        let said = |json| parse(json, "iperf3").map_err(|error| error.to_string());
        let error = "{\"start\":{},\"intervals\":[],\"error\":\"unable to start\"}";
        assert_eq!(said(error), Err("iperf3 printed something else than was expected: unable to start".to_owned()));
        assert!(said("iperf3: usage").is_err() && said("").is_err());
    }
}
