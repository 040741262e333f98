//! A measurement in iperf3's JSON, with haul's own keys beside iperf3's: what `haul perf --json` prints, as types.
//!
//! `start`, `intervals[].streams[]`, `intervals[].sum`, `end.streams[].sender/receiver`, `end.sum_sent`, `end.sum_received`, `end.cpu_utilization_percent` mean what
//! they mean there; with `--bidir` the way back is `sum_bidir_reverse`, `sum_sent_bidir_reverse`, `sum_received_bidir_reverse`. Bytes of an interval are counted at the
//! receiver. `retransmits` are packets taken for lost, for TCP segments sent again. The fields have iperf3's names, so that they are looked up there; times of day
//! and lengths are in seconds, round-trip times and waits in microseconds, rates in bits per second.

mod fill;

use std::net::{IpAddr, SocketAddr};

use haul_units::PeerText;
use serde::Serialize;

use super::spread::Class;

/// All of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// What was known before the first byte.
    pub start: Start,
    /// What each interval brought, in the order of time.
    pub intervals: Vec<IntervalRecord>,
    /// The totals.
    pub end: End,
    /// The title that the user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's own output, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_output_text: Option<String>,
    /// What went wrong, where there are results all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PeerText>,
}

/// JSON for people to read too, with sorted keys.
pub fn pretty(document: &impl Serialize) -> String {
    serde_json::to_value(document).and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_default()
}

/// What is known of the two sides beside the plan; not part of the document as it is.
#[derive(Debug, Clone)]
pub struct About {
    /// The server, as the user named it.
    pub host: String,
    /// Addresses of the connection: here, there.
    pub addresses: [SocketAddr; 2],
    /// Names the measurement on both sides.
    pub cookie: String,
    /// The server's version.
    pub server_version: PeerText,
    /// This machine, the server's.
    pub systems: [PeerText; 2],
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Start {
    /// The streams, with the addresses of the connection that they share.
    pub connected: Vec<Connected>,
    /// Name and version of the program.
    pub version: String,
    /// This machine.
    pub system_info: PeerText,
    /// When it began.
    pub timestamp: Timestamp,
    /// The server.
    pub connecting_to: ConnectingTo,
    /// Names the measurement on both sides.
    pub cookie: String,
    /// What each stream was to send at most; 0 without a bound.
    pub target_bitrate: u64,
    /// iperf3's pacing by the kernel: always 0.
    pub fq_rate: u64,
    /// iperf3's buffer size as asked for: always 0, the system's choice.
    pub sock_bufsize: u64,
    /// The plan.
    pub test_start: TestStart,
    /// What iperf3 does not have.
    pub haul: HaulStart,
    /// The title that the user gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// One stream's ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// Number of the stream, from 1.
    pub socket: u32,
    /// This side's address.
    pub local_host: IpAddr,
    /// This side's port.
    pub local_port: u16,
    /// The server's address.
    pub remote_host: IpAddr,
    /// The server's port.
    pub remote_port: u16,
}

/// A moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timestamp {
    /// In the form of HTTP, UTC.
    pub time: String,
    /// Seconds since 1970.
    pub timesecs: u64,
    /// Milliseconds since 1970.
    pub timemillisecs: u64,
}

/// The server, as the user named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectingTo {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The plan, as iperf3 tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestStart {
    /// What reads iperf3's JSON knows TCP, UDP and SCTP: haul's figures have the form of TCP's.
    pub protocol: &'static str,
    /// Streams each way.
    pub num_streams: u16,
    /// Bytes handed over at once.
    pub blksize: usize,
    /// Time at the beginning that does not count.
    pub omit: f64,
    /// Time that counts; 0 where bytes decide.
    pub duration: f64,
    /// Bytes to send; 0 where the time decides.
    pub bytes: u64,
    /// Always 0.
    pub blocks: u64,
    /// 1 if the server sends.
    pub reverse: u8,
    /// Always 0.
    pub tos: u64,
    /// What each stream was to send at most; 0 without a bound.
    pub target_bitrate: u64,
    /// 1 if both send at once.
    pub bidir: u8,
    /// Always 0.
    pub fqrate: u64,
    /// Time between two reports.
    pub interval: f64,
}

