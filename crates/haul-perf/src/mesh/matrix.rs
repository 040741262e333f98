//! The matrix: from every site to every other one, haul over TCP; as data, CSV and JSON.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use haul_units::BitRate;
use serde::Serialize;
use serde_json::Value;

use super::remote::PairError;
use crate::sample::micros;

/// What was measured between two sites, one way.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Over haul.
    pub haul: Run,
    /// Over TCP.
    pub tcp: Run,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Rate at the receiver.
    pub rate: BitRate,
    /// How long it took.
    pub elapsed: Duration,
    /// Rate at the receiver in each interval.
    pub series: Vec<BitRate>,
    /// Median round-trip time of pings without load and with it, where they are known.
    pub pings: [Option<Duration>; 2],
    /// Packets lost, or segments sent again.
    pub lost_pkts: u64,
    /// Packets sent.
    pub sent_pkts: u64,
}

impl Run {
    /// From the JSON document of one measurement.
    pub fn from_json(document: &Value) -> Option<Self> {
        let rate = |value: &Value| value["bits_per_second"].as_f64().map(|bps| BitRate::from_bps(bps.max(0.0) as u64));
        let intervals = document["intervals"].as_array().into_iter().flatten();
        let ping = |name: &str| document["end"]["latency_us"][name]["p50"].as_u64().map(Duration::from_micros);
        let counted = |name: &str| document["end"]["sum_sent"][name].as_u64().unwrap_or(0);
        Some(Self {
            rate: rate(&document["end"]["sum_received"])?,
            elapsed: document["end"]["sum_received"]["seconds"]
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or_default(),
            series: intervals
                .filter(|interval| interval["sum"]["omitted"] != true)
                .filter_map(|interval| rate(&interval["sum"]))
                .collect(),
            pings: [ping("idle_ping"), ping("loaded_ping")],
            lost_pkts: counted("retransmits"),
            sent_pkts: counted("packets"),
        })
    }
}

impl Pair {
    /// How many times faster haul is.
    pub fn ratio(&self) -> f64 {
        self.haul.rate.as_bps() as f64 / self.tcp.rate.as_bps().max(1) as f64
    }
}

/// What is measured beside TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// `haul`, or `tcp` with one of haul's laws.
    pub transport: &'static str,
    /// Its mode, or the law's name in the kernel.
    pub mode: String,
}

impl Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.transport == "tcp" { "TCP" } else { self.transport };
        write!(f, "{transport} ({})", self.mode)
    }
}

/// What is known of an ordered pair; nothing on the diagonal and for what has not been tried.
pub type Cell = Option<Result<Pair, PairError>>;

/// All of it. `cells[from][to]` is nothing on the diagonal and for what has not been tried.
#[derive(Debug)]
pub struct Matrix {
    /// Names of the sites.
    pub names: Vec<String>,
    /// Pairs, or why there is none.
    pub cells: Vec<Vec<Cell>>,
    /// What is measured beside TCP.
    pub measured: Measured,
    /// TCP's congestion control.
    pub congestion: String,
}

impl Matrix {
    /// Nothing is measured yet.
    pub fn new(names: Vec<String>, measured: Measured, congestion: String) -> Self {
        let cells = names.iter().map(|_| names.iter().map(|_| None).collect()).collect();
        Self { names, cells, measured, congestion }
    }

    /// Every cell off the diagonal: from, to, what is there.
    pub fn pairs(&self) -> Vec<(usize, usize, &Cell)> {
        let mut pairs = Vec::new();
        for (from, row) in self.cells.iter().enumerate() {
            let others = row.iter().enumerate().filter(|(to, _)| *to != from);
            pairs.extend(others.map(|(to, cell)| (from, to, cell)));
        }
        pairs
    }

    /// Pairs that were measured.
    pub fn measured_pairs(&self) -> usize {
        self.pairs().iter().filter(|(_, _, cell)| matches!(cell, Some(Ok(_)))).count()
    }

