//! A measurement in iperf3's JSON, with haul's own keys beside iperf3's.
//!
//! `start`, `intervals[].streams[]`, `intervals[].sum`, `end.streams[].sender/receiver`, `end.sum_sent`, `end.sum_received`, `end.cpu_utilization_percent` mean what
//! they mean there; with `--bidir` the way back is `sum_bidir_reverse`, `sum_sent_bidir_reverse`, `sum_received_bidir_reverse`. Bytes of an interval are counted at the
//! receiver. `retransmits` are packets taken for lost, for TCP segments sent again.

use std::time::{Duration, UNIX_EPOCH};

use haul_units::PeerText;
use serde_json::{Map, Value, json};

use super::client::{Both, Outcome};
use super::plan::{Amount, Direction, Plan, Role, Ways};
use super::sample::{CpuUse, PartSample, PathSample, micros};
use super::spread::Spread;
use super::wire::{Interval, Total};

/// What is known before the first byte.
#[derive(Debug, Clone)]
pub struct Start {
    /// The server, as the user named it.
    pub host: String,
    /// Addresses of the connection: here, there.
    pub addresses: [std::net::SocketAddr; 2],
    /// Names the measurement on both sides.
    pub cookie: String,
    /// The server's version.
    pub server_version: String,
    /// This machine, the server's.
    pub systems: [String; 2],
    /// Fingerprint of the server's key.
    pub server_key: Option<String>,
    /// Title, put before every line of text.
    pub title: Option<String>,
    /// Paths of the connection that were asked for.
    pub paths: u8,
    /// Seconds since 1970.
    pub timestamp: u64,
}

/// `start`.
pub fn start(plan: &Plan, start: &Start) -> Value {
    let [local, remote] = start.addresses;
    let connected: Vec<Value> = (1..=plan.streams)
        .map(|socket| {
            json!({ "socket": socket, "local_host": local.ip().to_string(), "local_port": local.port(),
                "remote_host": remote.ip().to_string(), "remote_port": remote.port() })
        })
        .collect();
    let mut value = json!({
        "connected": connected,
        "version": format!("haul {}", env!("CARGO_PKG_VERSION")),
        "system_info": start.systems[0],
        "timestamp": { "time": httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(start.timestamp)), "timesecs": start.timestamp, "timemillisecs": start.timestamp * 1000 },
        "connecting_to": { "host": start.host, "port": remote.port() },
        "cookie": start.cookie,
        "target_bitrate": plan.rate_bps.unwrap_or(0),
        "fq_rate": 0,
        "sock_bufsize": 0,
        "test_start": {
            // What reads iperf3's JSON knows TCP, UDP and SCTP: haul's figures have the form of TCP's.
            "protocol": "TCP",
            "num_streams": plan.streams,
            "blksize": plan.block(),
            "omit": seconds(plan.omit_us),
            "duration": if let Amount::Time(us) = plan.amount { seconds(us) } else { 0.0 },
            "bytes": plan.bytes().unwrap_or(0),
            "blocks": 0,
            "reverse": u8::from(plan.ways == Ways::Down),
            "tos": 0,
            "target_bitrate": plan.rate_bps.unwrap_or(0),
            "bidir": u8::from(plan.ways == Ways::Both),
            "fqrate": 0,
            "interval": seconds(plan.interval_us),
        },
        "haul": {
            "transport": if plan.tcp.is_some() { "tcp" } else { "haul" },
            "mode": plan.mode,
            "paths": start.paths,
            "server_version": start.server_version,
            "server_system_info": start.systems[1],
            "server_key": start.server_key,
        },
    });
    if let (Some(title), Some(object)) = (&start.title, value.as_object_mut()) {
        object.insert("title".to_owned(), json!(title));
    }
    value
}

