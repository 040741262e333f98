//! The document, from the plan and what was counted.

use std::time::{Duration, UNIX_EPOCH};

use haul_units::PeerText;

use super::{
    About, Connected, ConnectingTo, Counters, CpuUtilization, Details, DirectionLatency, Document, End, Gauges, HaulStart,
    IntervalRecord, Latency, OnePath, OverTime, Paths, Percentiles, Rates, Start, StreamEnds, StreamInterval, StreamTotal,
    SumInterval, SumTotal, TestStart, Timestamp, TotalRates, Waiting, WaitsUs,
};
use crate::plan::{Amount, Direction, Plan, Role, Ways};
use crate::results::{Both, Interval, Outcome, Total};
use crate::sample::{CpuUse, PartSample, PathSample, micros};
use crate::spread::Spread;

impl Document {
    /// The whole of it.
    pub fn new(plan: &Plan, about: &About, outcome: &Outcome) -> Self {
        let output = outcome.done.as_ref().and_then(|done| done.output.as_ref());
        Self {
            start: Start::new(plan, about),
            intervals: by_time(plan, &outcome.intervals),
            end: End::new(plan, outcome),
            title: about.title.clone(),
            server_output_text: output.map(|lines| lines.iter().map(PeerText::as_str).collect::<Vec<_>>().join("\n")),
            error: outcome.first_error().cloned(),
        }
    }
}

impl Start {
    /// What is known before the first byte.
    pub fn new(plan: &Plan, about: &About) -> Self {
        let [local, remote] = about.addresses;
        let connected = |socket| Connected {
            socket,
            local_host: local.ip(),
            local_port: local.port(),
            remote_host: remote.ip(),
            remote_port: remote.port(),
        };
        let [system_info, server_system_info] = about.systems.clone();
        Self {
            connected: (1..=u32::from(plan.streams)).map(connected).collect(),
            version: format!("haul {}", env!("CARGO_PKG_VERSION")),
            system_info,
            timestamp: Timestamp {
                time: UNIX_EPOCH
                    .checked_add(Duration::from_secs(about.timestamp))
                    .map(httpdate::fmt_http_date)
                    .unwrap_or_default(),
                timesecs: about.timestamp,
                timemillisecs: about.timestamp.saturating_mul(1000),
            },
            connecting_to: ConnectingTo { host: about.host.clone(), port: remote.port() },
            cookie: about.cookie.clone(),
            target_bitrate: plan.rate_bps.unwrap_or(0),
            fq_rate: 0,
            sock_bufsize: 0,
            test_start: TestStart::new(plan),
            haul: HaulStart {
                transport: if plan.tcp.is_some() { "tcp" } else { "haul" },
                mode: plan.mode.clone(),
                paths: about.paths,
                server_version: about.server_version.clone(),
                server_system_info,
                server_key: about.server_key.clone(),
            },
            title: about.title.clone(),
        }
    }
}

impl TestStart {
    fn new(plan: &Plan) -> Self {
        Self {
            protocol: "TCP",
            num_streams: plan.streams,
            blksize: plan.block(),
            omit: seconds(plan.omit_us),
            duration: if let Amount::Time(us) = plan.amount { seconds(us) } else { 0.0 },
            bytes: plan.bytes().unwrap_or(0),
            blocks: 0,
            reverse: u8::from(plan.ways == Ways::Down),
            tos: 0,
            target_bitrate: plan.rate_bps.unwrap_or(0),
            bidir: u8::from(plan.ways == Ways::Both),
            fqrate: 0,
            interval: seconds(plan.interval_us),
        }
    }
}

impl IntervalRecord {
    /// All directions of one interval.
    pub fn new(plan: &Plan, of_one_time: &[&Both]) -> Self {
        let mut record = Self { streams: Vec::new(), sum: None, sum_bidir_reverse: None };
        for both in of_one_time {
            let forward = is_forward(plan, both.direction);
            for (stream, &bytes) in both.receiver.bytes.iter().enumerate() {
                let path = stream_path(plan, &both.sender.paths, stream);
                record.streams.push(StreamInterval {
                    socket: socket(plan, forward, stream),
                    rates: Rates::new(&both.receiver, bytes),
                    counters: path.filter(|_| has_own_counters(plan)).map(|path| Counters::of(std::slice::from_ref(path))),
                    path: path.map(Gauges::of),
                });
            }
            let sum = SumInterval {
                rates: Rates::new(&both.receiver, both.receiver.bytes.iter().sum()),
                sent_bytes: both.sender.bytes.iter().sum(),
                paths: Paths::of(&both.sender.paths, both.sender.time_us()),
            };
            *(if forward { &mut record.sum } else { &mut record.sum_bidir_reverse }) = Some(sum);
        }
        record
    }
}