/// What iperf3 does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HaulStart {
    /// `haul` or `tcp`.
    pub transport: &'static str,
    /// Congestion control of haul.
    pub mode: PeerText,
    /// Paths that were asked for.
    pub paths: u8,
    /// The server's version.
    pub server_version: PeerText,
    /// The server's system.
    pub server_system_info: PeerText,
    /// Fingerprint of the server's key.
    pub server_key: Option<String>,
}

/// One interval, all directions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntervalRecord {
    /// Each stream of each direction.
    pub streams: Vec<StreamInterval>,
    /// All streams: of the only direction, or of the one to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<SumInterval>,
    /// All streams from the server, where both send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_bidir_reverse: Option<SumInterval>,
}

/// Bytes in a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// Beginning, since the start or the end of what is omitted.
    pub start: f64,
    /// End.
    pub end: f64,
    /// How long it was.
    pub seconds: f64,
    /// What arrived.
    pub bytes: u64,
    /// What arrived a second.
    pub bits_per_second: f64,
    /// Whether it does not count.
    pub omitted: bool,
    /// Whether the client sent it.
    pub sender: bool,
}

/// One stream in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamInterval {
    /// Number of the stream.
    pub socket: u32,
    /// Its bytes.
    #[serde(flatten)]
    pub rates: Rates,
    /// What became of its packets, where they are its own.
    #[serde(flatten)]
    pub counters: Option<Counters>,
    /// How the path was.
    #[serde(flatten)]
    pub path: Option<Gauges>,
}

/// All streams of a direction in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SumInterval {
    /// Their bytes.
    #[serde(flatten)]
    pub rates: Rates,
    /// What has left meanwhile.
    pub sent_bytes: u64,
    /// What the sender knows.
    #[serde(flatten)]
    pub paths: Paths,
}

/// `end`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// Each stream of each direction.
    pub streams: Vec<StreamEnds>,
    /// What has left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent: Option<SumTotal>,
    /// What has arrived: the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received: Option<SumTotal>,
    /// What has left the server, where both send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent_bidir_reverse: Option<SumTotal>,
    /// What has arrived from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received_bidir_reverse: Option<SumTotal>,
    /// Congestion control of the sender: of the client, where both send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_tcp_congestion: Option<PeerText>,
    /// Congestion control of the server, where both send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_tcp_congestion: Option<PeerText>,
    /// How long things took.
    pub latency_us: Latency,
    /// Processor time of both sides.
    pub cpu_utilization_percent: CpuUtilization,
}

/// One stream at its two ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamEnds {
    /// What has left; nothing if its total is not known.
    pub sender: Option<StreamTotal>,
    /// What has arrived.
    pub receiver: Option<StreamTotal>,
}

/// Bytes in all the time that counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TotalRates {
    /// Always 0.
    pub start: u64,
    /// How long it was.
    pub end: f64,
    /// The same.
    pub seconds: f64,
    /// All bytes.
    pub bytes: u64,
    /// Bytes a second.
    pub bits_per_second: f64,
    /// Whether the client sent them.
    pub sender: bool,
}

/// One stream at one end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamTotal {
    /// Number of the stream.
    pub socket: u32,
    /// Its bytes.
    #[serde(flatten)]
    pub rates: TotalRates,
    /// What became of its packets, where they are its own.
    #[serde(flatten)]
    pub counters: Option<Counters>,
    /// How the path was at the end.
    #[serde(flatten)]
    pub path: Option<Gauges>,
    /// How it was over the intervals.
    #[serde(flatten)]
    pub over_time: Option<OverTime>,
}

/// All streams of a direction at one end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SumTotal {
    /// Their bytes.
    #[serde(flatten)]
    pub rates: TotalRates,
    /// What a sender knows.
    #[serde(flatten)]
    pub paths: Paths,
}

/// What a sender knows of its paths: nothing in what a receiver tells.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Paths {
    /// What became of the packets.
    #[serde(flatten)]
    pub counters: Option<Counters>,
    /// What sending waited for.
    #[serde(flatten)]
    pub waiting: Option<Waiting>,
    /// How the path was, where there is one only.
    #[serde(flatten)]
    pub path: Option<Gauges>,
    /// What haul knows more of it.
    #[serde(flatten)]
    pub details: Option<Details>,
}

