//! Loss that rises to a third and to four fifths while a transfer is under way, and ends again: golden table.
//!
//! What such a path lets pass is the rate of the link without what is lost: neither the window nor the rate may follow the losses down.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::{Kind, measure};
use haul_sim::{Back, Change, Flow, LossModel, Outcome, Path, Plan, Topology};
use haul_units::{BitRate, Bytes, Ratio};

use crate::golden::{compare, seed};

/// A path, the loss that comes and goes on the way there, and whether as many reports are lost all the time.
#[derive(Debug, Clone, Copy)]
struct Cell {
    rate: BitRate,
    rtt: Duration,
    loss: f64,
    both: bool,
}

/// What came of it, by one seed.
struct Found {
    /// Round trips from the rise of the loss on until 80 % of what passes arrives, and the part of it that arrives from [`Cell::settled`] on.
    rise: f64,
    passes: f64,
    /// Round trips from the end of the loss on until 80 % of the link's rate arrive, and the part of it that arrives from then on.
    fall: f64,
    whole: f64,
}

impl Cell {
    /// Ten round trips; on short paths the time of two epochs of the controller, with a test between them.
    fn settled(&self) -> Duration {
        (self.rtt * 10).max(Duration::from_millis(400))
    }

    fn run(&self, seed: u64) -> Found {
        // Start, loss, and what comes after.
        let rise = Duration::from_secs(1) + self.rtt * 30;
        let fall = rise + self.settled() * 4;
        let changes = Box::leak(Box::new([
            (rise, Change::Loss(LossModel::Random(Ratio::new(self.loss)))),
            (fall, Change::Loss(LossModel::None)),
        ]));
        let back = self.both.then_some(Back { rate: self.rate, loss: self.loss });
        let plan = Plan {
            name: "weather",
            seed,
            topology: Topology::Dumbbell { pairs: 1, path: Path { changes, back, ..Path::new(self.rate, self.rtt) } },
            flows: Cow::Owned(vec![Flow::endless(Kind::Haul(ControllerChoice::Fair), 0, 1)]),
            length: fall + self.settled() * 2,
            checks: &[],
        };
        let outcome = measure(&plan);
        let whole = self.rate.as_bps() as f64 * PAYLOAD / 1500.0;
        let passing = whole * (1.0 - self.loss);
        Found {
            rise: self.rounds_until(&outcome, rise, passing),
            passes: mean(&outcome, rise + self.settled(), fall) / passing,
            fall: self.rounds_until(&outcome, fall, whole),
            whole: mean(&outcome, fall + self.settled(), plan.length) / whole,
        }
    }

    /// What must pass in the median, and at every seed, then and after the loss.
    fn floors(&self) -> (f64, f64) {
        let packets_a_round = self.rate.bytes_in(self.rtt).as_u64() as f64 / 1500.0 * (1.0 - self.loss);
        let is_rough = self.loss > 0.6 || self.both && self.loss > 0.4;
        let passing = match is_rough {
            _ if packets_a_round < FEW_PKTS => PASSING_OF_FEW,
            true => PASSING_OF_ROUGH,
            false => PASSING,
        };
        (passing, if is_rough { LEAST_OF_ROUGH } else { LEAST })
    }

    /// Round trips from `since` on until 80 % of a rate arrive over two of them, of 100 ms at least.
    fn rounds_until(&self, outcome: &Outcome, since: Duration, bps: f64) -> f64 {
        let over = (self.rtt * 2).max(Duration::from_millis(100));
        let step = outcome.bin;
        let mut at = since + over;
        // What was on its way arrives, and says nothing.
        at += self.rtt;
        while at < since + self.settled() * 4 {
            if mean(outcome, at.saturating_sub(over), at) >= 0.8 * bps {
                return at.saturating_sub(since).as_secs_f64() / self.rtt.as_secs_f64();
            }
            at += step;
        }
        f64::INFINITY
    }
}

/// Mean rate at which payload arrived between two moments, in bit/s.
fn mean(outcome: &Outcome, from: Duration, to: Duration) -> f64 {
    let bin = |at: Duration| (at.as_nanos() / outcome.bin.as_nanos()) as usize;
    let bins = outcome.series[0].get(bin(from)..bin(to)).unwrap_or_default();
    let bits: f64 = bins.iter().map(|bytes: &Bytes| bytes.as_u64() as f64 * 8.0).sum();
    bits / (outcome.bin * bins.len().max(1) as u32).as_secs_f64()
}

