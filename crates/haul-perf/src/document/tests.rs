//! Documents of measurements that were made up, as golden files: what reads iperf3's JSON reads every key of them.

use std::time::Duration;

use super::*;
use crate::plan::{Amount, Direction, Plan, Role, TcpPlan, Ways};
use crate::results::{Both, Done, Interval, Outcome, Pings, Total};
use crate::sample::{CpuUse, PartSample, PathSample};
use crate::spread::{Spread, Spreads};

fn plan(ways: Ways, streams: u16, tcp: bool) -> Plan {
    Plan {
        ways,
        streams,
        block_bytes: 131_072,
        amount: Amount::Time(2_500_000),
        omit_us: 500_000,
        interval_us: 1_000_000,
        rate_bps: tcp.then_some(80_000_000),
        mode: "fair".into(),
        tcp: tcp.then(|| TcpPlan { congestion: Some("cubic".into()) }),
    }
}

fn about(title: Option<&str>) -> About {
    About {
        host: "far".to_owned(),
        addresses: ["192.0.2.1:40000".parse().unwrap(), "[2001:db8::7]:7701".parse().unwrap()],
        cookie: "00c0ffee".to_owned(),
        server_version: "0.1.0".into(),
        systems: ["Linux here".into(), "Linux there".into()],
        server_key: title.map(|_| "SHA256:abc".to_owned()),
        title: title.map(str::to_owned),
        paths: 2,
        timestamp: 1_700_000_000,
    }
}

/// A path whose figures all differ.
fn path(seed: u64) -> PathSample {
    PathSample {
        rtt_us: 20_000 + seed,
        rtt_var_us: seed * 3,
        min_rtt_us: 19_000,
        queue_delay_us: 700,
        window_bytes: 5_000_000,
        in_flight_bytes: 4_000_000,
        receive_window_bytes: seed * 1000,
        packet_bytes: 1452,
        pacing_bps: 900_000_000,
        delivery_bps: 850_000_000,
        burst_p99_pkts: seed,
        phase: "cruise".into(),
        sent_pkts: 1000 + seed,
        lost_pkts: 7,
        spurious_pkts: 2,
        marked_pkts: 1,
        retransmitted_bytes: 10_000,
        wait_application_us: 10,
        wait_window_us: 20,
        wait_credit_us: 30,
        wait_pacing_us: 700_000,
        each: Vec::new(),
    }
}

fn interval(direction: Direction, role: Role, index: u32, streams: u64, paths: &[PathSample]) -> Interval {
    let start_us = u64::from(index.saturating_sub(1)) * 1_000_000;
    Interval {
        direction,
        role,
        index,
        start_us,
        end_us: start_us + if index == 0 { 500_000 } else { 1_000_000 },
        omitted: index == 0,
        bytes: (0..streams).map(|stream| 1_000_000 + stream + u64::from(index)).collect(),
        paths: paths.to_vec(),
    }
}

fn total(direction: Direction, role: Role, streams: u64, paths: &[PathSample]) -> Total {
    let values = |from: u64| (from..from + 40).collect::<Spread>();
    Total {
        direction,
        role,
        time_us: 2_500_000,
        bytes: (0..streams).map(|stream| 3_000_000 + stream).collect(),
        paths: paths.to_vec(),
        spreads: Some(Spreads { rtt_us: values(100), queue_delay_us: values(0), gaps_pkts: values(1), late_pkts: values(3) }),
        congestion: (role == Role::Sender).then(|| "cubic".into()),
        error: None,
    }
}

/// Intervals of both ends, of which the last direction's are the last of each time; and the totals.
fn outcome(plan: &Plan, paths: &[PathSample]) -> Outcome {
    let streams = u64::from(plan.streams);
    let (mut intervals, mut totals) = (Vec::new(), Vec::new());
    for index in 0..3 {
        for &direction in plan.ways.directions() {
            intervals.push(Both {
                direction,
                sender: interval(direction, Role::Sender, index, streams, paths),
                receiver: interval(direction, Role::Receiver, index, streams, &[]),
            });
        }
    }
    for &direction in plan.ways.directions() {
        totals.push(total(direction, Role::Sender, streams, paths));
        totals.push(total(direction, Role::Receiver, streams, &[]));
    }
    Outcome {
        intervals,
        totals,
        cpu: CpuUse { total: 30.5, user: 20.25, system: 10.25 },
        done: Some(Done {
            cpu: CpuUse { total: 60.0, user: 40.0, system: 20.0 },
            output: Some(vec!["one".into(), "two".into()]),
        }),
        interrupted: false,
        pings: Pings { idle: vec![Duration::from_micros(20_100), Duration::from_micros(20_200)], loaded: Vec::new() },
    }
}

fn assert_golden(golden: &str, plan: &Plan, about: &About, outcome: &Outcome) {
    // By way of a `Value`, whose keys are sorted, as the command prints it.
    let value = serde_json::to_value(Document::new(plan, about, outcome)).unwrap();
    let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
    let version = concat!("\"haul ", env!("CARGO_PKG_VERSION"), "\"");
    assert_eq!(text.replace(version, "\"haul VERSION\""), golden);
}

#[test]
fn one_stream_over_haul() {
    let plan = plan(Ways::Up, 1, false);
    assert_golden(include_str!("golden/up.json"), &plan, &about(None), &outcome(&plan, &[path(5)]));
}

#[test]
fn several_streams_and_paths_from_the_server() {
    let plan = Plan { amount: Amount::Bytes(6_000_001), ..plan(Ways::Down, 2, false) };
    let part = |id| PartSample { id, usable: id == 0, acknowledged_bytes: 5000, ..PartSample::default() };
    let paths = [PathSample { each: vec![part(0), part(1)], burst_p99_pkts: 0, ..path(0) }];
    let mut outcome = outcome(&plan, &paths);
    // A last interval that only the receiver has told, and a failure.
    outcome.intervals.last_mut().unwrap().sender.paths.clear();
    outcome.totals[1].error = Some("gone".into());
    outcome.totals[1].spreads = None;
    outcome.done = None;
    assert_golden(include_str!("golden/paths.json"), &plan, &about(Some("a title")), &outcome);
}

#[test]
fn tcp_both_ways() {
    let plan = plan(Ways::Both, 2, true);
    let mut outcome = outcome(&plan, &[path(1), path(2)]);
    outcome.totals.iter_mut().for_each(|total| total.spreads = None);
    outcome.done.as_mut().unwrap().output = None;
    assert_golden(include_str!("golden/tcp.json"), &plan, &about(None), &outcome);
}

#[test]
fn a_server_that_has_told_nothing() {
    let plan = plan(Ways::Up, 1, false);
    let mut outcome = outcome(&plan, &[]);
    outcome.totals.clear();
    outcome.intervals.clear();
    assert_golden(include_str!("golden/nothing.json"), &plan, &about(None), &outcome);
}
