//! The golden table: one fair flow over the grid of rates, round-trip times, loss and queues.
//!
//! A change of behaviour is a change of the table. `HAUL_GOLDEN=write cargo test -p haul-cc --test simulated` writes it anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use haul_sim::LossModel;
use haul_units::{BitRate, Ratio};

use crate::scenario::Scenario;

struct Row {
    text: String,
    failures: Vec<String>,
}

#[test]
fn fair_fills_the_grid() {
    let mut table = String::from(HEADER);
    let mut failures = Vec::new();
    for rate in [BitRate::mbps(100), BitRate::gbps(1), BitRate::gbps(10)] {
        for rtt_ms in [10, 100, 200, 500] {
            for queue_bdp in [0.25, 1.0] {
                for loss_percent in [0.0, 0.01, 0.1, 1.0, 5.0, 10.0] {
                    let row = run(rate, Duration::from_millis(rtt_ms), queue_bdp, loss_percent);
                    table += &row.text;
                    failures.extend(row.failures);
                }
            }
        }
    }
    println!("{table}");
    for failure in &failures {
        println!("{failure}");
    }
    compare("fair-grid.txt", &table);
    assert!(failures.is_empty(), "{} goals missed", failures.len());
}

fn run(rate: BitRate, rtt: Duration, queue_bdp: f64, loss_percent: f64) -> Row {
    let loss = if loss_percent > 0.0 { LossModel::Random(Ratio::percent(loss_percent)) } else { LossModel::None };
    let scenario = Scenario { queue_bdp, loss, ..Scenario::new(rate, rtt) };
    let outcome = scenario.run();
    let best = rate.scaled(1.0 - loss_percent / 100.0);
    let half = scenario.length / 2;
    let used = outcome.rate(0, half, scenario.length).ratio_to(best);
    let whole = outcome.rate(0, Duration::ZERO, scenario.length).ratio_to(best);
    let queue = outcome.queue_p95(half).as_secs_f64() / rtt.as_secs_f64();
    let start = outcome.time_to(0, best.scaled(0.8), rtt).map_or(f64::INFINITY, |t| t.as_secs_f64() / rtt.as_secs_f64());
    let mut text = String::new();
    writeln!(
        text,
        "{:>11} {:>4} ms {queue_bdp:>5.2} {loss_percent:>6.2} % | {:>6.1} {:>6.1} {:>9.2} {:>8.2} {start:>8.1}",
        rate.to_string(),
        rtt.as_millis(),
        whole.as_f64() * 100.0,
        used.as_f64() * 100.0,
        queue,
        outcome.dropped() * 100.0,
    )
    .expect("a string takes anything");
    let least = if loss_percent >= 10.0 {
        0.90
    } else if loss_percent >= 5.0 {
        0.93
    } else {
        0.97
    };
    let mut failures = Vec::new();
    let mut check = |ok: bool, what: &str| {
        if !ok {
            failures.push(format!("{what}: {}", text.trim_end()));
        }
    };
    check(used.as_f64() >= least, "used too little");
    // On short paths a few milliseconds.
    check(queue <= 0.5 || outcome.queue_p95(half) <= Duration::from_millis(8), "stands in the queue");
    check(start <= if loss_percent >= 10.0 { 10.5 } else { 10.0 }, "starts too slowly");
    Row { text, failures }
}

/// Compares with the table in git, or writes it.
pub fn compare(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("HAUL_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, table).expect("the table can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (old, new) in golden.lines().zip(table.lines()) {
        assert_eq!(old, new, "differs from {}", path.display());
    }
    assert_eq!(golden.lines().count(), table.lines().count(), "rows of {}", path.display());
}

const HEADER: &str = "\
# One fair flow. Used: part of rate x (1 - loss) that arrived, in per cent, whole run and second half. Queue: 95th percentile of the
# queueing delay in the second half, in round trips. Dropped: packets the queue had no room for, in per cent. Start: time until 80 %
# arrived over a round trip, in round trips.
#      rate      rtt queue     loss |  whole   half     queue  dropped    start
";