/// One element of `intervals`: all directions of one interval.
pub fn interval(plan: &Plan, of_one_time: &[&Both]) -> Value {
    let mut object = Map::new();
    let mut streams = Vec::new();
    for both in of_one_time {
        let forward = is_forward(plan, both.direction);
        let first_socket = if forward { 1 } else { usize::from(plan.streams) + 1 };
        for (stream, &bytes) in both.receiver.bytes.iter().enumerate() {
            let path = stream_path(plan, &both.sender.paths, stream);
            let mut value = rates(&both.receiver, bytes, both.direction);
            insert(&mut value, "socket", json!(first_socket + stream));
            if let Some(path) = path {
                add_path(&mut value, path, plan.streams == 1 || plan.tcp.is_some());
            }
            streams.push(value);
        }
        let mut sum = rates(&both.receiver, both.receiver.bytes.iter().sum(), both.direction);
        insert(&mut sum, "sent_bytes", json!(both.sender.bytes.iter().sum::<u64>()));
        add_paths(&mut sum, &both.sender.paths, both.sender.time_us());
        object.insert(if forward { "sum" } else { "sum_bidir_reverse" }.to_owned(), sum);
    }
    object.insert("streams".to_owned(), Value::Array(streams));
    Value::Object(object)
}

/// `end`.
pub fn end(plan: &Plan, outcome: &Outcome) -> Value {
    let mut object = Map::new();
    let mut streams = Vec::new();
    for &direction in plan.ways.directions() {
        let forward = is_forward(plan, direction);
        let (sender, receiver) = (outcome.total(direction, Role::Sender), outcome.total(direction, Role::Receiver));
        let first_socket = if forward { 1 } else { usize::from(plan.streams) + 1 };
        for stream in 0..usize::from(plan.streams) {
            let of = |total: Option<&Total>| {
                let mut value = total
                    .map_or(Value::Null, |total| total_value(total, total.bytes.get(stream).copied().unwrap_or(0), direction));
                insert(&mut value, "socket", json!(first_socket + stream));
                value
            };
            let mut sent = of(sender);
            if let Some(path) = sender.and_then(|total| stream_path(plan, &total.paths, stream)) {
                add_path(&mut sent, path, plan.streams == 1 || plan.tcp.is_some());
                add_rtt_summary(&mut sent, outcome, direction, stream);
            }
            streams.push(json!({ "sender": sent, "receiver": of(receiver) }));
        }
        let suffix = if forward { "" } else { "_bidir_reverse" };
        for (name, total) in [("sum_sent", sender), ("sum_received", receiver)] {
            let Some(total) = total else { continue };
            let mut sum = total_value(total, total.bytes.iter().sum(), direction);
            add_paths(&mut sum, &total.paths, total.time_us);
            object.insert(format!("{name}{suffix}"), sum);
        }
        let congestion = sender.and_then(|total| total.congestion.clone());
        let prefix = if direction == Direction::Up { "sender" } else { "receiver" };
        if let Some(name) = congestion {
            object.insert(format!("{}_tcp_congestion", if plan.ways == Ways::Both { prefix } else { "sender" }), json!(name));
        }
    }
    object.insert("streams".to_owned(), Value::Array(streams));
    object.insert("latency_us".to_owned(), latency(plan, outcome));
    object.insert("cpu_utilization_percent".to_owned(), cpu(&outcome.cpu, outcome.done.as_ref().map(|done| &done.cpu)));
    Value::Object(object)
}

