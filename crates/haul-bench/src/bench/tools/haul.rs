//! haul, memory to memory, by `haul perf`: its server on host b, its client on host a, bytes counted at the receiver.

use std::time::Duration;

use haul_lab::Side;
use haul_units::Bytes;
use rustix::process::Signal;

use super::iperf;
use super::setup::{Bench, Measured, round_trip, window, words};
use crate::bench::duel::{Duel, Listens, MeasureError};
use crate::bench::plan::Work;
use crate::bench::tool::Tool;

/// Measures it in the mode of the cell's tool.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    let cell = bench.cell;
    let address = bench.site.address(Side::B).to_string();
    let mut server = bench.site.command(Side::B, bench.programs.haul().as_os_str());
    let memory = window(&cell.path).max(Bytes::mib(64)) + Bytes::mib(80);
    server.args(["perf", "--server", "--one-off", "--bind", &address, "--max-memory", &memory.0.to_string()]);
    let mut client = bench.site.command(Side::A, bench.programs.haul().as_os_str());
    client.args(["perf", "--client", &address, "--interval", "0.1", "--json", "--mode", mode(cell.tool)]);
    match cell.work {
        Work::Bytes { bytes, .. } => client.args(["--bytes", &bytes.0.to_string()]),
        _ => client.args(["--time", &cell.work.at_most().as_secs_f64().to_string()]),
    };
    let settings = format!("{}; encrypted; server: {}", words(&client), words(&server));
    let slack = round_trip(&cell.path) * 10 + Duration::from_secs(5);
    let duel = Duel {
        server,
        client,
        listens: Listens::Udp(PORT),
        end_by: Signal::INT,
        at_most: cell.work.at_most() + slack,
        farewell: slack,
    };
    let fought = duel.fight(bench.site, bench.observer)?;
    let series = iperf::parse(&fought.client_output, "haul perf")?;
    Ok(Measured::of(cell, &series, &fought, settings))
}

const fn mode(tool: Tool) -> &'static str {
    match tool {
        Tool::HaulQuickstart => "quickstart",
        Tool::HaulModest => "modest",
        Tool::HaulAggressive => "aggressive",
        _ => "fair",
    }
}

const PORT: u16 = 7701;
