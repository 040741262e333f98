//! Paths whose round trip takes less than the pacer waits between two trains: nothing is in flight then, and that is no pause.

use std::borrow::Cow;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::{Kind, measure};
use haul_sim::{Change, Flow, Outcome, Path, Plan, Queue, Topology};
use haul_units::{BitRate, Bytes};

use crate::golden::seed;

const FALL: Duration = Duration::from_secs(1);
const RISE: Duration = Duration::from_millis(2_500);
const LENGTH: Duration = Duration::from_secs(6);
/// Over which 80 % of the rate are to arrive.
const OVER: Duration = Duration::from_millis(100);
/// Payload of a full packet of 1500 bytes.
const PAYLOAD: f64 = 1428.0;

/// The rate of the path falls to a hundredth and is as it was after 1.5 s.
fn outcome(choice: ControllerChoice, rate: BitRate, rtt: Duration) -> Outcome {
    let low = BitRate::from_bps(rate.as_bps() / 100);
    let changes = Box::leak(Box::new([(FALL, Change::Rate(low)), (RISE, Change::Rate(rate))]));
    let queue = Queue::Bytes(rate.bytes_in(rtt).max(Bytes(150_000)));
    let plan = Plan {
        name: "short",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path: Path { changes, ..Path::new(rate, rtt).queue(queue) } },
        flows: Cow::Owned(vec![Flow::endless(Kind::Haul(choice), 0, 1)]),
        length: LENGTH,
        checks: &[],
    };
    measure(&plan)
}

/// Seconds from the rise of the rate on until 80 % of it arrive; infinite where that does not happen.
fn back(outcome: &Outcome, rate: BitRate) -> f64 {
    let bins = |time: Duration| (time.as_nanos() / outcome.bin.as_nanos()) as usize;
    let enough = 0.8 * rate.as_bps() as f64 * (PAYLOAD / 1500.0) * OVER.as_secs_f64() / 8.0;
    let after = outcome.series[0].get(bins(RISE)..).unwrap_or_default();
    let position =
        after.windows(bins(OVER)).position(|window| window.iter().map(|bytes| bytes.as_u64() as f64).sum::<f64>() >= enough);
    position.map_or(f64::INFINITY, |position| (outcome.bin * position as u32 + OVER).as_secs_f64())
}

#[test]
fn the_rate_is_found_again_where_round_trips_are_short() {
    let mut missed = Vec::new();
    for choice in [ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Modest, ControllerChoice::Aggressive] {
        for rate in [BitRate::mbps(100), BitRate::gbps(1)] {
            for rtt in [50, 100, 250, 1_000, 4_000].map(Duration::from_micros) {
                let outcome = outcome(choice, rate, rtt);
                let seconds = back(&outcome, rate);
                println!("{choice:?} {rate} {rtt:?}: {seconds:.2} s");
                if seconds > LATEST {
                    missed.push(format!("{choice:?} {rate} {rtt:?}: {seconds:.2} s"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// Seconds until a rate that was a hundredth is found again.
const LATEST: f64 = 2.5;

/// What a transfer takes of a path that is its own, as a part of what the line takes and the handshake.
fn times_as_long(choice: ControllerChoice, rate: BitRate, rtt: Duration, size: Bytes) -> f64 {
    let queue = Queue::Bytes(rate.bytes_in(rtt).max(Bytes(150_000)));
    let plan = Plan {
        name: "short",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path: Path::new(rate, rtt).queue(queue) },
        flows: Cow::Owned(vec![Flow::bulk(Kind::Haul(choice), 0, 1, size)]),
        length: LENGTH,
        checks: &[],
    };
    let took = measure(&plan).completed[0].map_or(f64::INFINITY, |took| took.as_secs_f64());
    let ideal = size.as_u64() as f64 * 8.0 / rate.as_bps() as f64 * (1500.0 / PAYLOAD) + rtt.as_secs_f64() * HANDSHAKE_RTTS;
    took / ideal
}

#[test]
fn a_transfer_among_neighbours_has_the_line_from_the_start() {
    let mut missed = Vec::new();
    for choice in [ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Modest, ControllerChoice::Aggressive] {
        for (rate, rtt_us) in [(100, 100), (100, 500), (100, 2_000), (1_000, 50), (1_000, 250), (1_000, 1_000)] {
            let (rate, rtt) = (BitRate::mbps(rate), Duration::from_micros(rtt_us));
            let times = times_as_long(choice, rate, rtt, Bytes(10_000_000));
            println!("{choice:?} {rate} {rtt:?}: {times:.3} times as long as the line takes");
            if times > LONGEST {
                missed.push(format!("{choice:?} {rate} {rtt:?}: {times:.3}"));
            }
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

/// Two round trips with a cookie, and half a one until the first byte is there.
const HANDSHAKE_RTTS: f64 = 2.5;
/// Times as long as the line takes for 10 MB.
const LONGEST: f64 = 1.05;
