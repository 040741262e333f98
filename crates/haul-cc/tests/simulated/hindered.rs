//! Starts that the ends hold up: the application waits now and then, or a host is busy and lets only a part pass for a while.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::LossModel;
use haul_units::{BitRate, Ratio, Time};

use crate::flow::FlowPlan;
use crate::grid::compare;
use crate::scenario::{Change, Outcome, Scenario};

/// What holds a start up.
struct Hindrance {
    name: &'static str,
    /// Until this round trip the application waits for this part of the time.
    waits: Option<(u32, f64)>,
    /// Round trips, from and to, in which no more than this part of the rate passes.
    busy: Option<(u32, u32, f64)>,
}

const HINDRANCES: [Hindrance; 6] = [
    Hindrance { name: "nothing", waits: None, busy: None },
    Hindrance { name: "waits 30 % of 15 rtt", waits: Some((15, 0.3)), busy: None },
    Hindrance { name: "waits 10 %", waits: Some((1_000, 0.1)), busy: None },
    Hindrance { name: "waits 30 %", waits: Some((1_000, 0.3)), busy: None },
    Hindrance { name: "busy rtt 6 to 9", waits: None, busy: Some((6, 9, 0.2)) },
    Hindrance { name: "busy, and waits 30 %", waits: Some((15, 0.3)), busy: Some((6, 9, 0.2)) },
];

impl Hindrance {
    fn run(&self, rate: BitRate, rtt: Duration, loss: f64) -> Outcome {
        let waits = self.waits.map(|(rounds, part)| (Time::ZERO + rtt * rounds, part));
        let flows = vec![FlowPlan { waits, ..FlowPlan::bulk(ControllerChoice::Fair) }];
        let changes = self.busy.map_or_else(Vec::new, |(from, to, part)| {
            vec![(Time::ZERO + rtt * from, Change::Rate(rate.scaled(part))), (Time::ZERO + rtt * to, Change::Rate(rate))]
        });
        let loss = LossModel::Random(Ratio::percent(loss));
        Scenario { flows, changes, loss, length: rtt * LENGTH, ..Scenario::new(rate, rtt) }.run()
    }
}

#[test]
fn starts_that_are_held_up() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for hindrance in &HINDRANCES {
        writeln!(table, "{}", hindrance.name).expect("a string takes anything");
        for (rate, ms) in [(BitRate::gbps(1), 100), (BitRate::gbps(10), 200), (BitRate::gbps(10), 500)] {
            let rtt = Duration::from_millis(ms);
            write!(table, "{:>11} {ms:>4} ms |", rate.to_string()).expect("a string takes anything");
            for loss in [0.0, 1.0, 5.0] {
                let outcome = hindrance.run(rate, rtt, loss);
                let limit = rate.scaled(1.0 - loss / 100.0);
                let rounds =
                    outcome.time_to(0, limit.scaled(0.8), rtt).map_or(f64::INFINITY, |at| at.as_secs_f64() / rtt.as_secs_f64());
                let used = |from, to| outcome.rate(0, rtt * from, rtt * to).ratio_to(limit).as_f64();
                let (first, second) = (used(0, LENGTH / 2), used(LENGTH / 2, LENGTH));
                write!(table, " {rounds:>6.2} {:>5.1} {:>6.1} |", first * 100.0, second * 100.0)
                    .expect("a string takes anything");
                let least = hindrance.waits.filter(|(rounds, _)| *rounds > LENGTH).map_or(0.95, |(_, part)| 0.9 - part);
                if second < least {
                    missed.push(format!("{} {rate} {rtt:?} {loss} %: {second:.3}", hindrance.name));
                }
            }
            table.push('\n');
        }
    }
    println!("{table}");
    compare("start-held-up.txt", &table);
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// Round trips.
const LENGTH: u32 = 60;

const HEADER: &str = "\
# Starts that the ends hold up, sixty round trips. Start: until 80 % of what the loss leaves of the link arrived over a round trip, in
# round trips. First, second: used in the first and the second half, in per cent of the same.
# loss, %                           0                       1                       5
#      rate      rtt |  start first second |  start first second |  start first second |
";