/// Round-trip times idle and loaded, queueing delay, gaps and packets out of order: percentiles in microseconds, histograms in packets.
fn latency(plan: &Plan, outcome: &Outcome) -> Value {
    let pings = |pings: &[Duration]| pings.iter().copied().map(micros).collect::<Spread>().to_json();
    let mut object = Map::new();
    object.insert("idle_ping".to_owned(), pings(&outcome.pings.idle));
    object.insert("loaded_ping".to_owned(), pings(&outcome.pings.loaded));
    for &direction in plan.ways.directions() {
        let spreads = |role| outcome.total(direction, role).and_then(|total| total.spreads.as_ref());
        let (Some(sender), Some(receiver)) = (spreads(Role::Sender), spreads(Role::Receiver)) else { continue };
        let name = if direction == Direction::Up { "client_to_server" } else { "server_to_client" };
        let value = json!({
            "rtt": sender.rtt_us.to_json(),
            "queue_delay": sender.queue_delay_us.to_json(),
            "gaps_packets": receiver.gaps_pkts.histogram(),
            "late_packets": receiver.late_pkts.histogram(),
        });
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

/// The whole document.
pub fn document(plan: &Plan, about: &Start, outcome: &Outcome) -> Value {
    let mut document = Map::new();
    document.insert("start".to_owned(), start(plan, about));
    document.insert("intervals".to_owned(), Value::Array(by_time(plan, &outcome.intervals)));
    document.insert("end".to_owned(), end(plan, outcome));
    if let Some(title) = &about.title {
        document.insert("title".to_owned(), json!(title));
    }
    if let Some(output) = outcome.done.as_ref().and_then(|done| done.output.as_ref()) {
        document
            .insert("server_output_text".to_owned(), json!(output.iter().map(PeerText::as_str).collect::<Vec<_>>().join("\n")));
    }
    if let Some(error) = first_error(outcome) {
        document.insert("error".to_owned(), json!(error));
    }
    Value::Object(document)
}

/// The first thing that went wrong in a measurement that has results all the same.
pub fn first_error(outcome: &Outcome) -> Option<String> {
    outcome.totals.iter().find_map(|total| total.error.clone()).map(String::from)
}

/// Puts the directions of each interval together.
fn by_time(plan: &Plan, intervals: &[Both]) -> Vec<Value> {
    let mut indices: Vec<u32> = intervals.iter().map(|both| both.receiver.index).collect();
    indices.sort_unstable();
    indices.dedup();
    let of = |index: u32| intervals.iter().filter(|both| both.receiver.index == index).collect::<Vec<_>>();
    indices.into_iter().map(|index| interval(plan, &of(index))).collect()
}

/// The direction that iperf3 names without a suffix.
fn is_forward(plan: &Plan, direction: Direction) -> bool {
    plan.ways != Ways::Both || direction == Direction::Up
}

/// A sender's path as far as it is this stream's: TCP has one each, haul's streams share one.
fn stream_path<'a>(plan: &Plan, paths: &'a [PathSample], stream: usize) -> Option<&'a PathSample> {
    paths.get(if plan.tcp.is_some() { stream } else { 0 })
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn bits_per_second(bytes: u64, time_us: u64) -> f64 {
    if time_us == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds(time_us) }
}

fn insert(value: &mut Value, key: &str, inserted: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), inserted);
    }
}

fn rates(interval: &Interval, bytes: u64, direction: Direction) -> Value {
    let time_us = interval.time_us();
    json!({
        "start": seconds(interval.start_us),
        "end": seconds(interval.end_us),
        "seconds": seconds(time_us),
        "bytes": bytes,
        "bits_per_second": bits_per_second(bytes, time_us),
        "omitted": interval.omitted,
        "sender": direction == Direction::Up,
    })
}

fn total_value(total: &Total, bytes: u64, direction: Direction) -> Value {
    json!({
        "start": 0,
        "end": seconds(total.time_us),
        "seconds": seconds(total.time_us),
        "bytes": bytes,
        "bits_per_second": bits_per_second(bytes, total.time_us),
        "sender": direction == Direction::Up,
    })
}

/// What iperf3 tells of a TCP connection, and what haul knows more; counters only where they are this stream's own.
fn add_path(value: &mut Value, path: &PathSample, own: bool) {
    if own {
        add_counters(value, std::slice::from_ref(path));
    }
    for (key, figure) in [("snd_cwnd", path.window_bytes), ("rtt", path.rtt_us), ("pmtu", path.packet_bytes)] {
        insert(value, key, json!(figure));
    }
    // What only TCP knows.
    for (key, figure) in [("snd_wnd", path.receive_window_bytes), ("rttvar", path.rtt_var_us)] {
        if figure > 0 {
            insert(value, key, json!(figure));
        }
    }
}

