//! One flow over rates, round-trip times, queues and loss, for each controller.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::{Flow, Outcome, Path, Plan, Queue, TcpConfig, Topology};
use haul_units::{BitRate, Bytes};

use crate::golden::{compare, seed};
use crate::{Kind, measure};

#[test]
fn grid_fair() {
    grid("grid-fair.txt", |_| Kind::Haul(ControllerChoice::Fair), |percent, _| if percent >= 5.0 { 0.92 } else { 0.96 });
}

#[test]
fn grid_cubic() {
    grid("grid-cubic.txt", |_| Kind::Haul(ControllerChoice::Cubic), BY_RENO);
}

/// What the same links give a TCP.
#[test]
fn grid_tcp() {
    grid("grid-tcp-cubic.txt", |_| Kind::Tcp(TcpConfig::CUBIC), BY_RENO);
}

/// At 98 % of what the link carries: packets count without their 28 bytes of IP and UDP.
#[test]
fn grid_fixed() {
    grid("grid-fixed.txt", |rate| Kind::Haul(ControllerChoice::Fixed(rate.scaled(0.98 * 1472.0 / 1500.0))), |_, _| 0.979);
}

/// With loss CUBIC is to get a third of what Reno's law gives, sqrt(3 / 2p) packets a round trip (RFC 9438 4.3: it is never slower than Reno; the first half's
/// overshoot and timeouts are in it). Without loss, what a gigabit of 200 ms leaves of the second half is its start's.
const BY_RENO: fn(f64, f64) -> f64 =
    |percent, bdp_pkts| if percent > 0.0 { 0.33 * ((150.0 / percent).sqrt() / bdp_pkts).min(1.0) } else { 0.7 };

/// The table; each row is to use `least` of what arrives at best in the second half, by the loss in per cent and the packets that fill the path.
fn grid(name: &str, kind: impl Fn(BitRate) -> Kind, least: impl Fn(f64, f64) -> f64) {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for rate in [BitRate::mbps(100), BitRate::gbps(1)] {
        for rtt in [10, 100, 200].map(Duration::from_millis) {
            // Long enough for the slowest start and as much again.
            let length = if rate >= BitRate::gbps(1) { Duration::from_secs(2) + rtt * 12 } else { Duration::from_secs(12) };
            for queue in [0.25, 1.0] {
                for percent in [0.0, 0.1, 1.0, 5.0] {
                    let path = Path::new(rate, rtt).loss(percent / 100.0).queue(Queue::Bdp(queue));
                    let (row, used) = row(path, length, kind(rate), queue, percent);
                    let bdp_pkts = rate.bytes_in(rtt).as_u64() as f64 / 1500.0;
                    if used < least(percent, bdp_pkts) {
                        missed.push(row.clone());
                    }
                    table += &row;
                }
            }
        }
    }
    compare(name, &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.concat());
}

/// The row, and what arrived in the second half as a part of the best.
fn row(path: Path, length: Duration, kind: Kind, queue: f64, percent: f64) -> (String, f64) {
    let plan = Plan {
        name: "grid",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path },
        flows: Cow::Owned(vec![Flow::endless(kind, 0, 1)]),
        length,
        checks: &[],
    };
    let outcome = measure(&plan);
    let payload = if let Kind::Tcp(config) = kind { config.payload } else { PAYLOAD };
    let best = path.rate.scaled((1.0 - percent / 100.0) * payload.as_u64() as f64 / 1500.0);
    let whole = BitRate::of(outcome.received[0], outcome.length).ratio_to(best).as_f64();
    let used = outcome.rates[0].ratio_to(best).as_f64();
    let wait = outcome.queue_p95.as_secs_f64() / path.rtt.as_secs_f64();
    let mut text = String::new();
    writeln!(
        text,
        "{:>11} {:>4} ms {queue:>5.2} {percent:>4.1} % | {:>6.1} {:>6.1} {wait:>8.2} {:>8.2} {:>6}",
        path.rate.to_string(),
        path.rtt.as_millis(),
        whole * 100.0,
        used * 100.0,
        outcome.dropped * 100.0,
        start(&outcome, best, path.rtt),
    )
    .expect("a string takes anything");
    (text, used)
}

/// Round trips until 80 % of the best rate arrived over a round trip.
pub fn start(outcome: &Outcome, best: BitRate, rtt: Duration) -> String {
    let bins = (rtt.as_nanos() / outcome.bin.as_nanos()).max(1) as usize;
    let needed = best.scaled(0.8).bytes_in(outcome.bin * bins as u32).as_u64();
    let series = &outcome.series[0];
    let first = series.windows(bins).position(|window| window.iter().map(|bytes| bytes.as_u64()).sum::<u64>() >= needed);
    first.map_or("-".to_owned(), |first| {
        let at = outcome.bin * (first + bins) as u32;
        format!("{:.1}", at.as_secs_f64() / rtt.as_secs_f64())
    })
}

/// Payload of a full packet of 1500 bytes.
pub const PAYLOAD: Bytes = Bytes(1428);

const HEADER: &str = "\
# One flow from its handshake on, loss both ways. Arrived: part of the payload that rate x (1 - loss) carries, in per cent, whole run and
# second half. Queue: 95th percentile of the wait in the second half, in round trips. Dropped: by the queue in the second half, in per
# cent. Start: round trips until 80 % arrived over a round trip.
#      rate      rtt queue   loss |  whole   half    queue  dropped  start
";