impl End {
    /// The totals.
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let mut end = Self {
            streams: Vec::new(),
            sum_sent: None,
            sum_received: None,
            sum_sent_bidir_reverse: None,
            sum_received_bidir_reverse: None,
            sender_tcp_congestion: None,
            receiver_tcp_congestion: None,
            latency_us: Latency::new(plan, outcome),
            cpu_utilization_percent: CpuUtilization::new(&outcome.cpu, outcome.done.as_ref().map(|done| &done.cpu)),
        };
        for &direction in plan.ways.directions() {
            let forward = is_forward(plan, direction);
            for stream in 0..usize::from(plan.streams) {
                end.streams.push(StreamEnds::new(plan, outcome, direction, stream));
            }
            let sum = |role| outcome.total(direction, role).map(SumTotal::new);
            let sums = (sum(Role::Sender), sum(Role::Receiver));
            let congestion = outcome.total(direction, Role::Sender).and_then(|total| total.congestion.clone());
            if forward {
                (end.sum_sent, end.sum_received) = sums;
                end.sender_tcp_congestion = congestion;
            } else {
                (end.sum_sent_bidir_reverse, end.sum_received_bidir_reverse) = sums;
                end.receiver_tcp_congestion = congestion;
            }
        }
        end
    }
}

impl StreamEnds {
    fn new(plan: &Plan, outcome: &Outcome, direction: Direction, stream: usize) -> Self {
        let socket = socket(plan, is_forward(plan, direction), stream);
        let of = |role| {
            outcome.total(direction, role).map(|total| StreamTotal {
                socket,
                rates: TotalRates::new(total, total.bytes.get(stream).copied().unwrap_or(0)),
                counters: None,
                path: None,
                over_time: None,
            })
        };
        let mut sender = of(Role::Sender);
        let total = outcome.total(direction, Role::Sender);
        if let Some(sent) = &mut sender
            && let Some(path) = total.and_then(|total| stream_path(plan, &total.paths, stream))
        {
            sent.counters = has_own_counters(plan).then(|| Counters::of(std::slice::from_ref(path)));
            sent.path = Some(Gauges::of(path));
            sent.over_time = Some(OverTime::new(outcome, direction, stream));
        }
        Self { sender, receiver: of(Role::Receiver) }
    }
}

impl SumTotal {
    fn new(total: &Total) -> Self {
        let rates = TotalRates::new(total, total.bytes.iter().sum());
        Self { rates, paths: Paths::of(&total.paths, total.time_us) }
    }
}

impl Rates {
    fn new(interval: &Interval, bytes: u64) -> Self {
        let time_us = interval.time_us();
        Self {
            start: seconds(interval.start_us),
            end: seconds(interval.end_us),
            seconds: seconds(time_us),
            bytes,
            bits_per_second: bits_per_second(bytes, time_us),
            omitted: interval.omitted,
            sender: interval.direction == Direction::Up,
        }
    }
}

impl TotalRates {
    fn new(total: &Total, bytes: u64) -> Self {
        Self {
            start: 0,
            end: seconds(total.time_us),
            seconds: seconds(total.time_us),
            bytes,
            bits_per_second: bits_per_second(bytes, total.time_us),
            sender: total.direction == Direction::Up,
        }
    }
}

impl Paths {
    /// A sender's paths in a sum.
    fn of(paths: &[PathSample], time_us: u64) -> Self {
        let Some(first) = paths.first() else { return Self::default() };
        let only = if let [path] = paths { Some(path) } else { None };
        Self {
            counters: Some(Counters::of(paths)),
            waiting: Some(Waiting::of(first, time_us)),
            path: only.map(Gauges::of),
            details: only.map(|path| Details::of(path, time_us)),
        }
    }
}

impl Counters {
    fn of(paths: &[PathSample]) -> Self {
        let sum = |get: fn(&PathSample) -> u64| paths.iter().map(get).fold(0, u64::saturating_add);
        let lost = sum(|path| path.lost_pkts.saturating_sub(path.spurious_pkts));
        Self {
            retransmits: sum(|path| path.lost_pkts),
            retransmitted_bytes: sum(|path| path.retransmitted_bytes),
            packets: sum(|path| path.sent_pkts),
            spurious_retransmits: sum(|path| path.spurious_pkts),
            ecn_marked_packets: sum(|path| path.marked_pkts),
            loss: lost as f64 / sum(|path| path.sent_pkts).max(1) as f64,
        }
    }
}

impl Gauges {
    fn of(path: &PathSample) -> Self {
        // What only TCP knows is 0 elsewhere.
        let known = |figure: u64| (figure > 0).then_some(figure);
        Self {
            snd_cwnd: path.window_bytes,
            rtt: path.rtt_us,
            pmtu: path.packet_bytes,
            snd_wnd: known(path.receive_window_bytes),
            rttvar: known(path.rtt_var_us),
        }
    }
}

impl Waiting {
    fn of(path: &PathSample, time_us: u64) -> Self {
        Self {
            limit: path.limit(time_us),
            waits_us: WaitsUs {
                application: path.wait_application_us,
                window: path.wait_window_us,
                receiver: path.wait_credit_us,
                pacing: path.wait_pacing_us,
            },
        }
    }
}

