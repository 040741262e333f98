//! Starts on paths that lose packets by chance: golden table.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::LossModel;
use haul_units::{BitRate, Ratio};

use crate::flow::FlowPlan;
use crate::grid::compare;
use crate::scenario::Scenario;

#[test]
fn quick_starts_bear_random_loss() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for rate in [BitRate::mbps(100), BitRate::gbps(1), BitRate::gbps(10)] {
        for rtt_ms in [10, 50, 100, 150, 500] {
            write!(table, "{:>11} {rtt_ms:>4} ms |", rate.to_string()).expect("a string takes anything");
            for loss in LOSSES {
                let mut starts: Vec<_> = (1..=SEEDS).map(|seed| start(rate, Duration::from_millis(rtt_ms), loss, seed)).collect();
                starts.sort_unstable_by(f64::total_cmp);
                let (median, worst) = (starts[starts.len() / 2], starts[starts.len() - 1]);
                write!(table, " {median:>6.2} {worst:>6.2} |").expect("a string takes anything");
                if worst > MOST {
                    missed.push(format!("{rate} {rtt_ms} ms {loss} %: {worst:.2} round trips"));
                }
            }
            table.push('\n');
        }
    }
    println!("{table}");
    compare("start-loss.txt", &table);
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// Round trips until 80 % of what the loss leaves of the link arrived over a whole one.
fn start(rate: BitRate, rtt: Duration, loss: f64, seed: u64) -> f64 {
    let scenario = Scenario {
        flows: vec![FlowPlan::bulk(ControllerChoice::Quickstart)],
        loss: LossModel::Random(Ratio::percent(loss)),
        length: rtt * 12,
        seed,
        ..Scenario::new(rate, rtt)
    };
    let limit = rate.scaled(0.8 * (1.0 - loss / 100.0));
    scenario.run().time_to(0, limit, rtt).map_or(f64::INFINITY, |time| time.as_secs_f64() / rtt.as_secs_f64())
}

const LOSSES: [f64; 4] = [0.1, 1.0, 5.0, 10.0];
const SEEDS: u64 = 5;
/// Round trips.
const MOST: f64 = 4.5;

const HEADER: &str = "\
# Quick starts with random loss, queue of 1: round trips until 80 % of what the loss leaves of the link arrived over a whole one; median and
# worst of five seeds.
# loss, %                      0.1             1               5              10
#      rate      rtt | median  worst | median  worst | median  worst | median  worst |
";
