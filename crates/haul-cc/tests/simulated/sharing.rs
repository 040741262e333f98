//! Several flows on one bottleneck: a golden table, and the goals for it.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice::{self, Aggressive, Cubic, Fair, Modest};
use haul_units::{BitRate, Time};

use crate::flow::FlowPlan;
use crate::grid::compare;
use crate::scenario::Scenario;

const LENGTH: Duration = Duration::from_secs(60);
/// Runs of which a row is the mean.
const RUNS: u32 = 5;
const RATE: BitRate = BitRate::mbps(100);
const RTT: Duration = Duration::from_millis(50);

struct Shares {
    /// Of the link, in the second half.
    each: Vec<f64>,
    dropped: f64,
    queue: f64,
}

impl Shares {
    fn total(&self) -> f64 {
        self.each.iter().sum()
    }
}

/// Jain's index of fairness: 1 when all are equal, 1/n when one has all.
pub fn jain(each: &[f64]) -> f64 {
    let sum: f64 = each.iter().sum();
    let squares: f64 = each.iter().map(|share| share * share).sum();
    sum * sum / squares / each.len() as f64
}

/// Beside flows that fill the queue and give way in turns, chance decides who is ahead in a single run: the mean of some.
fn mean_share(controllers: &[ControllerChoice], apart: Duration, queue_bdp: f64) -> Shares {
    let runs: Vec<Shares> = (0..RUNS).map(|run| share(controllers, apart + Duration::from_millis(97) * run, queue_bdp)).collect();
    let mean = |value: &dyn Fn(&Shares) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    Shares {
        each: (0..controllers.len()).map(|n| mean(&|run| run.each[n])).collect(),
        dropped: mean(&|run| run.dropped),
        queue: mean(&|run| run.queue),
    }
}

/// Flows that start a while apart.
fn share(controllers: &[ControllerChoice], apart: Duration, queue_bdp: f64) -> Shares {
    let plan = |(n, controller): (usize, &ControllerChoice)| FlowPlan {
        start: Time::ZERO + apart * n as u32,
        ..FlowPlan::bulk(*controller)
    };
    let flows: Vec<FlowPlan> = controllers.iter().enumerate().map(plan).collect();
    let count = flows.len();
    let outcome = Scenario { flows, queue_bdp, length: LENGTH, ..Scenario::new(RATE, RTT) }.run();
    Shares {
        each: (0..count).map(|n| outcome.rate(n, LENGTH / 2, LENGTH).ratio_to(RATE).as_f64()).collect(),
        dropped: outcome.dropped(),
        queue: outcome.queue_p95(LENGTH / 2).as_secs_f64() / RTT.as_secs_f64(),
    }
}

#[test]
fn flows_share_a_bottleneck() {
    let mut table = String::from(HEADER);
    let mut goals = Vec::new();
    let secs = Duration::from_secs;
    for (name, controllers, apart, queue, least_jain) in [
        ("2 fair", vec![Fair; 2], secs(0), 1.0, 0.95),
        ("2 fair, 10 s apart", vec![Fair; 2], secs(10), 1.0, 0.95),
        ("2 fair, short queue", vec![Fair; 2], secs(5), 0.25, 0.9),
        ("4 fair, 3 s apart", vec![Fair; 4], secs(3), 1.0, 0.95),
        ("8 fair, 1 s apart", vec![Fair; 8], secs(1), 1.0, 0.95),
        ("2 modest, 5 s apart", vec![Modest; 2], secs(5), 1.0, 0.8),
        ("2 cubic, 5 s apart", vec![Cubic; 2], secs(5), 1.0, 0.9),
        // 35 to 65 %.
        ("cubic, fair", vec![Cubic, Fair], secs(5), 1.0, EACH_35),
        ("fair, cubic", vec![Fair, Cubic], secs(5), 1.0, EACH_35),
        ("cubic, fair, short queue", vec![Cubic, Fair], secs(5), 0.25, EACH_35),
        ("cubic, fair, long queue", vec![Cubic, Fair], secs(5), 4.0, 0.7),
        // The four are unequal among themselves.
        ("4 cubic, fair", vec![Cubic, Cubic, Cubic, Cubic, Fair], secs(1), 1.0, 0.75),
        // These are not to be equal, and Jain's index of two says nothing below 0.5: UNEQUAL says how much of the link each gets.
        ("cubic, modest", vec![Cubic, Modest], secs(5), 1.0, NO_INDEX),
        ("cubic, aggressive", vec![Cubic, Aggressive], secs(5), 1.0, 0.8),
        ("fair, aggressive", vec![Fair, Aggressive], secs(5), 1.0, 0.8),
        ("fair, modest", vec![Fair, Modest], secs(5), 1.0, NO_INDEX),
    ] {
        let shares = mean_share(&controllers, apart, queue);
        let each: Vec<String> = shares.each.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
        writeln!(
            table,
            "{name:>30} {queue:>5.2} | {:>5.3} {:>6.1} {:>6.2} {:>8.2}  {}",
            jain(&shares.each),
            shares.total() * 100.0,
            shares.queue,
            shares.dropped * 100.0,
            each.join(" ")
        )
        .expect("a string takes anything");
        let unequal = UNEQUAL.iter().find(|(unequal, _)| *unequal == name);
        let each_its_own = unequal.is_none_or(|(_, least)| least.iter().zip(&shares.each).all(|(least, share)| share >= least));
        goals.push((name, jain(&shares.each) >= least_jain && shares.total() >= 0.95 && each_its_own));
    }
    println!("{table}");
    compare("sharing.txt", &table);
    let missed: Vec<_> = goals.iter().filter(|(_, met)| !met).map(|(name, _)| name).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// What each of two that are not to be equal gets at least: modest yields, and is not starved; aggressive takes more and leaves a fifth.
const UNEQUAL: [(&str, [f64; 2]); 4] = [
    ("cubic, modest", [0.9, 0.005]),
    ("cubic, aggressive", [0.2, 0.55]),
    ("fair, aggressive", [0.2, 0.2]),
    ("fair, modest", [0.8, 0.03]),
];
/// No floor.
const NO_INDEX: f64 = 0.0;
/// Jain's index of 65 to 35.
const EACH_35: f64 = 0.917;

const HEADER: &str = "\
# Flows on 100 Mbit/s, 50 ms, over 60 s, the mean of five runs; the second half counts. Jain: index of fairness. Used: part of the link in per cent.
# Queue: 95th percentile of the queueing delay in round trips. Dropped: packets the queue had no room for, in per cent. Each: per cent.
#                             queue |  jain   used  queue  dropped  each
";