impl Details {
    fn of(path: &PathSample, time_us: u64) -> Self {
        Self {
            min_rtt: path.min_rtt_us,
            queue_delay: path.queue_delay_us,
            in_flight: path.in_flight_bytes,
            pacing_rate: path.pacing_bps,
            delivery_rate: path.delivery_bps,
            burst_p99_packets: (path.burst_p99_pkts > 0).then_some(path.burst_p99_pkts),
            phase: path.phase.clone(),
            paths: path.each.iter().map(|part| OnePath::of(part, time_us)).collect(),
        }
    }
}

impl OnePath {
    fn of(part: &PartSample, time_us: u64) -> Self {
        Self {
            path: part.id,
            interface: part.interface.clone(),
            usable: part.usable,
            bytes: part.acknowledged_bytes,
            bits_per_second: bits_per_second(part.acknowledged_bytes, time_us),
            sent_bytes: part.sent_bytes,
            retransmits: part.lost_pkts,
            rtt: part.rtt_us,
            snd_cwnd: part.window_bytes,
            in_flight: part.in_flight_bytes,
            pacing_rate: part.pacing_bps,
        }
    }
}

impl OverTime {
    fn new(outcome: &Outcome, direction: Direction, stream: usize) -> Self {
        let samples: Vec<&PathSample> = outcome
            .intervals
            .iter()
            .filter(|both| both.direction == direction && !both.sender.omitted)
            .filter_map(|both| both.sender.paths.get(stream).or_else(|| both.sender.paths.first()))
            .collect();
        let rtts = || samples.iter().map(|sample| sample.rtt_us);
        Self {
            max_snd_cwnd: samples.iter().map(|sample| sample.window_bytes).max().unwrap_or(0),
            max_rtt: rtts().max().unwrap_or(0),
            min_rtt: rtts().min().unwrap_or(0),
            mean_rtt: rtts().fold(0, u64::saturating_add) / samples.len().max(1) as u64,
        }
    }
}

impl Latency {
    fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let pings = |pings: &[Duration]| Percentiles::of(&pings.iter().copied().map(micros).collect());
        let of = |direction| {
            let spreads = |role| outcome.total(direction, role).and_then(|total| total.spreads.as_ref());
            let (sender, receiver) = (spreads(Role::Sender)?, spreads(Role::Receiver)?);
            Some(DirectionLatency {
                rtt: Percentiles::of(&sender.rtt_us),
                queue_delay: Percentiles::of(&sender.queue_delay_us),
                gaps_packets: receiver.gaps_pkts.histogram(),
                late_packets: receiver.late_pkts.histogram(),
            })
        };
        let planned = |direction| plan.ways.contains(direction).then(|| of(direction)).flatten();
        Self {
            idle_ping: pings(&outcome.pings.idle),
            loaded_ping: pings(&outcome.pings.loaded),
            client_to_server: planned(Direction::Up),
            server_to_client: planned(Direction::Down),
        }
    }
}

impl Percentiles {
    fn of(spread: &Spread) -> Self {
        let at = |part| spread.quantile(part);
        Self { count: spread.count(), min: at(0.0), p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max: at(1.0) }
    }
}

impl CpuUtilization {
    fn new(host: &CpuUse, remote: Option<&CpuUse>) -> Self {
        let remote = remote.copied().unwrap_or_default();
        Self {
            host_total: host.total,
            host_user: host.user,
            host_system: host.system,
            remote_total: remote.total,
            remote_user: remote.user,
            remote_system: remote.system,
        }
    }
}

/// Puts the directions of each interval together.
fn by_time(plan: &Plan, intervals: &[Both]) -> Vec<IntervalRecord> {
    let mut indices: Vec<u32> = intervals.iter().map(|both| both.receiver.index).collect();
    indices.sort_unstable();
    indices.dedup();
    let of = |index: u32| intervals.iter().filter(|both| both.receiver.index == index).collect::<Vec<_>>();
    indices.into_iter().map(|index| IntervalRecord::new(plan, &of(index))).collect()
}

/// The direction that iperf3 names without a suffix.
fn is_forward(plan: &Plan, direction: Direction) -> bool {
    plan.ways != Ways::Both || direction == Direction::Up
}

/// The number of a stream: those of the way back follow those to the server.
fn socket(plan: &Plan, forward: bool, stream: usize) -> u32 {
    let first = if forward { 1 } else { u32::from(plan.streams) + 1 };
    u32::try_from(stream).map_or(u32::MAX, |stream| first.saturating_add(stream))
}

/// A sender's path as far as it is this stream's: TCP has one each, haul's streams share one.
fn stream_path<'a>(plan: &Plan, paths: &'a [PathSample], stream: usize) -> Option<&'a PathSample> {
    paths.get(if plan.tcp.is_some() { stream } else { 0 })
}

/// Whether what is counted of a path is one stream's alone.
fn has_own_counters(plan: &Plan) -> bool {
    plan.streams == 1 || plan.tcp.is_some()
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn bits_per_second(bytes: u64, time_us: u64) -> f64 {
    if time_us == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds(time_us) }
}