fn add_counters(value: &mut Value, paths: &[PathSample]) {
    let sum = |get: fn(&PathSample) -> u64| paths.iter().map(get).sum::<u64>();
    insert(value, "retransmits", json!(sum(|path| path.lost_pkts)));
    insert(value, "retransmitted_bytes", json!(sum(|path| path.retransmitted_bytes)));
    insert(value, "packets", json!(sum(|path| path.sent_pkts)));
    insert(value, "spurious_retransmits", json!(sum(|path| path.spurious_pkts)));
    insert(value, "ecn_marked_packets", json!(sum(|path| path.marked_pkts)));
    let lost = sum(|path| path.lost_pkts.saturating_sub(path.spurious_pkts));
    insert(value, "loss", json!(lost as f64 / sum(|path| path.sent_pkts).max(1) as f64));
}

/// A sender's paths in a sum.
fn add_paths(value: &mut Value, paths: &[PathSample], time_us: u64) {
    let Some(first) = paths.first() else { return };
    add_counters(value, paths);
    insert(value, "limit", json!(first.limit(time_us)));
    insert(
        value,
        "waits_us",
        json!({ "application": first.wait_application_us, "window": first.wait_window_us,
        "receiver": first.wait_credit_us, "pacing": first.wait_pacing_us }),
    );
    if let [path] = paths {
        add_path(value, path, false);
        insert(value, "min_rtt", json!(path.min_rtt_us));
        insert(value, "queue_delay", json!(path.queue_delay_us));
        insert(value, "in_flight", json!(path.in_flight_bytes));
        insert(value, "pacing_rate", json!(path.pacing_bps));
        insert(value, "delivery_rate", json!(path.delivery_bps));
        if path.burst_p99_pkts > 0 {
            insert(value, "burst_p99_packets", json!(path.burst_p99_pkts));
        }
        insert(value, "phase", json!(path.phase));
        if !path.each.is_empty() {
            insert(value, "paths", path.each.iter().map(|part| one_of_several(part, time_us)).collect());
        }
    }
}

/// One of the paths of a connection; bytes are UDP payload that was acknowledged.
fn one_of_several(part: &PartSample, time_us: u64) -> Value {
    json!({
        "path": part.id,
        "usable": part.usable,
        "bytes": part.acknowledged_bytes,
        "bits_per_second": bits_per_second(part.acknowledged_bytes, time_us),
        "sent_bytes": part.sent_bytes,
        "retransmits": part.lost_pkts,
        "rtt": part.rtt_us,
        "snd_cwnd": part.window_bytes,
        "in_flight": part.in_flight_bytes,
        "pacing_rate": part.pacing_bps,
    })
}

/// iperf3's `max_snd_cwnd`, `max_rtt`, `min_rtt`, `mean_rtt` of a stream, over the intervals.
fn add_rtt_summary(value: &mut Value, outcome: &Outcome, direction: Direction, stream: usize) {
    let samples: Vec<&PathSample> = outcome
        .intervals
        .iter()
        .filter(|both| both.direction == direction && !both.sender.omitted)
        .filter_map(|both| both.sender.paths.get(stream).or_else(|| both.sender.paths.first()))
        .collect();
    let rtts = || samples.iter().map(|sample| sample.rtt_us);
    insert(value, "max_snd_cwnd", json!(samples.iter().map(|sample| sample.window_bytes).max().unwrap_or(0)));
    insert(value, "max_rtt", json!(rtts().max().unwrap_or(0)));
    insert(value, "min_rtt", json!(rtts().min().unwrap_or(0)));
    insert(value, "mean_rtt", json!(rtts().sum::<u64>() / samples.len().max(1) as u64));
}

fn cpu(host: &CpuUse, remote: Option<&CpuUse>) -> Value {
    let remote = remote.copied().unwrap_or_default();
    json!({
        "host_total": host.total, "host_user": host.user, "host_system": host.system,
        "remote_total": remote.total, "remote_user": remote.user, "remote_system": remote.system,
    })
}
