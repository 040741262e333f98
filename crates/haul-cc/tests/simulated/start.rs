//! The first round trips: golden tables.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::{ControllerChoice, Learned};
use haul_units::{BitRate, Bytes, Time};

use crate::flow::FlowPlan;
use crate::grid::compare;
use crate::scenario::{Outcome, Scenario};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A start, and what came of it.
struct Start {
    /// Until four fifths of the link arrived over a round trip, in round trips.
    rounds: f64,
    /// Packets for which the queue had no room, of all that a round trip carries.
    dropped: f64,
    /// Longest queue, in round trips.
    queue: f64,
}

impl Start {
    fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        let rtt = scenario.rtt.as_secs_f64();
        let reached = outcome.time_to(0, scenario.rate.scaled(0.8), scenario.rtt);
        let carried = scenario.rate.bytes_in(scenario.rtt).0 as f64 / crate::flow::PACKET.0 as f64;
        Self {
            rounds: reached.map_or(f64::INFINITY, |time| time.as_secs_f64() / rtt),
            dropped: outcome.dropped_pkts as f64 / carried,
            queue: outcome.longest_queue().as_secs_f64() / rtt,
        }
    }
}

/// Who starts.
const STARTS: [(&str, ControllerChoice, bool, Duration); 5] = [
    ("fair", ControllerChoice::Fair, false, Duration::ZERO),
    ("fair, receiver wakes each 100 us", ControllerChoice::Fair, false, Duration::from_micros(100)),
    ("quickstart", ControllerChoice::Quickstart, false, Duration::ZERO),
    ("quickstart, receiver wakes each 100 us", ControllerChoice::Quickstart, false, Duration::from_micros(100)),
    ("the same, with memory", ControllerChoice::Quickstart, true, Duration::from_micros(100)),
];

#[test]
fn starts_reach_the_rate_of_the_path() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for (name, controller, with_memory, receive_batch) in STARTS {
        writeln!(table, "{name}").expect("a string takes anything");
        for rate in [BitRate::mbps(100), BitRate::gbps(1), BitRate::gbps(10)] {
            for rtt in [ms(10), ms(50), ms(100), ms(200), ms(500)] {
                write!(table, "{:>11} {:>4} ms |", rate.to_string(), rtt.as_millis()).expect("a string takes anything");
                for queue_bdp in [0.25, 0.5, 1.0] {
                    let remembered = with_memory.then_some(Learned { bandwidth: rate, min_rtt: rtt, base_loss: 0.0 });
                    let flows = vec![FlowPlan { remembered, ..FlowPlan::bulk(controller) }];
                    let scenario = Scenario { flows, queue_bdp, receive_batch, length: rtt * 14, ..Scenario::new(rate, rtt) };
                    let start = Start::of(&scenario, &scenario.run());
                    write!(table, " {:>6.2} {:>7.2} {:>5.2} |", start.rounds, start.dropped * 100.0, start.queue)
                        .expect("a string takes anything");
                    // Trains of 10 Gbit/s on short paths are over before such a receiver wakes twice.
                    let unseen = !receive_batch.is_zero() && !with_memory && rate == BitRate::gbps(10) && rtt < ms(100);
                    let most = match controller {
                        // Without them it searches.
                        ControllerChoice::Fair if unseen => 11.0,
                        ControllerChoice::Fair => 10.0,
                        _ if unseen => 8.0,
                        _ => 4.0,
                    };
                    let is_gentle = controller == ControllerChoice::Fair && (receive_batch.is_zero() || rate < BitRate::gbps(10));
                    if is_gentle && start.dropped > 0.1 {
                        missed.push(format!(
                            "{name} {rate} {rtt:?} queue {queue_bdp}: {:.2} of a round trip dropped",
                            start.dropped
                        ));
                    }
                    if start.rounds > most {
                        missed.push(format!("{name} {rate} {rtt:?} queue {queue_bdp}: {:.2} round trips", start.rounds));
                    }
                }
                table.push('\n');
            }
        }
    }
    writeln!(table, "{GIGABYTE_HEADER}").expect("a string takes anything");
    for (name, controller, with_memory, receive_batch) in STARTS {
        let (rate, rtt) = (BitRate::gbps(10), ms(100));
        let remembered = with_memory.then_some(Learned { bandwidth: rate, min_rtt: rtt, base_loss: 0.0 });
        let flows = vec![FlowPlan { remembered, ..FlowPlan::bulk(controller) }];
        let outcome = Scenario { flows, receive_batch, length: rtt * 40, ..Scenario::new(rate, rtt) }.run();
        let took = outcome.time_of(0, Bytes(1_000_000_000)).map_or(f64::INFINITY, |time| time.as_secs_f64());
        writeln!(table, "{name:>40} | {took:>5.2} s").expect("a string takes anything");
    }
    println!("{table}");
    compare("start.txt", &table);
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

