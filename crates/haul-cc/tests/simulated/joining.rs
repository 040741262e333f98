//! Flows of one kind that join one another on paths of many lengths: how equal they are, and how soon.

use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice::Fair;
use haul_sim::LossModel;
use haul_units::{BitRate, Ratio, Time};

use crate::flow::FlowPlan;
use crate::grid::compare;
use crate::scenario::{Outcome, Scenario};
use crate::sharing::jain;

const LENGTH: Duration = Duration::from_secs(60);

#[test]
fn late_joiners_come_to_an_equal_part() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for (count, apart_ms, least_jain) in JOINING {
        for rate in [BitRate::mbps(100), BitRate::gbps(1)] {
            for rtt_ms in [20, 50, 150] {
                let (row, later) = row(count, Duration::from_millis(apart_ms), rate, Duration::from_millis(rtt_ms));
                if later < least_jain {
                    missed.push(row.clone());
                }
                table += &row;
            }
        }
    }
    println!("{table}");
    compare("joining.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.concat());
}

/// A row, and Jain's index of the second half.
fn row(count: u32, apart: Duration, rate: BitRate, rtt: Duration) -> (String, f64) {
    let plan = |n| FlowPlan { start: Time::ZERO + apart * n, ..FlowPlan::bulk(Fair) };
    let outcome = Scenario { flows: (0..count).map(plan).collect(), length: LENGTH, ..Scenario::new(rate, rtt) }.run();
    let shares = |from: u64, until: u64| -> Vec<f64> {
        let rate_of = |n| outcome.rate(n, Duration::from_secs(from), Duration::from_secs(until));
        (0..count as usize).map(|n| rate_of(n).ratio_to(rate).as_f64()).collect()
    };
    let (early, late) = (shares(6, 20), shares(30, 60));
    let each: Vec<String> = early.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
    let mut text = String::new();
    writeln!(
        text,
        "{count:>2} {:>4.1} s {rate:>10} {:>4} ms | {:>5.3} {:>5.3} {:>6.1} {:>6.1} {:>6.2} {:>6.2}  {}",
        apart.as_secs_f64(),
        rtt.as_millis(),
        jain(&early),
        jain(&late),
        early.iter().sum::<f64>() * 100.0,
        late.iter().sum::<f64>() * 100.0,
        outcome.queue_p95(LENGTH / 2).as_secs_f64() / rtt.as_secs_f64(),
        outcome.dropped() * 100.0,
        each.join(" "),
    )
    .expect("a string takes anything");
    (text, jain(&late))
}

/// Whoever comes late to a full link has little of it. Where the receiver bounds the others and says what they leave, it has that within seconds.
#[test]
fn what_the_receiver_makes_room_for_is_taken_up_soon() {
    const FLOWS: u32 = 6;
    for (mbps, rtt_ms) in [(100, 50), (100, 150), (1_000, 50), (1_000, 150)] {
        let (rate, rtt) = (BitRate::mbps(mbps), Duration::from_millis(rtt_ms));
        let second = |s| Time::ZERO + Duration::from_secs(s);
        let part = rate.scaled(1.0 / f64::from(FLOWS));
        let least = |is_told: bool| {
            let limited = Some((second(12), second(40), part));
            let told = is_told.then_some((second(12), part));
            let plan = |n| FlowPlan { start: second(u64::from(n)), limited, told, ..FlowPlan::bulk(Fair) };
            let flows = (0..FLOWS).map(plan).collect();
            // Bursts that busy hosts lose: a flow with little takes each for an overflow.
            let loss = LossModel::Bursts { ratio: Ratio::percent(2.0), mean_pkts: 20.0 };
            let (jitter, length) = (Duration::from_millis(3), Duration::from_secs(20));
            let outcome = Scenario { loss, jitter, flows, length, ..Scenario::new(rate, rtt) }.run();
            let part_of = |n| outcome.rate(n, Duration::from_secs(16), Duration::from_secs(20)).ratio_to(part).as_f64();
            (0..FLOWS as usize).map(part_of).fold(1.0, f64::min)
        };
        let row =
            format!("{mbps} Mbit/s, {rtt_ms} ms: {:.2} of its part, {:.2} where it is told nothing", least(true), least(false));
        println!("{row}");
        assert!(least(true) > 0.9, "{row}");
    }
}

/// A receiver that is wrong, or means harm, says twice a second that it has room for ten times what the path carries.
#[test]
fn room_that_is_not_there_costs_little() {
    for (mbps, rtt_ms, queue_bdp) in [(100, 20, 1.0), (100, 150, 0.25), (1_000, 50, 0.25), (1_000, 150, 1.0)] {
        let (rate, rtt) = (BitRate::mbps(mbps), Duration::from_millis(rtt_ms));
        let told = Some((Time::ZERO + Duration::from_secs(3), rate.scaled(10.0)));
        let flow = |told| FlowPlan { told, ..FlowPlan::bulk(Fair) };
        let length = Duration::from_secs(60);
        let run = |told| Scenario { flows: vec![flow(told)], queue_bdp, length, ..Scenario::new(rate, rtt) }.run();
        let (outcome, usual) = (run(told), run(None));
        let row =
            format!("{mbps} Mbit/s, {rtt_ms} ms, {queue_bdp}: {:.4} dropped, {:.4} usually", outcome.dropped(), usual.dropped());
        println!("{row}");
        let late = |outcome: &Outcome| outcome.rate(0, Duration::from_secs(6), Duration::MAX).as_bps() as f64;
        assert!(outcome.dropped() < usual.dropped() + 0.04, "{row}");
        assert!(late(&outcome) > late(&usual) * 0.9, "{row}");
    }
}

/// How many, how many milliseconds apart, and what Jain's index of the second half is to be at least. Six on a long path are not equal after a minute.
const JOINING: [(u32, u64, f64); 4] = [(2, 300, 0.95), (3, 300, 0.85), (3, 3_000, 0.85), (6, 1_000, 0.5)];

const HEADER: &str = "\
# Fair flows that start so far apart, on a queue of one product of bandwidth and delay. Jain's index and the used part of the link in per cent,
# from 6 to 20 s and from 30 to 60 s. Queue: 95th percentile of the queueing delay in the second half, in round trips. Dropped in per cent. Each: part
# of the link from 6 to 20 s, in per cent, in order of start.
#                         |  jain  later   used  later  queue dropped  each
";
