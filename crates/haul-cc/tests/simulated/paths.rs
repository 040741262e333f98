//! One flow on paths that change, jitter, lose in bursts or go away, and with an application that pauses.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::LossModel;
use haul_units::{BitRate, Ratio, Time};

use crate::flow::FlowPlan;
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

#[track_caller]
fn assert_used(outcome: &Outcome, from: Duration, to: Duration, of: BitRate, least: f64) {
    let used = used(outcome, from, to, of);
    assert!(used >= least, "{:.1} % of {of} from {from:?} to {to:?}, dropped {:.2} %", used * 100.0, outcome.dropped() * 100.0);
}

/// The rates and round-trip times that most tests run at.
fn each_path(mut test: impl FnMut(BitRate, Duration)) {
    for rate in [BitRate::mbps(100), BitRate::gbps(1), BitRate::gbps(10)] {
        for rtt in [ms(10), ms(100), ms(500)] {
            test(rate, rtt);
        }
    }
}

#[test]
fn a_rate_that_falls_to_a_tenth_is_followed() {
    each_path(|rate, rtt| {
        let slow = rate.scaled(0.1);
        let changes = vec![(at(15), Change::Rate(slow))];
        let outcome = Scenario { changes, length: s(40), ..Scenario::new(rate, rtt) }.run();
        assert_used(&outcome, s(25), s(40), slow, 0.97);
        // The queue is ten times as long in time; it must not stay full.
        assert!(outcome.queue_p95(s(30)) <= rtt, "{rate} {rtt:?}: {:?}", outcome.queue_p95(s(30)));
    });
}

#[test]
fn a_rate_that_grows_tenfold_is_found() {
    each_path(|rate, rtt| {
        let changes = vec![(Time::ZERO, Change::Rate(rate.scaled(0.1))), (at(15), Change::Rate(rate))];
        let outcome = Scenario { changes, length: s(45), ..Scenario::new(rate, rtt) }.run();
        assert_used(&outcome, s(30), s(45), rate, 0.95);
    });
}

#[test]
fn an_outage_of_two_seconds_is_recovered_from() {
    each_path(|rate, rtt| {
        let changes = vec![(at(15), Change::Loss(LossModel::All)), (at(17), Change::Loss(LossModel::None))];
        let outcome = Scenario { changes, length: s(35), ..Scenario::new(rate, rtt) }.run();
        // Probes are up to sixteen timeouts apart.
        assert_used(&outcome, s(17) + (rtt * 12).max(s(2)), s(35), rate, 0.95);
    });
}

#[test]
fn jitter_is_not_taken_for_congestion() {
    each_path(|rate, rtt| {
        for loss in [0.0, 1.0] {
            let loss_model = LossModel::Random(Ratio::percent(loss));
            let outcome = Scenario { jitter: ms(20), loss: loss_model, queue_bdp: 2.0, ..Scenario::new(rate, rtt) }.run();
            let length = s(10) + rtt * 50;
            assert_used(&outcome, length / 2, length, rate.scaled(1.0 - loss / 100.0), 0.93);
        }
    });
}

#[test]
fn loss_in_bursts_does_not_slow_it() {
    each_path(|rate, rtt| {
        for (percent, mean_pkts) in [(1.0, 20.0), (2.0, 200.0)] {
            let loss = LossModel::Bursts { ratio: Ratio::percent(percent), mean_pkts };
            let outcome = Scenario { loss, ..Scenario::new(rate, rtt) }.run();
            let length = s(10) + rtt * 50;
            assert_used(&outcome, length / 2, length, rate.scaled(1.0 - percent / 100.0), 0.92);
        }
    });
}

#[test]
fn very_short_and_very_long_queues() {
    for (queue_bdp, most_dropped) in [(0.1, 0.04), (4.0, 0.02)] {
        each_path(|rate, rtt| {
            let scenario = Scenario { queue_bdp, ..Scenario::new(rate, rtt) };
            let outcome = scenario.run();
            assert_used(&outcome, scenario.length / 2, scenario.length, rate, 0.95);
            assert!(outcome.dropped() < most_dropped, "{rate} {rtt:?} {queue_bdp}: {:.3}", outcome.dropped());
            assert!(outcome.queue_p95(scenario.length / 2) <= rtt / 2);
        });
    }
}

#[test]
fn pauses_of_the_application_do_not_destroy_the_estimate() {
    each_path(|rate, rtt| {
        let limited = Some((at(15), at(27), rate.scaled(0.05)));
        let flows = vec![FlowPlan { limited, ..FlowPlan::bulk(ControllerChoice::Lfn) }];
        let outcome = Scenario { flows, length: s(35), ..Scenario::new(rate, rtt) }.run();
        assert_used(&outcome, s(27) + rtt * 3, s(35), rate, 0.95);
    });
}

#[test]
fn a_longer_way_becomes_the_new_normal() {
    each_path(|rate, rtt| {
        let changes = vec![(at(15), Change::Delay(rtt))];
        let outcome = Scenario { changes, length: s(45), ..Scenario::new(rate, rtt) }.run();
        assert_used(&outcome, s(35), s(45), rate, 0.95);
    });
}

#[test]
fn fixed_sends_at_its_rate_whatever_is_lost() {
    let rate = BitRate::gbps(1);
    let flows = vec![FlowPlan::bulk(ControllerChoice::Fixed(rate.scaled(0.98)))];
    let loss = LossModel::Random(Ratio::percent(20.0));
    let outcome = Scenario { flows, loss, ..Scenario::new(rate, ms(200)) }.run();
    assert_used(&outcome, s(1), s(20), rate, 0.98 * 0.79);
}

#[test]
fn cubic_fills_a_clean_path_and_yields_to_any_loss() {
    let flows = vec![FlowPlan::bulk(ControllerChoice::Cubic)];
    let clean = Scenario { flows, length: s(60), ..Scenario::new(BitRate::mbps(100), ms(50)) };
    assert_used(&clean.run(), s(30), s(60), clean.rate, 0.95);
    let lossy = Scenario { loss: LossModel::Random(Ratio::percent(1.0)), ..clean.clone() };
    assert!(used(&lossy.run(), s(30), s(60), lossy.rate) < 0.2);
}
