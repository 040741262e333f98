//! How the servers are.

use haul_copy::{StatusReport, WorkReport};
use haul_peer::chain;
use haul_units::{BitRate, Bytes, aligned};
use serde_json::{Value, json};

use super::events::rtt_ms;
use crate::status::MemberStatus;

/// A server for programs.
pub fn status_event(member: &MemberStatus) -> Value {
    match &member.report {
        Ok(report) => json!({ "member": member.name, "rtt_ms": rtt_ms(member.rtt), "status": report }),
        Err(error) => json!({ "member": member.name, "error": chain(error) }),
    }
}

/// A row for each place of each server; of those that have not answered, none. What they do comes last, where one does something or `kept` says
/// that they are there to.
pub fn status_table(told: &[MemberStatus], kept: bool) -> Vec<String> {
    let head = ["SERVER", "LOAD", "MEMORY FREE", "ROOM FREE", "OF", "RTT", "WHERE", "DOES"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for member in told {
        let Ok(report) = &member.report else { continue };
        for (at, place) in report.places.iter().enumerate() {
            let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| Bytes(bytes).to_string());
            let problem = place.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
            let access = if place.writable { "" } else { " (read only)" };
            let first = |text: String| if at == 0 { text } else { String::new() };
            rows.push(vec![
                first(member.name.clone()),
                first(load(report)),
                first(Bytes(report.memory_available_bytes).to_string()),
                bytes(place.free_bytes),
                bytes(place.total_bytes),
                first(rtt_ms(member.rtt).map_or_else(|| "?".to_owned(), |ms| format!("{ms:.1} ms"))),
                format!("{}{access}{problem}", place.name),
                first(work(report)),
            ]);
            rows.extend(place.storage.iter().map(|server| {
                let load = server.load1.map_or_else(|| "down".to_owned(), |load| format!("{load:.2}/{}", server.processors));
                let (free, total) = (bytes(server.free_bytes), bytes(server.total_bytes));
                vec![String::new(), load, String::new(), free, total, String::new(), format!("on {}", server.host), String::new()]
            }));
        }
    }
    let works = |member: &MemberStatus| member.report.as_ref().is_ok_and(|report| !report.work.is_empty());
    if !kept && !told.iter().any(works) {
        for row in &mut rows {
            row.truncate(7);
        }
    }
    aligned(&rows, &[0, 6, 7])
}

/// What a server does, for how long, and how fast.
fn work(report: &StatusReport) -> String {
    let one = |work: &WorkReport| {
        let (way, since) = (if work.sends { "sends" } else { "receives" }, since(work.since_s as u64));
        format!("{way} {} for {since}, {}", work.what, BitRate::from_bps(work.rate_bps))
    };
    if report.work.is_empty() { "rests".to_owned() } else { report.work.iter().map(one).collect::<Vec<_>>().join("; ") }
}

/// Of how many processors so much is wanted.
fn load(report: &StatusReport) -> String {
    let processors = match report.machine.processors {
        0 => "?".to_owned(),
        known => known.to_string(),
    };
    format!("{:.2}/{processors}", report.machine.load1)
}

/// A time in the largest units that tell it.
pub fn since(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_copy::{MachineReport, PlaceReport, StorageReport};

    use super::*;

    #[test]
    fn a_row_for_each_place() {
        let place = |name: &str, writable, problem: Option<&str>| PlaceReport {
            name: name.into(),
            free_bytes: problem.is_none().then_some(1 << 30),
            total_bytes: problem.is_none().then_some(4 << 30),
            writable,
            problem: problem.map(Into::into),
            storage: Vec::new(),
        };
        let behind = |host: &str, load1: Option<f64>| StorageReport {
            host: host.into(),
            processors: 8,
            load1,
            free_bytes: load1.map(|_| 1 << 29),
            total_bytes: load1.map(|_| 1 << 31),
            ..StorageReport::default()
        };
        let gfarm = PlaceReport { storage: vec![behind("s1", Some(0.25)), behind("s2", None)], ..place("gfarm:/", true, None) };
        let report = StatusReport {
            machine: MachineReport { load1: 0.5, processors: 4, ..MachineReport::default() },
            memory_available_bytes: 1 << 31,
            work: vec![WorkReport { what: "back".into(), since_s: 61.5, rate_bps: 8_000_000, ..WorkReport::default() }],
            places: vec![place("/data", true, None), place("/old", false, Some("not a directory")), gfarm],
            ..StatusReport::default()
        };
        let untold = StatusReport { machine: MachineReport { processors: 0, ..report.machine }, ..StatusReport::default() };
        assert_eq!(load(&untold), "0.50/?");
        let rtt = Duration::from_micros(150_200);
        let resting = StatusReport { work: Vec::new(), ..report.clone() };
        let told = |report| {
            [
                MemberStatus { name: "store01".into(), rtt, report: Ok(report) },
                MemberStatus { name: "store02".into(), rtt, report: Err(std::io::Error::other("gone")) },
            ]
        };
        assert_eq!(
            status_table(&told(resting), false),
            [
                "SERVER     LOAD  MEMORY FREE  ROOM FREE        OF       RTT  WHERE",
                "store01  0.50/4     2.00 GiB   1.00 GiB  4.00 GiB  150.2 ms  /data",
                "                                      ?         ?            /old (read only): not a directory",
                "                               1.00 GiB  4.00 GiB            gfarm:/",
                "         0.25/8                 512 MiB  2.00 GiB            on s1",
                "           down                       ?         ?            on s2",
            ]
        );
        // A daemon that nobody keeps may be at work as well.
        for kept in [false, true] {
            let rows = status_table(&told(report.clone()), kept);
            assert!(rows[0].ends_with("  WHERE                              DOES"), "{rows:?}");
            assert!(rows[1].ends_with("  /data                              receives back for 1 min, 8.00 Mbit/s"), "{rows:?}");
        }
    }

    #[test]
    fn a_time_is_told_in_large_units() {
        assert_eq!([59, 60, 3_700, 90_000].map(since), ["59 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
