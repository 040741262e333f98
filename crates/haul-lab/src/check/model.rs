//! Whether the simulator's TCP is as fast as the kernel's: the same flows over the same link, in real and in virtual time.
//!
//! Flows that share a link which they do not fill are independent: many at once give a mean that one would give in an hour. Where a
//! flow fills its link there is one, and the queue has its part in it.

use std::time::Duration;
use std::{fs, io};

use haul_sim::TcpConfig;
use haul_units::{BitRate, Cancel, Ratio};
use serde_json::Value;

use super::{B, CheckError, Lab, needed, number};
use crate::emulator::Commands;
use crate::model::tcp_rates;
use crate::options::LinkOptions;
use crate::wan::WanSpec;

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

/// What loss decides, and two links that are full.
const BY_LOSS: &[Row] = &[
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
/// A flow that fills its link whatever is lost: one at a time, for several would be about how they share.
const ALONE: &[Row] = &[
    row(100, 20, 0.0, 1, 20),
    row(100, 100, 0.0, 1, 30),
    row(100, 20, 1.0, 1, 20),
    row(100, 100, 1.0, 1, 30),
    row(100, 100, 10.0, 1, 30),
];
/// A look at whether it works at all: half a minute.
const QUICK_BY_LOSS: &[Row] = &[row(100, 20, 0.0, 1, 5), row(100, 20, 1.0, 8, 6)];
const QUICK_ALONE: &[Row] = &[row(100, 20, 0.0, 1, 5), row(100, 20, 1.0, 1, 6)];

/// A kernel's algorithm that the simulator has too, the links on which they are compared, and those of a quick look.
type Compared = (&'static str, TcpConfig, &'static [Row], &'static [Row]);
const COMPARED: [Compared; 3] = [
    ("reno", TcpConfig::RENO, BY_LOSS, QUICK_BY_LOSS),
    ("cubic", TcpConfig::CUBIC, BY_LOSS, QUICK_BY_LOSS),
    ("bbr", TcpConfig::BBR, ALONE, QUICK_ALONE),
];
/// What the kernel has.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// How much is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every link: a quarter of an hour.
    Whole,
    /// Two links an algorithm, for some seconds each.
    Quick,
}
/// Of the model, each row is run this often, with chances of its own.
const SEEDS: u64 = 4;
/// By how much the mean rate of the model may differ from the kernel's: a part of that.
pub const TOLERANCE: f64 = 0.15;

/// Mean rate of the flows of a link, in Mbit/s, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanRate {
    /// Over the whole run.
    pub whole_mbps: [f64; 2],
    /// In its second half.
    pub half_mbps: [f64; 2],
}

/// The kernel and the model over the same link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelRow {
    /// The congestion control of both.
    pub algorithm: &'static str,
    /// Rate of the link, in Mbit/s.
    pub rate_mbps: u64,
    /// Its round-trip time, in milliseconds.
    pub rtt_ms: u64,
    /// Packets lost in each direction, in per cent.
    pub loss_percent: f64,
    /// Flows at the same time.
    pub flows: usize,
    /// For so long.
    pub seconds: u64,
    /// What the kernel's TCP reached.
    pub kernel: MeanRate,
    /// What the model reached.
    pub model: MeanRate,
}

/// Measures one link after the other with each algorithm, and hands over what came out; returns the algorithms that this kernel lacks. Needs root and iperf3.
pub fn run(
    extent: Extent,
    commands: Commands,
    cancel: &Cancel,
    mut each: impl FnMut(&ModelRow) -> io::Result<()>,
) -> Result<Vec<&'static str>, CheckError> {
    needed()?;
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let mut lacking = Vec::new();
    for (algorithm, tcp, whole, quick) in COMPARED {
        if !available.split_whitespace().any(|name| name == algorithm) {
            lacking.push(algorithm);
            continue;
        }
        for row in if extent == Extent::Quick { quick } else { whole } {
            let kernel = row.kernel(algorithm, commands, cancel)?;
            let &Row { rate_mbps, rtt_ms, loss_percent, flows, seconds } = row;
            let model = row.model(tcp);
            each(&ModelRow { algorithm, rate_mbps, rtt_ms, loss_percent, flows, seconds, kernel, model })
                .map_err(CheckError::Tell)?;
        }
    }
    Ok(lacking)
}

impl ModelRow {
    /// The model's rate over the kernel's.
    pub fn ratio(&self) -> f64 {
        self.model.whole_mbps[0] / self.kernel.whole_mbps[0]
    }

    /// The same, in the second half.
    pub fn ratio_of_half(&self) -> f64 {
        self.model.half_mbps[0] / self.kernel.half_mbps[0]
    }

    /// Whether the model is as fast as the kernel, by [`TOLERANCE`].
    pub fn is_within(&self) -> bool {
        (self.ratio() - 1.0).abs() <= TOLERANCE
    }
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

    fn kernel(&self, algorithm: &str, commands: Commands, cancel: &Cancel) -> Result<MeanRate, CheckError> {
        let wan = WanSpec { link: self.link(), tcp: Some(algorithm.to_owned()), ..WanSpec::default() };
        let lab = Lab::with(wan, commands, Duration::from_secs(self.seconds), cancel)?;
        let flows = self.flows;
        let result = lab.iperf_result(B, &["--parallel", &flows.to_string()]).map_err(|error| lab.cancelled_or(error))?;
        let of_flow = |flow: usize| {
            let received = number(&result["end"]["streams"][flow]["receiver"], "bits_per_second") / 1e6;
            (received, second_half(&result["intervals"], flow))
        };
        Ok(MeanRate::of((0..flows).map(of_flow)))
    }

    fn model(&self, tcp: TcpConfig) -> MeanRate {
        let megabits = |rate: BitRate| rate.as_bps() as f64 / 1e6;
        let rates = (1..=SEEDS).flat_map(|seed| {
            tcp_rates(&LinkOptions { seed: 2 * seed, ..self.link() }, tcp, self.flows, Duration::from_secs(self.seconds))
        });
        MeanRate::of(rates.map(|rate| (megabits(rate.whole), megabits(rate.second_half))))
    }
}

/// What a flow handed to its socket in the second half of the intervals: once it is full, what the network took.
fn second_half(intervals: &Value, flow: usize) -> f64 {
    let intervals = intervals.as_array().map(Vec::as_slice).unwrap_or_default();
    let half = intervals.get(intervals.len() / 2..).unwrap_or_default();
    let sum = |field: &str| half.iter().map(|interval| number(&interval["streams"][flow], field)).sum::<f64>();
    sum("bytes") * 8.0 / 1e6 / sum("seconds").max(1e-9)
}

impl MeanRate {
    fn of(rates: impl Iterator<Item = (f64, f64)>) -> Self {
        let (whole, half): (Vec<f64>, Vec<f64>) = rates.unzip();
        Self { whole_mbps: mean(&whole), half_mbps: mean(&half) }
    }
}

fn mean(values: &[f64]) -> [f64; 2] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt()]
}