/// What came of all seeds.
struct Runs(Vec<Found>);

impl Runs {
    fn sorted(&self, of: fn(&Found) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: fn(&Found) -> f64) -> f64 {
        let values = self.sorted(of);
        values[values.len() / 2]
    }

    fn least(&self, of: fn(&Found) -> f64) -> f64 {
        self.sorted(of)[0]
    }
}

/// Rate in Mbit/s, round trip in ms, losses, and whether the reports are lost too.
const CELLS: &[(u64, u64, &[f64], bool)] = &[
    (20, 10, &[0.3, 0.5, 0.8], false),
    (20, 40, &[0.3, 0.5, 0.8], false),
    (20, 150, &[0.3, 0.5, 0.8], false),
    (100, 40, &[0.5, 0.6, 0.8], false),
    (20, 10, &[0.3, 0.5], true),
    (20, 40, &[0.3, 0.5], true),
];

fn cells() -> impl Iterator<Item = Cell> {
    CELLS.iter().flat_map(|&(mbps, rtt_ms, losses, both)| {
        let (rate, rtt) = (BitRate::mbps(mbps), Duration::from_millis(rtt_ms));
        losses.iter().map(move |&loss| Cell { rate, rtt, loss, both })
    })
}

#[test]
fn loss_that_comes_and_goes() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for cell in cells() {
        let Cell { rate, rtt, loss, both } = cell;
        let runs = Runs(SEEDS.map(|of_plan| cell.run(seed(of_plan))).into());
        let (passes, passes_least) = (runs.median(|run| run.passes), runs.least(|run| run.passes));
        let (whole, whole_least) = (runs.median(|run| run.whole), runs.least(|run| run.whole));
        let mut row = String::new();
        write!(
            row,
            "{:>11} {:>4} ms {:>4.0} {:>5} | {:>6.1} {:>6.1} {:>6.1} | {:>6.1} {:>6.1} {:>6.1} |",
            rate.to_string(),
            rtt.as_millis(),
            loss * 100.0,
            if both { "both" } else { "there" },
            runs.median(|run| run.rise),
            passes * 100.0,
            passes_least * 100.0,
            runs.median(|run| run.fall),
            whole * 100.0,
            whole_least * 100.0
        )
        .expect("a string takes anything");
        println!("{row}");
        let (passing, at_worst) = cell.floors();
        if passes < passing || whole < WHOLE || passes_least < at_worst || whole_least < at_worst {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("weather.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.join("\n"));
}

/// So many that the median says what is usual and the least what chance may do.
const SEEDS: [u64; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

const PASSING: f64 = 0.9;
/// The median of nine seeds where half of both data and reports are lost at 10 ms: 0.88 to 0.94, by chance.
const PASSING_OF_ROUGH: f64 = 0.85;
const WHOLE: f64 = 0.94;
/// Where so few packets of a round trip arrive, those of an epoch and its test are too few to tell chance from an overflow, and half of the seeds take one for the other.
const FEW_PKTS: f64 = 5.0;
const PASSING_OF_FEW: f64 = 0.3;
/// At any seed: one in ten takes chance for an overflow once, and needs longer than ten round trips to find out.
const LEAST: f64 = 0.55;
/// The same where four fifths are lost, or half of both data and reports: there it may be taken so several times in a row.
const LEAST_OF_ROUGH: f64 = 0.08;

/// Payload of a full packet of 1500 bytes.
const PAYLOAD: f64 = 1428.0;

const HEADER: &str = "\
# One flow on a clean path, on which so much is lost from some moment on, and nothing again later; there: of the data only, both: of the reports too, all the time.
# Rise: round trips until 80 % of what the loss lets pass arrive again. Passes: the part of it that arrives, from 10 round trips (0.4 s at least) on, in per cent.
# Fall: round trips after its end until 80 % of the link's rate arrive. Whole: the part of it that arrives, from 10 round trips (0.4 s at least) on.
# Each the median of nine seeds; least: of the nine.
#      rate      rtt loss   lost |   rise passes  least |   fall  whole  least |
";
