//! The drivers of bench/: UDT, SRT, and QUIC by quinn. They are called alike, and their receivers print the same.

use std::time::Duration;

use haul_lab::Side;
use haul_units::Bytes;
use rustix::process::Signal;

use super::setup::{Bench, Measured, round_trip, window, words};
use crate::bench::duel::{Duel, Listens, MeasureError};
use crate::bench::plan::Work;
use crate::bench::series::Series;
use crate::bench::tool::Tool;

/// Measures what the cell's tool carries.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    let cell = bench.cell;
    let (name, note) = match cell.tool {
        Tool::Udt => ("udt-bulk", "UDP buffers 32 MiB, clear text"),
        Tool::Srt => ("srt-bulk", "UDP buffers 32 MiB, clear text"),
        _ => ("quinn-bulk", "UDP buffers 64 MiB, AES-128-GCM"),
    };
    let program = bench.programs.find(name).unwrap_or_else(|| name.into());
    let mut sides = [(Side::B, "receive"), (Side::A, "send")].map(|(side, role)| {
        let mut command = bench.site.command(side, program.as_os_str());
        command.args([role, &bench.site.address(Side::B).to_string(), &PORT.to_string()]);
        command.args(["--window", &window(&cell.path).0.to_string()]);
        match cell.tool {
            Tool::QuicCubic => _ = command.args(["--congestion", "cubic"]),
            Tool::QuicBbr => _ = command.args(["--congestion", "bbr"]),
            _ => {}
        }
        command
    });
    match cell.work {
        Work::Bytes { bytes, .. } => sides.iter_mut().for_each(|command| _ = command.args(["--bytes", &bytes.0.to_string()])),
        _ => _ = sides[0].args(["--seconds", &cell.work.at_most().as_secs_f64().to_string()]),
    }
    let [server, client] = sides;
    let settings = format!("{}; {note}", words(&client));
    let slack = round_trip(&cell.path) * 10 + Duration::from_secs(2);
    let duel = Duel {
        server,
        client,
        listens: Listens::Udp(PORT),
        end_by: Signal::INT,
        at_most: cell.work.at_most() + slack,
        // The receiver may end first, and not every protocol says so.
        farewell: round_trip(&cell.path),
    };
    let fought = duel.fight(bench.site, bench.observer)?;
    let series = parse(&fought.server_output, name)?;
    Ok(Measured::of(cell, &series, &fought, settings))
}

/// The intervals that a receiver prints: `interval END_SECONDS BYTES`.
fn parse(output: &str, who: &'static str) -> Result<Series, MeasureError> {
    let interval = |line: &str| {
        let mut figures = line.strip_prefix("interval ")?.split(' ');
        let end = Duration::try_from_secs_f64(figures.next()?.parse().ok()?).ok()?;
        Some((end, Bytes(figures.next()?.parse().ok()?)))
    };
    let series: Series = output.lines().filter_map(interval).collect();
    if series.intervals().is_empty() {
        let said = output.lines().next().unwrap_or("nothing").to_owned();
        return Err(MeasureError::Unexpected { who, said });
    }
    Ok(series)
}

const PORT: u16 = 5300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_tells_what_arrived_when() {
        for (output, bytes) in [
            (include_str!("recorded/udt-bulk.txt"), 1_154_864),
            (include_str!("recorded/srt-bulk.txt"), 879_424),
            (include_str!("recorded/quinn-bulk.txt"), 2_666_458),
        ] {
            let series = parse(output, "driver").expect("real output");
            assert_eq!((series.intervals().len(), series.total()), (5, Bytes(bytes)));
            assert_eq!(series.end(), Duration::from_micros(500_100));
        }
    }

    #[test]
    fn a_driver_that_fails_is_quoted() {
        let error = parse("error: bind: Address in use", "udt-bulk").map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("udt-bulk") && error.contains("Address in use")));
    }
}