    /// One line a pair.
    pub fn csv(&self) -> String {
        let mut text = "from,to,ratio,haul_bps,tcp_bps,idle_rtt_ms,haul_loaded_rtt_ms,tcp_loaded_rtt_ms,haul_lost_pkts,haul_sent_pkts,tcp_retransmits,tcp_sent_pkts,error\n".to_owned();
        for (from, to, cell) in self.pairs() {
            let (from, to) = (field(&self.names[from]), field(&self.names[to]));
            let ms = |ping: Option<Duration>| ping.map(|ping| format!("{:.3}", ping.as_secs_f64() * 1000.0)).unwrap_or_default();
            let _ = match cell {
                None => writeln!(text, "{from},{to},,,,,,,,,,,not tried"),
                Some(Err(why)) => writeln!(text, "{from},{to},,,,,,,,,,,{}", field(&why.to_string())),
                Some(Ok(Pair { haul, tcp })) => writeln!(
                    text,
                    "{from},{to},{:.4},{},{},{},{},{},{},{},{},{},",
                    haul.rate.as_bps() as f64 / tcp.rate.as_bps().max(1) as f64,
                    haul.rate.as_bps(),
                    tcp.rate.as_bps(),
                    ms(haul.pings[0]),
                    ms(haul.pings[1]),
                    ms(tcp.pings[1]),
                    haul.lost_pkts,
                    haul.sent_pkts,
                    tcp.lost_pkts,
                    tcp.sent_pkts
                ),
            };
        }
        text
    }

    /// All that is known, as `haul perf mesh` writes it.
    pub fn document(&self) -> MatrixDocument<'_> {
        let pair = |(from, to, cell): (usize, usize, &Cell)| {
            let (measured, error) = match cell {
                None => (None, Some("not tried".to_owned())),
                Some(Err(why)) => (None, Some(why.to_string())),
                Some(Ok(pair)) => (Some(pair), None),
            };
            PairRecord {
                from: &self.names[from],
                to: &self.names[to],
                error,
                ratio: measured.map(Pair::ratio),
                haul: measured.map(|pair| RunRecord::new(&pair.haul)),
                tcp: measured.map(|pair| RunRecord::new(&pair.tcp)),
            }
        };
        MatrixDocument {
            version: env!("CARGO_PKG_VERSION"),
            transport: self.measured.transport,
            mode: &self.measured.mode,
            tcp_congestion: &self.congestion,
            sites: &self.names,
            pairs: self.pairs().into_iter().map(pair).collect(),
        }
    }
}

/// The matrix as `haul perf mesh` writes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixDocument<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// `haul`, or `tcp` with one of haul's laws: what `haul` stands for in each pair.
    pub transport: &'a str,
    /// Its mode, or the law's name in the kernel.
    pub mode: &'a str,
    /// TCP's congestion control.
    pub tcp_congestion: &'a str,
    /// Names of the sites.
    pub sites: &'a [String],
    /// Every ordered pair.
    pub pairs: Vec<PairRecord<'a>>,
}

/// One ordered pair: its results, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairRecord<'a> {
    /// Who sends.
    pub from: &'a str,
    /// Who receives.
    pub to: &'a str,
    /// Why there are no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many times faster haul is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Over haul.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub haul: Option<RunRecord>,
    /// Over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<RunRecord>,
}

/// One measurement of a pair, in iperf3's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Rate at the receiver.
    pub bits_per_second: u64,
    /// The same in each interval.
    pub intervals_bits_per_second: Vec<u64>,
    /// Median round-trip time without load.
    pub idle_rtt_us: Option<u64>,
    /// Median round-trip time under load.
    pub loaded_rtt_us: Option<u64>,
    /// Packets lost, or segments sent again.
    pub retransmits: u64,
    /// Packets sent.
    pub packets: u64,
}

