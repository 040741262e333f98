//! `haul fleet status`: how the servers are, in a table or as lines of JSON.

use haul_copy::StatusReport;
use haul_fleet::{MemberStatus, status};
use haul_units::Bytes;
use serde_json::{Value, json};

use super::{bring_up, hosts_spec};
use crate::args::FleetStatusArgs;
use crate::exit::{Exit, Failure, chain};
use crate::{interrupt, logging, output};

/// Runs the command.
pub fn run(args: &FleetStatusArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, 0, false);
    interrupt::watch_connecting();
    let spec = hosts_spec(&args.hosts)?;
    let wanted = spec.hosts.len();
    let fleet = bring_up(&spec, |absent| {
        if args.json {
            output::print_event(&json!({ "member": absent.name, "error": absent.why.to_string() }));
        }
    })?;
    let told = status(fleet.members, interrupt::cancel());
    if args.json {
        told.iter().map(line).for_each(|line| output::print_event(&line));
    } else {
        output::out_lines(&table(&told).join("\n"));
    }
    for (name, error) in told.iter().filter_map(|member| Some((&member.name, member.report.as_ref().err()?))) {
        output::print_error(&format!("{name}: {}", chain(error)));
    }
    let answered = told.iter().filter(|member| member.report.is_ok()).count();
    Ok(match answered {
        0 => Exit::Failed,
        some if some < wanted => Exit::Partial,
        _ => Exit::Done,
    })
}

fn line(member: &MemberStatus) -> Value {
    match &member.report {
        Ok(report) => json!({ "member": member.name, "rtt_ms": member.rtt.as_secs_f64() * 1000.0, "status": report }),
        Err(error) => json!({ "member": member.name, "error": chain(error) }),
    }
}

/// A row for each place of each server; of those that have not answered, none.
fn table(told: &[MemberStatus]) -> Vec<String> {
    let mut rows = vec![["SERVER", "LOAD", "MEMORY FREE", "ROOM FREE", "OF", "RTT", "WHERE"].map(str::to_owned)];
    for member in told {
        let Ok(report) = &member.report else { continue };
        for (at, place) in report.places.iter().enumerate() {
            let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| Bytes(bytes).to_string());
            let problem = place.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
            let access = if place.writable { "" } else { " (read only)" };
            let first = |text: String| if at == 0 { text } else { String::new() };
            rows.push([
                first(member.name.clone()),
                first(load(report)),
                first(Bytes(report.memory_available_bytes).to_string()),
                bytes(place.free_bytes),
                bytes(place.total_bytes),
                first(format!("{:.1} ms", member.rtt.as_secs_f64() * 1000.0)),
                format!("{}{access}{problem}", place.name),
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let text = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if matches!(column, 0 | 6) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(text).collect()
}

/// Of how many processors so much is wanted.
fn load(report: &StatusReport) -> String {
    format!("{:.2}/{}", report.machine.load1, report.processors)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_copy::{MachineReport, PlaceReport};

    use super::*;

    #[test]
    fn a_row_for_each_place() {
        let place = |name: &str, writable, problem: Option<&str>| PlaceReport {
            name: name.into(),
            free_bytes: problem.is_none().then_some(1 << 30),
            total_bytes: problem.is_none().then_some(4 << 30),
            writable,
            problem: problem.map(Into::into),
        };
        let report = StatusReport {
            processors: 4,
            machine: MachineReport { load1: 0.5, ..MachineReport::default() },
            memory_available_bytes: 1 << 31,
            places: vec![place("/data", true, None), place("/old", false, Some("not a directory"))],
            ..StatusReport::default()
        };
        let rtt = Duration::from_micros(150_200);
        let told = [
            MemberStatus { name: "store01".into(), rtt, report: Ok(report) },
            MemberStatus { name: "store02".into(), rtt, report: Err(std::io::Error::other("gone")) },
        ];
        assert_eq!(
            table(&told),
            [
                "SERVER     LOAD  MEMORY FREE  ROOM FREE        OF       RTT  WHERE",
                "store01  0.50/4     2.00 GiB   1.00 GiB  4.00 GiB  150.2 ms  /data",
                "                                      ?         ?            /old (read only): not a directory",
            ]
        );
    }
}
