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

/// What came of it.
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

    fn run(&self) -> Found {
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
            seed: seed(1),
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
        let found = cell.run();
        let mut row = String::new();
        write!(
            row,
            "{:>11} {:>4} ms {:>4.0} {:>5} | {:>6.1} {:>6.1} | {:>6.1} {:>6.1} |",
            rate.to_string(),
            rtt.as_millis(),
            loss * 100.0,
            if both { "both" } else { "there" },
            found.rise,
            found.passes * 100.0,
            found.fall,
            found.whole * 100.0
        )
        .expect("a string takes anything");
        println!("{row}");
        let least = if loss > 0.7 && rtt > Duration::from_millis(100) { LEAST_OF_LITTLE } else { LEAST_PASSING };
        if found.passes < least || found.whole < LEAST_WHOLE {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("weather.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.join("\n"));
}

/// Payload of a full packet of 1500 bytes.
const PAYLOAD: f64 = 1428.0;
const LEAST_PASSING: f64 = 0.9;
/// Of 80 % loss at 20 Mbit/s and 150 ms: an epoch and its test have so few packets left that chance decides.
const LEAST_OF_LITTLE: f64 = 0.5;
const LEAST_WHOLE: f64 = 0.9;

const HEADER: &str = "\
# One flow on a clean path, on which so much is lost from some moment on, and nothing again later; there: of the data only, both: of the reports too, all the time.
# Rise: round trips until 80 % of what the loss lets pass arrive again. Passes: the part of it that arrives, from 10 round trips (0.4 s at least) on, in per cent.
# Fall: round trips after its end until 80 % of the link's rate arrive. Whole: the part of it that arrives, from 10 round trips (0.4 s at least) on.
#      rate      rtt loss   lost |   rise passes |   fall  whole |
";