impl RunRecord {
    fn new(run: &Run) -> Self {
        let [idle, loaded] = run.pings.map(|ping| ping.map(micros));
        Self {
            bits_per_second: run.rate.as_bps(),
            intervals_bits_per_second: run.series.iter().map(|rate| rate.as_bps()).collect(),
            idle_rtt_us: idle,
            loaded_rtt_us: loaded,
            retransmits: run.lost_pkts,
            packets: run.sent_pkts,
        }
    }
}

/// A field of CSV. // RFC 4180 2
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::mesh::remote::RunError;

    /// Two sites that reach each other, and a third that nobody reaches.
    pub fn example() -> Matrix {
        let run = |mbps: u64| Run {
            rate: BitRate::mbps(mbps),
            elapsed: Duration::from_millis(3004),
            series: vec![BitRate::mbps(mbps / 2), BitRate::mbps(mbps)],
            pings: [Some(Duration::from_millis(18)), Some(Duration::from_micros(18_500))],
            lost_pkts: 3,
            sent_pkts: 3000,
        };
        let measured = Measured { transport: "haul", mode: "fair".into() };
        let mut matrix = Matrix::new(vec!["nict".into(), "kyushu".into(), "far <away>".into()], measured, "cubic".into());
        matrix.cells[0][1] = Some(Ok(Pair { haul: run(786), tcp: run(77) }));
        matrix.cells[1][0] = Some(Ok(Pair { haul: run(2747), tcp: run(9431) }));
        matrix.cells[0][2] = Some(Err(PairError::Run { what: "haul", why: RunError::Said("no answer, \"really\"".into()) }));
        matrix
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let csv = example().csv();
        assert_eq!(csv.lines().count(), 7);
        assert!(csv.contains("nict,kyushu,10.2078,786000000,77000000,18.000,18.500,18.500,3,3000,3,3000,\n"), "{csv}");
        assert!(csv.contains("nict,far <away>,,,,,,,,,,,\"haul: no answer, \"\"really\"\"\"\n"), "{csv}");
        assert!(csv.lines().all(|line| line.contains("really") || line.matches(',').count() == 12), "{csv}");
    }

    #[test]
    fn a_run_is_read_from_the_json_of_a_measurement() {
        let document = json!({ "intervals": [{ "sum": { "bits_per_second": 5e6, "omitted": true } }, { "sum": { "bits_per_second": 7e6, "omitted": false } }],
            "end": { "sum_received": { "bits_per_second": 6.5e6, "seconds": 2.5 }, "sum_sent": { "retransmits": 2, "packets": 90 },
                "latency_us": { "idle_ping": { "p50": 2000 }, "loaded_ping": { "p50": null } } } });
        let run = Run::from_json(&document).expect("complete");
        assert_eq!((run.rate.as_bps(), run.series, run.lost_pkts), (6_500_000, vec![BitRate::mbps(7)], 2));
        assert_eq!((run.elapsed, run.pings), (Duration::from_millis(2500), [Some(Duration::from_millis(2)), None]));
        assert_eq!(Run::from_json(&json!({ "end": {} })), None);
    }

    #[test]
    fn the_document_has_every_pair_with_results_or_a_reason() {
        let matrix = example();
        let document = serde_json::to_value(matrix.document()).unwrap();
        let pairs = document["pairs"].as_array().unwrap();
        let pair = |from: &str, to: &str| pairs.iter().find(|pair| pair["from"] == from && pair["to"] == to).unwrap();
        assert_eq!(pairs.len(), 6);
        assert_eq!(pair("kyushu", "nict")["haul"]["bits_per_second"], 2_747_000_000_u64);
        assert_eq!(pair("nict", "kyushu")["tcp"]["idle_rtt_us"], 18_000);
        assert_eq!(
            pair("nict", "far <away>"),
            &json!({ "from": "nict", "to": "far <away>", "error": "haul: no answer, \"really\"" })
        );
        assert_eq!(pair("far <away>", "nict")["error"], "not tried");
    }
}