const HEADER: &str = "\
# The first fourteen round trips. Start: until 80 % of the link arrived over a round trip, in round trips. Dropped: packets the queue had
# no room for, in per cent of what a round trip carries. Queue: the longest, in round trips.
# queue of                     0.25                    0.5                      1
#      rate      rtt |  start dropped queue |  start dropped queue |  start dropped queue |
";

const GIGABYTE_HEADER: &str =
    "# 1 GB over 10 Gbit/s, 100 ms, queue 1: until the last byte has arrived once; 0.80 s at the rate of the link.";

/// A start on a path that is not as it was, or not empty.
struct Surprise {
    name: &'static str,
    remembered: Option<Learned>,
    receive_batch: Duration,
    /// CUBIC has the path, from ten seconds before on.
    beside_cubic: bool,
}

const PATH: (BitRate, Duration) = (BitRate::mbps(100), ms(50));

const fn memory(rate: BitRate, min_rtt: Duration) -> Learned {
    Learned { bandwidth: rate, min_rtt, base_loss: 0.0 }
}

const LATE: Duration = ms(10);
const SURPRISES: [Surprise; 8] = [
    Surprise { name: "none", remembered: Some(memory(PATH.0, PATH.1)), receive_batch: Duration::ZERO, beside_cubic: false },
    Surprise {
        name: "a tenth of the rate",
        remembered: Some(memory(BitRate::gbps(1), PATH.1)),
        receive_batch: Duration::ZERO,
        beside_cubic: false,
    },
    Surprise {
        name: "a tenth, receiver wakes each 10 ms",
        remembered: Some(memory(BitRate::gbps(1), PATH.1)),
        receive_batch: LATE,
        beside_cubic: false,
    },
    Surprise { name: "receiver wakes each 10 ms", remembered: None, receive_batch: LATE, beside_cubic: false },
    Surprise {
        name: "another round-trip time",
        remembered: Some(memory(BitRate::gbps(1), ms(4))),
        receive_batch: LATE,
        beside_cubic: false,
    },
    Surprise {
        name: "cubic has the path",
        remembered: Some(memory(PATH.0, PATH.1)),
        receive_batch: Duration::ZERO,
        beside_cubic: true,
    },
    Surprise {
        name: "cubic, and a tenth of the rate",
        remembered: Some(memory(BitRate::gbps(1), PATH.1)),
        receive_batch: Duration::ZERO,
        beside_cubic: true,
    },
    Surprise {
        name: "cubic, a tenth, wakes each 10 ms",
        remembered: Some(memory(BitRate::gbps(1), PATH.1)),
        receive_batch: LATE,
        beside_cubic: true,
    },
];

impl Surprise {
    /// Starts at ten seconds, `controller` beside CUBIC or alone.
    fn run(&self, controller: ControllerChoice) -> Outcome {
        let (rate, rtt) = PATH;
        let start = Time::ZERO + BEFORE;
        let mut flows = vec![FlowPlan { start, remembered: self.remembered, ..FlowPlan::bulk(controller) }];
        if self.beside_cubic {
            flows.push(FlowPlan::bulk(ControllerChoice::Cubic));
        }
        Scenario { flows, receive_batch: self.receive_batch, length: BEFORE * 3, ..Scenario::new(rate, rtt) }.run()
    }
}

const BEFORE: Duration = Duration::from_secs(10);

