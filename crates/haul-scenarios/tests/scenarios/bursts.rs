//! What is sent without pacing, and what it does to others.

use std::borrow::Cow;
use std::time::Duration;

use haul_cc::ControllerChoice::Cubic;
use haul_scenarios::{Kind, measure_constant};
use haul_sim::{CbrConfig, CbrMeter, Flow, Outcome, Path, Plan, Queue, Topology};
use haul_units::{BitRate, Bytes};

/// A flow beside a constant one, through a switch with 8 ms of memory.
fn beside_constant(kind: Kind) -> (Outcome, CbrMeter) {
    let rate = BitRate::mbps(100);
    let path = Path::new(rate, Duration::from_millis(100)).queue(Queue::Bytes(Bytes(100_000)));
    let constant = Kind::Cbr(CbrConfig::new(BitRate::mbps(20)));
    let plan = Plan {
        name: "bursts",
        seed: 1,
        topology: Topology::Dumbbell { pairs: 1, path },
        flows: Cow::Owned(vec![Flow::endless(kind, 0, 1), Flow::endless(constant, 0, 1)]),
        length: Duration::from_secs(20),
        checks: &[],
    };
    let (outcome, mut meters) = measure_constant(&plan);
    let meter = meters.pop().flatten().expect("the second flow is constant");
    (outcome, meter)
}

/// Bursts overflow a queue that a paced flow of the same window fits into.
#[test]
fn pacing_is_worth_its_timers() {
    let (paced, _) = beside_constant(Kind::Haul(Cubic));
    let (unpaced, beside) = beside_constant(Kind::Unpaced(Cubic));
    assert!(unpaced.rates[0].as_bps() * 10 < paced.rates[0].as_bps() * 9, "{:?} without, {:?} with", unpaced.rates, paced.rates);
    // The constant flow got through all the same.
    assert!(beside.received_pkts() > 30_000, "{}", beside.received_pkts());
}

/// A flow at a rate that fits does nothing to the constant one.
#[test]
fn a_paced_flow_that_leaves_room_is_not_felt() {
    let (_, beside) = beside_constant(Kind::Haul(haul_cc::ControllerChoice::Fixed(BitRate::mbps(70))));
    assert!(
        beside.loss() < 1e-9 && beside.mean_jitter() < Duration::from_millis(1),
        "{} {:?}",
        beside.loss(),
        beside.mean_jitter()
    );
}
