//! The named algorithms: each has a table of its own, alone on paths that lose, change and break, and with others.
//!
//! What an algorithm cannot do by its nature is in its table, and on its page below `docs/controllers`, not hidden.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::{Change, Flow, Outcome, Path, Plan, Queue, TcpConfig, Topology};
use haul_units::BitRate;

use crate::golden::{compare, seed};
use crate::grid::{PAYLOAD, start};
use crate::{Kind, measure};

const RATE: BitRate = BitRate::mbps(100);
const RTT: Duration = Duration::from_millis(50);

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn named_reno() {
    table(ControllerChoice::Reno, 0.9, 0.7);
}

#[test]
fn named_cubic() {
    table(ControllerChoice::Cubic, 0.95, 0.85);
}

#[test]
fn named_highspeed() {
    table(ControllerChoice::HighSpeed, 0.95, 0.8);
}

/// Shares become equal slowly: who has more gains more.
#[test]
fn named_scalable() {
    table(ControllerChoice::Scalable, 0.7, 0.9);
}

#[test]
fn named_bic() {
    table(ControllerChoice::Bic, 0.95, 0.9);
}

#[test]
fn named_fast() {
    table(ControllerChoice::Fast, 0.95, 0.9);
}

#[test]
fn named_udt() {
    table(ControllerChoice::Udt, 0.95, 0.8);
}

#[test]
fn named_bbr() {
    table(ControllerChoice::Bbr, 0.9, 0.9);
}

/// It backs off from what it takes for others' queue: a short queue, a higher rate and an outage keep it low for long.
#[test]
fn named_ledbat() {
    table(ControllerChoice::Ledbat, 0.95, 0.4);
}

/// The table of an algorithm, and what must hold of it: a clean path is filled, a broken one used as claimed in the second half, and two flows that started 5 s apart
/// are as fair as claimed.
fn table(choice: ControllerChoice, least_jain: f64, least_broken: f64) {
    let mut text = format!("# {choice}{HEADER}");
    let mut missed = Vec::new();
    for rtt in [20, 100, 200].map(Duration::from_millis) {
        for percent in [0.0, 0.01, 0.1, 1.0] {
            let outcome = alone(choice, Path::new(RATE, rtt).loss(percent / 100.0), secs(20));
            text += &row(&format!("{} ms, {percent} % lost", rtt.as_millis()), &outcome, RATE.scaled(1.0 - percent / 100.0), rtt);
            let used = outcome.rates[0].ratio_to(best(RATE)).as_f64();
            if percent == 0.0 && used < LEAST_CLEAN {
                missed.push(format!("{rtt:?}: {used:.2}"));
            }
        }
    }
    for (name, path, end_rate) in BROKEN {
        let outcome = alone(choice, *path, secs(60));
        let used = outcome.rates[0].ratio_to(best(*end_rate)).as_f64();
        text += &row(name, &outcome, *end_rate, RTT);
        if used < least_broken {
            missed.push(format!("{name}: {used:.2}"));
        }
    }
    text += SHARING_HEADER;
    let (own, tcp) = (Kind::Haul(choice), Kind::Tcp(TcpConfig::CUBIC));
    for (name, kinds) in [("two, 5 s apart", [own; 2]), ("TCP cubic, then it", [tcp, own]), ("it, then TCP cubic", [own, tcp])] {
        let outcome = shared(&kinds);
        text += &sharing_row(name, &outcome);
        if name.starts_with("two") && outcome.jain() < least_jain {
            missed.push(format!("Jain's index {:.3}", outcome.jain()));
        }
    }
    println!("{text}");
    compare(&format!("named-{choice}.txt"), &text);
    assert!(missed.is_empty(), "{missed:?}");
}

fn alone(choice: ControllerChoice, path: Path, length: Duration) -> Outcome {
    measure(&Plan {
        name: "named",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path },
        flows: Cow::Owned(vec![Flow::endless(Kind::Haul(choice), 0, 1)]),
        length,
        checks: &[],
    })
}

fn shared(kinds: &[Kind]) -> Outcome {
    let flow = |(n, kind): (usize, &Kind)| Flow { start: secs(5) * n as u32, ..Flow::endless(*kind, 0, 1) };
    measure(&Plan {
        name: "named",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path: Path::new(RATE, RTT) },
        flows: Cow::Owned(kinds.iter().enumerate().map(flow).collect()),
        length: secs(120),
        checks: &[],
    })
}

/// The payload that a rate carries.
fn best(rate: BitRate) -> BitRate {
    rate.scaled(PAYLOAD.as_u64() as f64 / 1500.0)
}

fn row(name: &str, outcome: &Outcome, rate: BitRate, rtt: Duration) -> String {
    let best = best(rate);
    let mut text = String::new();
    writeln!(
        text,
        "{name:>24} | {:>6.1} {:>6.1} {:>6.2} {:>8.2} {:>6}",
        BitRate::of(outcome.received[0], outcome.length).ratio_to(best).as_f64() * 100.0,
        outcome.rates[0].ratio_to(best).as_f64() * 100.0,
        outcome.queue_p95.as_secs_f64() / rtt.as_secs_f64(),
        outcome.dropped * 100.0,
        start(outcome, best, rtt),
    )
    .expect("a string takes anything");
    text
}

fn sharing_row(name: &str, outcome: &Outcome) -> String {
    let each: Vec<String> = (0..2).map(|flow| format!("{:.0}", outcome.share(flow) * 100.0)).collect();
    format!(
        "{name:>24} | {:>6.3} {:>6.1} {:>6.2} {:>8.2}  {}\n",
        outcome.jain(),
        outcome.utilisation * 100.0,
        outcome.queue_p95.as_secs_f64() / RTT.as_secs_f64(),
        outcome.dropped * 100.0,
        each.join(" ")
    )
}

/// Paths that break and change in the first half of a minute, with the rate they have in the second. The shortest queue is no break, but
/// what loss-based control fares worst with.
const BROKEN: &[(&str, Path, BitRate)] = &[
    ("queue of a tenth", Path::new(RATE, RTT).queue(Queue::Bdp(0.1)), RATE),
    ("outage of 5 s", Path { changes: &[(secs(8), Change::Down), (secs(13), Change::Up)], ..Path::new(RATE, RTT) }, RATE),
    (
        "a tenth of the rate",
        Path { changes: &[(secs(8), Change::Rate(BitRate::mbps(10)))], ..Path::new(RATE, RTT) },
        BitRate::mbps(10),
    ),
    (
        "ten times the rate",
        Path {
            changes: &[(Duration::from_millis(1), Change::Rate(BitRate::mbps(10))), (secs(8), Change::Rate(RATE))],
            ..Path::new(RATE, RTT)
        },
        RATE,
    ),
];

/// UDT still probes at 100 ms; all others use 89 % and more.
const LEAST_CLEAN: f64 = 0.8;

const HEADER: &str = ": one flow on 100 Mbit/s from its handshake on, loss both ways, a queue of one bandwidth-delay product; broken paths have 50 ms and
# break within the first half. Arrived: part of the payload that rate x (1 - loss) carries, in per cent, whole run and second half.
# Queue: 95th percentile of the wait in the second half, in round trips. Dropped: by the queue in the second half, in per cent. Start:
# round trips until 80 % arrived over a round trip.
#                        |  whole   half  queue  dropped  start
";
const SHARING_HEADER: &str = "\
# With another flow, 50 ms, over two minutes; the second counts. Jain: index of fairness. Each: share in per cent, in order of start.
#                        |   jain   used  queue  dropped  each
";
