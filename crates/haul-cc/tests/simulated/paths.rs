//! One flow on paths that change, jitter, lose in bursts or go away, and with an application that pauses.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::LossModel;
use haul_units::{BitRate, Ratio, Time};

use crate::flow::{FlowPlan, PACKET};
use crate::scenario::{Change, Outcome, Scenario};

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + s(n)
}

/// What arrived between two instants, as a part of a rate.
fn used(outcome: &Outcome, from: Duration, to: Duration, of: BitRate) -> f64 {
    outcome.rate(0, from, to).ratio_to(of).as_f64()
}

/// The goals of a test that were missed.
#[derive(Default)]
struct Missed(Vec<String>);

impl Missed {
    fn used(&mut self, scenario: &Scenario, outcome: &Outcome, from: Duration, of: BitRate, least: f64) {
        let used = used(outcome, from, scenario.length, of);
        let (rate, rtt, dropped) = (scenario.rate, scenario.rtt, outcome.dropped() * 100.0);
        self.unless(
            used >= least,
            format!("{rate} {rtt:?}: {:.1} % of {of} from {from:?}, dropped {dropped:.2} %", used * 100.0),
        );
    }

    fn unless(&mut self, met: bool, what: String) {
        if !met {
            self.0.push(what);
        }
    }
}

/// Runs a test at the rates and round-trip times that matter, and says all goals missed.
fn each_path(mut test: impl FnMut(BitRate, Duration, &mut Missed)) {
    let mut missed = Missed::default();
    for rate in [BitRate::mbps(100), BitRate::gbps(1)] {
        for rtt in [ms(10), ms(100), ms(500)] {
            test(rate, rtt, &mut missed);
        }
    }
    test(BitRate::gbps(10), ms(200), &mut missed);
    assert!(missed.0.is_empty(), "\n{}", missed.0.join("\n"));
}