#[test]
fn what_is_remembered_may_be_wrong() {
    let mut table = String::from(SURPRISES_HEADER);
    let mut missed = Vec::new();
    for surprise in &SURPRISES {
        let mut rows = Vec::new();
        for controller in [ControllerChoice::Fair, ControllerChoice::Quickstart] {
            let outcome = surprise.run(controller);
            let share = |flow: usize, from: Duration, to: Duration| outcome.rate(flow, from, to).ratio_to(PATH.0).as_f64();
            let cubic = |from, to| if surprise.beside_cubic { share(1, from, to) } else { 0.0 };
            let early = (BEFORE, BEFORE + Duration::from_secs(3));
            let late = (BEFORE + Duration::from_secs(10), BEFORE * 3);
            let carried = PATH.0.bytes_in(PATH.1).0 as f64 / crate::flow::PACKET.0 as f64;
            let row = [
                share(0, early.0, early.1),
                cubic(early.0, early.1),
                share(0, late.0, late.1),
                cubic(late.0, late.1),
                outcome.dropped_between(early.0, early.1) as f64 / carried,
            ];
            writeln!(
                table,
                "{:>32} {:>10} | {:>5.1} {:>6.1} | {:>5.1} {:>6.1} | {:>7.1}",
                surprise.name,
                controller.to_string(),
                row[0] * 100.0,
                row[1] * 100.0,
                row[2] * 100.0,
                row[3] * 100.0,
                row[4] * 100.0
            )
            .expect("a string takes anything");
            rows.push(row);
        }
        let quick = rows[1];
        // Who shares the path keeps most of it at first, and later no less than a fifth: shares take a minute to meet.
        let most = if surprise.receive_batch.is_zero() { 0.6 } else { 0.5 };
        if surprise.beside_cubic && (quick[1] < most || quick[3] < 0.2) {
            missed.push(format!("{}: cubic has {:.2} and {:.2}", surprise.name, quick[1], quick[3]));
        }
        if !surprise.beside_cubic && (quick[2] < 0.95 || quick[0] < 0.7) {
            missed.push(format!("{}: {:.2} at first, {:.2} in the end", surprise.name, quick[0], quick[2]));
        }
    }
    println!("{table}");
    compare("start-surprises.txt", &table);
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// When in CUBIC's cycle a flow begins decides much of a single run: the mean of five moments.
#[test]
fn a_start_beside_cubic_leads_to_a_part_of_the_path() {
    let mut table = String::from(BESIDE_CUBIC_HEADER);
    let (mut sum, mut cells) = (0.0, 0);
    for (rate, rtt) in [(BitRate::mbps(100), ms(50)), (BitRate::mbps(500), ms(20)), (BitRate::mbps(200), ms(100))] {
        for queue_bdp in [0.25, 0.5, 1.0, 2.0, 4.0] {
            let carried = rate.bytes_in(rtt).0 as f64 / crate::flow::PACKET.0 as f64;
            let (mut early, mut late, mut dropped) = (Vec::new(), Vec::new(), 0.0);
            for moment in 0..5 {
                let begin = BEFORE + ms(1300) * moment;
                let fair = FlowPlan { start: Time::ZERO + begin, ..FlowPlan::bulk(ControllerChoice::Fair) };
                let flows = vec![fair, FlowPlan::bulk(ControllerChoice::Cubic)];
                let outcome = Scenario { flows, queue_bdp, length: BEFORE * 5, ..Scenario::new(rate, rtt) }.run();
                let share = |from: Duration, to: Duration| outcome.rate(0, from, to).ratio_to(rate).as_f64() * 100.0;
                early.push(share(begin, begin + ms(3000)));
                late.push(share(BEFORE * 3, BEFORE * 5));
                dropped += outcome.dropped_between(begin, begin + ms(3000)) as f64 / carried * 100.0 / 5.0;
            }
            let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
            let (least, most) = (late.iter().copied().fold(100.0, f64::min), late.iter().copied().fold(0.0, f64::max));
            let row = format!("{:>11} {:>4} ms {queue_bdp:>5.2}", rate.to_string(), rtt.as_millis());
            writeln!(table, "{row} | {:>5.1} | {:>5.1} {least:>5.1} {most:>5.1} | {dropped:>7.1}", mean(&early), mean(&late))
                .expect("a string takes anything");
            (sum, cells) = (sum + mean(&late), cells + 1);
        }
    }
    println!("{table}");
    compare("start-beside-cubic.txt", &table);
    // Half is what is wanted of the whole.
    let mean = sum / f64::from(cells);
    assert!((35.0..65.0).contains(&mean), "{mean:.1}");
}

/// Each in turn takes the path over from each other one.
#[test]
fn a_controller_that_takes_over_goes_on_at_the_same_rate() {
    let fixed = ControllerChoice::Fixed(BitRate::mbps(900));
    let all = [
        ControllerChoice::Fair,
        ControllerChoice::Quickstart,
        ControllerChoice::Modest,
        ControllerChoice::Aggressive,
        ControllerChoice::Cubic,
        fixed,
    ];
    let (rate, rtt, at) = (BitRate::gbps(1), ms(100), Duration::from_secs(15));
    let mut missed = Vec::new();
    for before in all {
        for after in all {
            let flows = vec![FlowPlan { change: Some((Time::ZERO + at, after)), ..FlowPlan::bulk(before) }];
            let outcome = Scenario { flows, length: at + rtt * 12, ..Scenario::new(rate, rtt) }.run();
            let used = |from: Duration, to: Duration| outcome.rate(0, from, to).ratio_to(rate).as_f64();
            let (was, is) = (used(Duration::from_secs(14), at), used(at + rtt * 2, at + rtt * 12));
            if is < 0.85 * was {
                missed.push(format!("{before} to {after}: {was:.2} to {is:.2}"));
            }
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

const BESIDE_CUBIC_HEADER: &str = "\
# A fair flow begins beside a CUBIC flow that has had the path for 10 to 15.2 s (five moments). Its share of the link in per cent: in its first
# three seconds, and from the thirtieth to the fiftieth second, the mean, the least and the most. Dropped: what the queue had no room for in its first
# three seconds, both flows together, in per cent of what a round trip carries.
#                      queue | early |  late least  most | dropped
";

const SURPRISES_HEADER: &str = "\
# 100 Mbit/s, 50 ms, queue 1: a flow starts after ten seconds with a memory of the path that is wrong, or beside CUBIC. Share of the path
# in per cent, for it and for CUBIC, in the first three seconds and in the second ten. Dropped: in the first three seconds, in per cent of
# what a round trip carries.
#                                           |    first     |     later    |
#                       memory        start |  flow  cubic |  flow  cubic | dropped
";
