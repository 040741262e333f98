//! Whether the simulator's TCP is as fast as the kernel's: the same flows over the same link, in real and in virtual time.
//!
//! Flows that share a link which they do not fill are independent: many at once give a mean that one would give in an hour. Where a
//! flow fills its link there is one, and the queue has its part in it.

use std::time::Duration;

use haul_lab::{LinkOptions, TcpConfig, tcp_rates};
use haul_units::{BitRate, Ratio};
use serde_json::Value;

use super::{B, Lab};
use crate::exit::{Exit, Failure};
use crate::lab::print;
use crate::lab::status::number;

/// One comparison.
#[derive(Debug, Clone, Copy)]
struct Row {
    rate_mbps: u64,
    rtt_ms: u64,
    loss_percent: f64,
    flows: usize,
    seconds: u64,
}

const fn row(rate_mbps: u64, rtt_ms: u64, loss_percent: f64, flows: usize, seconds: u64) -> Row {
    Row { rate_mbps, rtt_ms, loss_percent, flows, seconds }
}

const ROWS: &[Row] = &[
    row(1000, 20, 1.0, 20, 10),
    row(1000, 50, 1.0, 40, 10),
    row(1000, 100, 1.0, 60, 12),
    row(1000, 200, 1.0, 60, 20),
    row(1000, 20, 0.1, 20, 12),
    row(1000, 50, 0.1, 40, 20),
    row(1000, 100, 0.1, 60, 30),
    row(1000, 200, 0.1, 60, 40),
    row(2500, 20, 0.01, 20, 20),
    row(2500, 50, 0.01, 40, 30),
    row(100, 20, 0.0, 1, 20),
    row(100, 100, 0.0, 1, 30),
];

/// The kernel's algorithms that the simulator has too.
const ALGORITHMS: [(&str, TcpConfig); 2] = [("reno", TcpConfig::RENO), ("cubic", TcpConfig::CUBIC)];
/// Of the model, each row is run this often, with chances of its own.
const SEEDS: u64 = 4;
/// By how much the mean rate may differ.
const TOLERANCE: f64 = 0.15;

/// Mean rate of the flows, in Mbit/s, with its standard error; over the whole run and in its second half.
#[derive(Debug, Clone, Copy)]
struct Mean {
    whole: [f64; 2],
    half: [f64; 2],
}

/// Prints the table; partial where a row is not within the tolerance.
pub fn run(markdown: bool) -> Result<Exit, Failure> {
    let mut table = Table { markdown, rows: 0, within: 0, log_ratios: 0.0 };
    table.head()?;
    for (name, tcp) in ALGORITHMS {
        for row in ROWS {
            let kernel = row.kernel(name)?;
            table.row(name, row, kernel, row.model(tcp))?;
        }
    }
    table.end()
}

impl Row {
    fn link(&self) -> LinkOptions {
        LinkOptions {
            rate: BitRate::mbps(self.rate_mbps),
            rtt: Duration::from_millis(self.rtt_ms),
            loss: Ratio::percent(self.loss_percent),
            ..LinkOptions::default()
        }
    }

    fn kernel(&self, algorithm: &str) -> Result<Mean, Failure> {
        let Self { rate_mbps, rtt_ms, loss_percent, flows, seconds } = self;
        let options = [
            format!("--rate={rate_mbps}M"),
            format!("--rtt={rtt_ms}ms"),
            format!("--loss={loss_percent}%"),
            format!("--tcp={algorithm}"),
        ];
        let lab = Lab::with(options.to_vec(), *seconds as u32)?;
        let result = lab.iperf_result(B, &["--parallel", &flows.to_string()])?;
        let of_flow = |flow: usize| {
            let received = number(&result["end"]["streams"][flow]["receiver"], "bits_per_second") / 1e6;
            (received, second_half(&result["intervals"], flow))
        };
        Ok(Mean::of((0..*flows).map(of_flow)))
    }

    fn model(&self, tcp: TcpConfig) -> Mean {
        let megabits = |rate: BitRate| rate.as_bps() as f64 / 1e6;
        let rates = (1..=SEEDS).flat_map(|seed| {
            tcp_rates(&LinkOptions { seed: 2 * seed, ..self.link() }, tcp, self.flows, Duration::from_secs(self.seconds))
        });
        Mean::of(rates.map(|rate| (megabits(rate.whole), megabits(rate.second_half))))
    }
}

/// What a flow handed to its socket in the second half of the intervals: once it is full, what the network took.
fn second_half(intervals: &Value, flow: usize) -> f64 {
    let intervals = intervals.as_array().map(Vec::as_slice).unwrap_or_default();
    let half = intervals.get(intervals.len() / 2..).unwrap_or_default();
    let sum = |field: &str| half.iter().map(|interval| number(&interval["streams"][flow], field)).sum::<f64>();
    sum("bytes") * 8.0 / 1e6 / sum("seconds").max(1e-9)
}

impl Mean {
    fn of(rates: impl Iterator<Item = (f64, f64)>) -> Self {
        let (whole, half): (Vec<f64>, Vec<f64>) = rates.unzip();
        Self { whole: mean(&whole), half: mean(&half) }
    }
}

fn mean(values: &[f64]) -> [f64; 2] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt()]
}

/// What has been printed.
struct Table {
    markdown: bool,
    rows: u32,
    within: u32,
    log_ratios: f64,
}

impl Table {
    fn head(&self) -> Result<Exit, Failure> {
        self.cells(["TCP", "link", "flows", "kernel, Mbit/s each", "model", "ratio", "second half", "model", "ratio", ""])?;
        if self.markdown { print("|---|---|---|---|---|---|---|---|---|---|\n") } else { Ok(Exit::Done) }
    }

    fn row(&mut self, name: &str, row: &Row, kernel: Mean, model: Mean) -> Result<Exit, Failure> {
        let ratio = model.whole[0] / kernel.whole[0];
        let within = (ratio - 1.0).abs() <= TOLERANCE;
        self.rows += 1;
        self.within += u32::from(within);
        self.log_ratios += ratio.ln();
        let link = format!("{} Mbit/s, {} ms, {} %", row.rate_mbps, row.rtt_ms, row.loss_percent);
        let figure = |[mean, error]: [f64; 2]| format!("{mean:.2} ± {error:.2}");
        self.cells([
            name,
            &link,
            &format!("{} x {} s", row.flows, row.seconds),
            &figure(kernel.whole),
            &figure(model.whole),
            &format!("{ratio:.2}"),
            &figure(kernel.half),
            &figure(model.half),
            &format!("{:.2}", model.half[0] / kernel.half[0]),
            if within { "ok" } else { "off" },
        ])
    }

    fn end(&self) -> Result<Exit, Failure> {
        let mean = (self.log_ratios / f64::from(self.rows)).exp();
        let tolerance = TOLERANCE * 100.0;
        print(&format!(
            "\n{} of {} rows within {tolerance:.0} %; the model is {mean:.2} of the kernel on average.\n",
            self.within, self.rows
        ))?;
        Ok(if self.within == self.rows { Exit::Done } else { Exit::Partial })
    }

    fn cells(&self, cells: [&str; 10]) -> Result<Exit, Failure> {
        if self.markdown {
            return print(&format!("| {} |\n", cells.join(" | ")));
        }
        let [tcp, link, flows, kernel, model, ratio, half, model_half, ratio_half, verdict] = cells;
        print(&format!(
            "{tcp:<6}{link:<26}{flows:<11}{kernel:<21}{model:<16}{ratio:<7}{half:<16}{model_half:<16}{ratio_half:<7}{verdict}\n"
        ))
    }
}
