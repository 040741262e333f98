//! The matrix: from every site to every other one, haul over TCP; as text, CSV and JSON.

use std::fmt::Write as _;
use std::time::Duration;

use haul_units::BitRate;
use serde_json::{Value, json};

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

/// What is known of an ordered pair; nothing on the diagonal and for what has not been tried.
pub type Cell = Option<Result<Pair, String>>;

/// All of it. `cells[from][to]` is nothing on the diagonal and for what has not been tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Names of the sites.
    pub names: Vec<String>,
    /// Pairs, or why there is none.
    pub cells: Vec<Vec<Cell>>,
    /// haul's mode.
    pub mode: String,
    /// TCP's congestion control.
    pub congestion: String,
}

impl Matrix {
    /// Nothing is measured yet.
    pub fn new(names: Vec<String>, mode: String, congestion: String) -> Self {
        let cells = vec![vec![None; names.len()]; names.len()];
        Self { names, cells, mode, congestion }
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
    pub fn measured(&self) -> usize {
        self.pairs().iter().filter(|(_, _, cell)| matches!(cell, Some(Ok(_)))).count()
    }

    /// For people: the ratio, below it the two rates, haul's first; why there is an `x` below the table.
    pub fn text(&self) -> String {
        let cells: Vec<Vec<[String; 2]>> =
            (0..self.names.len()).map(|from| (0..self.names.len()).map(|to| self.cell_text(from, to)).collect()).collect();
        let first = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(9);
        let widths: Vec<usize> = (0..self.names.len())
            .map(|to| {
                let column = cells.iter().filter_map(|row| row.get(to)).flatten();
                column.chain([&self.names[to]]).map(|text| text.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = format!("haul ({}) over TCP ({}): ratio, and Mbit/s of each\n\n", self.mode, self.congestion);
        let line = |head: &str, columns: &[&str]| {
            let columns: Vec<String> = columns.iter().zip(&widths).map(|(column, width)| format!("{column:>width$}")).collect();
            format!("{}\n", format!("{head:<first$}  {}", columns.join("  ")).trim_end())
        };
        text.push_str(&line("from \\ to", &self.names.iter().map(String::as_str).collect::<Vec<_>>()));
        for (name, row) in self.names.iter().zip(&cells) {
            for (head, which) in [(name.as_str(), 0), ("", 1)] {
                text.push_str(&line(head, &row.iter().map(|cell| cell[which].as_str()).collect::<Vec<_>>()));
            }
        }
        for (from, to, cell) in self.pairs() {
            if let Some(Err(why)) = cell {
                let _ = write!(text, "\nx  {} to {}: {why}", self.names[from], self.names[to]);
            }
        }
        text
    }

    fn cell_text(&self, from: usize, to: usize) -> [String; 2] {
        match &self.cells[from][to] {
            None => ["-".to_owned(), String::new()],
            Some(Err(_)) => ["x".to_owned(), String::new()],
            Some(Ok(pair)) => {
                [format!("{:.2}", pair.ratio()), format!("{} / {}", megabits(pair.haul.rate), megabits(pair.tcp.rate))]
            }
        }
    }

    /// One line a pair.
    pub fn csv(&self) -> String {
        let mut text = "from,to,ratio,haul_bps,tcp_bps,idle_rtt_ms,haul_loaded_rtt_ms,tcp_loaded_rtt_ms,haul_lost_pkts,haul_sent_pkts,tcp_retransmits,tcp_sent_pkts,error\n".to_owned();
        for (from, to, cell) in self.pairs() {
            let (from, to) = (field(&self.names[from]), field(&self.names[to]));
            let ms = |ping: Option<Duration>| ping.map(|ping| format!("{:.3}", ping.as_secs_f64() * 1000.0)).unwrap_or_default();
            let _ = match cell {
                None => writeln!(text, "{from},{to},,,,,,,,,,,not tried"),
                Some(Err(why)) => writeln!(text, "{from},{to},,,,,,,,,,,{}", field(why)),
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

    /// All that is known.
    pub fn json(&self) -> Value {
        let run = |run: &Run| {
            json!({ "bits_per_second": run.rate.as_bps(), "intervals_bits_per_second": run.series.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>(),
                "idle_rtt_us": run.pings[0].map(|ping| ping.as_micros() as u64), "loaded_rtt_us": run.pings[1].map(|ping| ping.as_micros() as u64),
                "retransmits": run.lost_pkts, "packets": run.sent_pkts })
        };
        let pairs: Vec<Value> = self
            .pairs()
            .into_iter()
            .map(|(from, to, cell)| match cell {
                None => json!({ "from": self.names[from], "to": self.names[to], "error": "not tried" }),
                Some(Err(why)) => json!({ "from": self.names[from], "to": self.names[to], "error": why }),
                Some(Ok(pair)) => json!({ "from": self.names[from], "to": self.names[to], "ratio": pair.ratio(),
                    "haul": run(&pair.haul), "tcp": run(&pair.tcp) }),
            })
            .collect();
        json!({ "version": env!("CARGO_PKG_VERSION"), "mode": self.mode, "tcp_congestion": self.congestion, "sites": self.names, "pairs": pairs })
    }
}

/// Whole Mbit/s, with a decimal where they are few.
pub fn megabits(rate: BitRate) -> String {
    let value = rate.as_bps() as f64 / 1e6;
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A field of CSV. // RFC 4180 2
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
pub mod tests {
    use super::*;

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
        let mut matrix = Matrix::new(vec!["nict".into(), "kyushu".into(), "far <away>".into()], "fair".into(), "cubic".into());
        matrix.cells[0][1] = Some(Ok(Pair { haul: run(786), tcp: run(77) }));
        matrix.cells[1][0] = Some(Ok(Pair { haul: run(2747), tcp: run(9431) }));
        matrix.cells[0][2] = Some(Err("no answer, \"really\"".into()));
        matrix
    }

    #[test]
    fn the_table_has_ratio_and_rates_and_says_why_there_is_an_x() {
        let text = example().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["from", "\\", "to", "nict", "kyushu", "far", "<away>"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["nict", "-", "10.21", "x"]);
        assert_eq!(lines[4].trim(), "786 / 77");
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["kyushu", "0.29", "-", "-"]);
        assert_eq!(lines[6].trim(), "2747 / 9431");
        assert_eq!(*lines.last().unwrap(), "x  nict to far <away>: no answer, \"really\"");
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let csv = example().csv();
        assert_eq!(csv.lines().count(), 7);
        assert!(csv.contains("nict,kyushu,10.2078,786000000,77000000,18.000,18.500,18.500,3,3000,3,3000,\n"), "{csv}");
        assert!(csv.contains("nict,far <away>,,,,,,,,,,,\"no answer, \"\"really\"\"\"\n"), "{csv}");
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
}