/// What became of packets; segments for TCP.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counters {
    /// Taken for lost; for TCP sent again.
    pub retransmits: u64,
    /// Payload that was sent again.
    pub retransmitted_bytes: u64,
    /// Sent.
    pub packets: u64,
    /// Taken for lost, and turned up.
    pub spurious_retransmits: u64,
    /// Marked by the network.
    pub ecn_marked_packets: u64,
    /// The part that was lost, 0 to 1.
    pub loss: f64,
}

/// How a path was, in the terms of iperf3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gauges {
    /// Congestion window, in bytes.
    pub snd_cwnd: u64,
    /// Round-trip time.
    pub rtt: u64,
    /// Packet size in bytes: UDP payload, for TCP its segment.
    pub pmtu: u64,
    /// The receiver's window, which only TCP knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_wnd: Option<u64>,
    /// Mean deviation of the round-trip time, which only TCP knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar: Option<u64>,
}

/// iperf3's summary of a stream's intervals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverTime {
    /// Largest congestion window, in bytes.
    pub max_snd_cwnd: u64,
    /// Largest round-trip time.
    pub max_rtt: u64,
    /// Smallest.
    pub min_rtt: u64,
    /// Mean.
    pub mean_rtt: u64,
}

/// What sending waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What for most; `processor` where it hardly waited.
    pub limit: &'static str,
    /// For how long.
    pub waits_us: WaitsUs,
}

/// Time that sending waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitsUs {
    /// For something to send.
    pub application: u64,
    /// For the congestion window.
    pub window: u64,
    /// For the receiver's credit.
    pub receiver: u64,
    /// For the pacer.
    pub pacing: u64,
}

/// What haul knows of a path beside iperf3's terms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Details {
    /// Shortest round-trip time of late.
    pub min_rtt: u64,
    /// Queueing delay towards the receiver.
    pub queue_delay: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Pacing rate; 0 without pacing.
    pub pacing_rate: u64,
    /// Rate at which what is sent arrives.
    pub delivery_rate: u64,
    /// 99 of 100 bursts had at most so many packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_p99_packets: Option<u64>,
    /// Phase of the congestion control.
    pub phase: PeerText,
    /// Each of several paths, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<OnePath>,
}

/// One of the several paths of a connection; bytes are UDP payload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnePath {
    /// Its number.
    pub path: u8,
    /// By which interface it leaves, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<PeerText>,
    /// The peer answers there.
    pub usable: bool,
    /// Acknowledged.
    pub bytes: u64,
    /// Acknowledged a second.
    pub bits_per_second: f64,
    /// Sent.
    pub sent_bytes: u64,
    /// Packets taken for lost.
    pub retransmits: u64,
    /// Round-trip time.
    pub rtt: u64,
    /// Congestion window, in bytes.
    pub snd_cwnd: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Pacing rate.
    pub pacing_rate: u64,
}

/// Round-trip times idle and loaded, and what the packets of each direction went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Pings before the load.
    pub idle_ping: Percentiles,
    /// Pings while data flows.
    pub loaded_ping: Percentiles,
    /// To the server, over haul.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_to_server: Option<DirectionLatency>,
    /// From the server, over haul.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_to_client: Option<DirectionLatency>,
}

/// What the packets of one direction went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirectionLatency {
    /// Round-trip times.
    pub rtt: Percentiles,
    /// Queueing delay towards the receiver.
    pub queue_delay: Percentiles,
    /// Packets that were missing, and how often so many.
    pub gaps_packets: Vec<Class>,
    /// How far behind packets came, and how often.
    pub late_packets: Vec<Class>,
}

/// Percentiles of a quantity; none without values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Percentiles {
    /// How many values.
    pub count: u64,
    /// The smallest, to the width of a class.
    pub min: Option<u64>,
    /// Half are not larger.
    pub p50: Option<u64>,
    /// Nine of ten are not larger.
    pub p90: Option<u64>,
    /// 19 of 20 are not larger.
    pub p95: Option<u64>,
    /// 99 of 100 are not larger.
    pub p99: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
}

/// Processor time as a part of the time that passed, in percent; two busy processors are 200.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CpuUtilization {
    /// This side, all of it.
    pub host_total: f64,
    /// In the program.
    pub host_user: f64,
    /// In the kernel on its behalf.
    pub host_system: f64,
    /// The server, all of it; 0 if it has not told.
    pub remote_total: f64,
    /// In the program.
    pub remote_user: f64,
    /// In the kernel on its behalf.
    pub remote_system: f64,
}

#[cfg(test)]
mod tests;