#[test]
fn a_rate_that_falls_to_a_tenth_is_followed() {
    each_path(|rate, rtt, missed| {
        let slow = rate.scaled(0.1);
        let changes = vec![(at(15), Change::Rate(slow))];
        let scenario = Scenario { changes, length: s(40), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        missed.used(&scenario, &outcome, s(25), slow, 0.95);
        // The queue is ten times as long in time; it must not stay full.
        let queue = outcome.queue_p95(s(35));
        // News takes ten times as long there, and at 500 ms the search for others with it.
        let most = if rtt < ms(500) { rtt } else { rtt * 4 };
        missed.unless(queue <= most, format!("{rate} {rtt:?}: {queue:?} in the queue"));
    });
}

#[test]
fn a_rate_that_grows_tenfold_is_found() {
    each_path(|rate, rtt, missed| {
        let changes = vec![(Time::ZERO, Change::Rate(rate.scaled(0.1))), (at(15), Change::Rate(rate))];
        let scenario = Scenario { changes, length: s(45), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        missed.used(&scenario, &outcome, s(30), rate, 0.95);
    });
}

#[test]
fn an_outage_of_two_seconds_is_recovered_from() {
    each_path(|rate, rtt, missed| {
        let changes = vec![(at(15), Change::Loss(LossModel::All)), (at(17), Change::Loss(LossModel::None))];
        let scenario = Scenario { changes, length: s(35), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        // Probes are up to sixteen timeouts apart.
        missed.used(&scenario, &outcome, s(17) + (rtt * 12).max(s(2)), rate, 0.95);
    });
}

#[test]
fn jitter_is_not_taken_for_congestion() {
    each_path(|rate, rtt, missed| {
        for loss in [0.0, 1.0] {
            let loss_model = LossModel::Random(Ratio::percent(loss));
            let scenario = Scenario { jitter: ms(20), loss: loss_model, queue_bdp: 2.0, ..Scenario::new(rate, rtt) };
            let outcome = scenario.run();
            // At 10 ms the delay varies by twice the round trip.
            let least = if rtt < ms(20) { 0.9 } else { 0.93 };
            missed.used(&scenario, &outcome, scenario.length / 2, rate.scaled(1.0 - loss / 100.0), least);
        }
    });
}

#[test]
fn acknowledgements_that_bunch_do_no_harm() {
    each_path(|rate, rtt, missed| {
        let scenario = Scenario { ack_hold: rtt / 5, ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        missed.used(&scenario, &outcome, scenario.length / 2, rate, 0.95);
        let queue = outcome.queue_p95(scenario.length / 2);
        missed.unless(queue <= rtt / 2, format!("{rate} {rtt:?}: {queue:?} in the queue"));
    });
}

#[test]
fn paths_that_are_neither_long_nor_fat() {
    let mut missed = Missed::default();
    for (rate, rtt, queue_bdp) in [
        (BitRate::gbps(20), Duration::from_micros(100), 16.0),
        (BitRate::gbps(1), Duration::from_micros(300), 4.0),
        (BitRate::mbps(10), ms(40), 1.0),
        (BitRate::mbps(1), ms(100), 4.0),
        (BitRate::mbps(2), ms(600), 1.0),
    ] {
        let scenario = Scenario { queue_bdp, ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        missed.used(&scenario, &outcome, scenario.length / 2, rate, 0.93);
        let (dropped, queue) = (outcome.dropped(), outcome.queue_p95(scenario.length / 2));
        missed.unless(dropped < 0.05, format!("{rate} {rtt:?}: dropped {dropped:.3}"));
        // Eight packets.
        let eight = rate.time_for(PACKET * 8);
        missed.unless(queue <= (rtt / 2).max(ms(25)).max(eight), format!("{rate} {rtt:?}: {queue:?} in the queue"));
    }
    assert!(missed.0.is_empty(), "\n{}", missed.0.join("\n"));
}

#[test]
fn loss_in_bursts_does_not_slow_it() {
    each_path(|rate, rtt, missed| {
        // Bursts are counted in packets: longer ones than a part of the pipe would be outages on the slowest path.
        let pipe_pkts = rate.bytes_in(rtt).0 as f64 / PACKET.0 as f64;
        for (percent, mean_pkts) in [(1.0, 20.0_f64.min(pipe_pkts / 10.0)), (2.0, 200.0_f64.min(pipe_pkts / 10.0))] {
            let loss = LossModel::Bursts { ratio: Ratio::percent(percent), mean_pkts };
            let scenario = Scenario { loss, ..Scenario::new(rate, rtt) };
            let outcome = scenario.run();
            missed.used(&scenario, &outcome, scenario.length / 2, rate.scaled(1.0 - percent / 100.0), 0.92);
        }
    });
}

#[test]
fn very_short_and_very_long_queues() {
    for (queue_bdp, most_dropped) in [(0.1, 0.04), (4.0, 0.02)] {
        each_path(|rate, rtt, missed| {
            let scenario = Scenario { queue_bdp, ..Scenario::new(rate, rtt) };
            let outcome = scenario.run();
            missed.used(&scenario, &outcome, scenario.length / 2, rate, 0.95);
            let (dropped, queue) = (outcome.dropped(), outcome.queue_p95(scenario.length / 2));
            missed.unless(dropped < most_dropped, format!("{rate} {rtt:?} queue {queue_bdp}: dropped {dropped:.3}"));
            missed.unless(queue <= rtt / 2, format!("{rate} {rtt:?} queue {queue_bdp}: {queue:?}"));
        });
    }
}

#[test]
fn marks_keep_the_queue_short() {
    each_path(|rate, rtt, missed| {
        let flows = vec![FlowPlan::bulk(ControllerChoice::Fair); 2];
        let scenario = Scenario { flows, queue_bdp: 4.0, mark_bdp: Some(0.1), length: s(40), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        let used: f64 = (0..2).map(|flow| outcome.rate(flow, s(20), s(40)).ratio_to(rate).as_f64()).sum();
        missed.unless(used >= 0.95, format!("{rate} {rtt:?}: {:.1} % used", used * 100.0));
        let queue = outcome.queue_p95(s(20));
        missed.unless(queue <= rtt.mul_f64(0.3), format!("{rate} {rtt:?}: {queue:?} in the queue"));
    });
}

#[test]
fn pauses_of_the_application_do_not_destroy_the_estimate() {
    each_path(|rate, rtt, missed| {
        let limited = Some((at(15), at(27), rate.scaled(0.05)));
        let flows = vec![FlowPlan { limited, ..FlowPlan::bulk(ControllerChoice::Fair) }];
        let scenario = Scenario { flows, length: s(35), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        missed.used(&scenario, &outcome, s(27) + rtt * 3, rate, 0.95);
    });
}

#[test]
fn a_longer_way_becomes_the_new_normal() {
    each_path(|rate, rtt, missed| {
        let changes = vec![(at(15), Change::Delay(rtt))];
        let scenario = Scenario { changes, length: s(45), ..Scenario::new(rate, rtt) };
        let outcome = scenario.run();
        // After twenty of the new round trips.
        missed.used(&scenario, &outcome, s(35), rate, if rtt < ms(500) { 0.95 } else { 0.9 });
    });
}

#[test]
fn fixed_sends_at_its_rate_whatever_is_lost() {
    let rate = BitRate::gbps(1);
    let flows = vec![FlowPlan::bulk(ControllerChoice::Fixed(rate.scaled(0.98)))];
    let loss = LossModel::Random(Ratio::percent(20.0));
    let scenario = Scenario { loss, flows, ..Scenario::new(rate, ms(200)) };
    let outcome = scenario.run();
    assert!(used(&outcome, s(1), scenario.length, rate) >= 0.98 * 0.79);
}

#[test]
fn cubic_fills_a_clean_path_and_yields_to_any_loss() {
    let flows = vec![FlowPlan::bulk(ControllerChoice::Cubic)];
    let clean = Scenario { flows, length: s(60), ..Scenario::new(BitRate::mbps(100), ms(50)) };
    assert!(used(&clean.run(), s(30), clean.length, clean.rate) >= 0.95);
    let lossy = Scenario { loss: LossModel::Random(Ratio::percent(1.0)), ..clean.clone() };
    assert!(used(&lossy.run(), s(30), lossy.length, lossy.rate) < 0.2);
}
