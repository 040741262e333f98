//! Bad weather: one flow of each controller on paths that burst, jitter, reorder, starve the way back, police, change and go away.
//!
//! The weather holds from the start, or changes in the second half, which is what is measured.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::{Back, Change, Flow, Outcome, Path, Plan, Queue, TcpConfig, TokenBucket, Topology};
use haul_units::{BitRate, Bytes};

use crate::golden::{compare, seed};
use crate::{Kind, measure};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const RATE: BitRate = BitRate::mbps(40);
const RTT: Duration = ms(100);
const LENGTH: Duration = secs(20);
const HALF: Duration = secs(10);
const PATH: Path = Path::new(RATE, RTT);

/// A path, and what is wrong with it.
struct Weather {
    name: &'static str,
    path: Path,
    /// When it has changed for good: from then on the flow is expected back at the rate of the path.
    over: Option<Duration>,
    /// What a mode is to use of what the path could carry.
    least: f64,
}

const fn always(name: &'static str, path: Path) -> Weather {
    Weather { name, path, over: None, least: 0.97 }
}

const fn until(over: u64, name: &'static str, least: f64, changes: &'static [(Duration, Change)]) -> Weather {
    Weather { name, path: Path { changes, ..PATH }, over: Some(secs(over)), least }
}

const WEATHERS: &[Weather] = &[
    always("nothing wrong", PATH),
    Weather { least: 0.9, ..always("loss of 2 % in bursts of 20", Path { loss: 0.02, burst_pkts: 20.0, ..PATH }) },
    always("jitter up to 20 ms", Path { jitter: ms(20), ..PATH }),
    always("1 % reordered by 12.5 ms", Path { reorder: 0.01, ..PATH }),
    always(
        "way back: 10 % lost, 1/100 of the rate",
        Path { back: Some(Back { rate: BitRate::from_bps(400_000), loss: 0.1 }), ..PATH },
    ),
    always("policed to half the rate", Path { policer: Some(POLICER), ..PATH }),
    always("queue of a tenth of a BDP", PATH.queue(Queue::Bytes(Bytes(50_000)))),
    until(14, "a tenth of the rate for 3 s", 0.7, &[(secs(11), Change::Rate(BitRate::mbps(4))), (secs(14), Change::Rate(RATE))]),
    until(12, "round-trip time doubled", 0.6, &[(secs(12), Change::Delay(ms(150)))]),
    until(16, "outage of 5 s", 0.7, &[(secs(11), Change::Down), (secs(16), Change::Up)]),
];

const POLICER: TokenBucket = TokenBucket { rate: BitRate::mbps(20), bucket: Bytes(250_000) };

#[test]
fn robustness() {
    let kinds: Vec<(String, Kind)> = ControllerChoice::NAMED
        .iter()
        .map(|choice| (choice.to_string(), Kind::Haul(*choice)))
        .chain([("TCP cubic".to_owned(), Kind::Tcp(TcpConfig::CUBIC))])
        .collect();
    let cases: Vec<(&Weather, &(String, Kind))> =
        WEATHERS.iter().flat_map(|weather| kinds.iter().map(move |kind| (weather, kind))).collect();
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for (Found { used, back, row }, (weather, (name, kind))) in rows(&cases).iter().zip(&cases) {
        if *name == kinds[0].0 {
            writeln!(table, "# {}", weather.name).expect("a string takes anything");
        }
        table += row;
        let mode = matches!(kind, Kind::Haul(choice) if MODES.contains(choice));
        if mode && (*used < weather.least || back.is_some_and(|back| back > LATEST_BACK)) {
            missed.push(format!("{} (at least {} %): {row}", weather.name, weather.least * 100.0));
        }
    }
    compare("robustness.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.concat());
}

/// None of these may collapse; what the named algorithms do is what they are known for.
const MODES: &[ControllerChoice] =
    &[ControllerChoice::Fair, ControllerChoice::Quickstart, ControllerChoice::Modest, ControllerChoice::Aggressive];

/// What came of a case.
struct Found {
    /// The part used of what the path could carry.
    used: f64,
    /// Seconds until it was back at the rate of a path that has changed for good; infinite where it was not.
    back: Option<f64>,
    row: String,
}

/// Of each case, in their order. Worked out by all processors.
fn rows(cases: &[(&Weather, &(String, Kind))]) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut mine = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((weather, (name, kind))) = cases.get(index) else { return mine };
            mine.push((index, row(weather, name, *kind)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a case has failed")).collect()
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, row)| row).collect()
}

fn row(weather: &Weather, name: &str, kind: Kind) -> Found {
    let plan = Plan {
        name: "robustness",
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path: weather.path },
        flows: Cow::Owned(vec![Flow::endless(kind, 0, 1)]),
        length: LENGTH,
        checks: &[],
    };
    let outcome = measure(&plan);
    let payload = if let Kind::Tcp(config) = kind { config.payload } else { PAYLOAD };
    let best = weather.best(payload);
    let arrived = arrived(&outcome);
    let used = arrived.iter().sum::<f64>() / best.iter().sum::<f64>();
    let least = arrived.iter().zip(&best).filter(|(_, best)| **best > 0.0).map(|(arrived, best)| arrived / best);
    let least = least.fold(f64::INFINITY, f64::min);
    let wait = outcome.queue_p95.as_secs_f64() * 1e3;
    let back = weather.over.map(|over| back(&outcome, over, best.last().copied().unwrap_or_default()));
    let told = match back {
        None => "-".to_owned(),
        Some(f64::INFINITY) => "never".to_owned(),
        Some(back) => format!("{back:.1}"),
    };
    let mut row = String::new();
    writeln!(
        row,
        "{name:>12} | {:>6.1} {:>6.1} {wait:>7.0} {:>8.2} {told:>6}",
        used * 100.0,
        least * 100.0,
        outcome.dropped * 100.0
    )
    .expect("a string takes anything");
    Found { used, back, row }
}

impl Weather {
    /// Payload that the path can carry in each second of the second half, in bits.
    fn best(&self, payload: Bytes) -> Vec<f64> {
        let Path { policer, loss, changes, .. } = self.path;
        let share = (1.0 - loss) * payload.as_u64() as f64 / 1500.0;
        let (mut rate, mut up) = (policer.map_or(RATE, |policer| policer.rate), true);
        let mut best = Vec::new();
        for second in HALF.as_secs()..LENGTH.as_secs() {
            for (_, change) in changes.iter().filter(|(at, _)| at.as_secs() == second) {
                match *change {
                    Change::Rate(changed) => rate = changed,
                    Change::Down | Change::Up => up = *change == Change::Up,
                    _ => {}
                }
            }
            best.push(if up { rate.as_bps() as f64 * share } else { 0.0 });
        }
        best
    }
}

/// Payload that arrived in each second of the second half, in bits.
fn arrived(outcome: &Outcome) -> Vec<f64> {
    let bins = (secs(1).as_nanos() / outcome.bin.as_nanos()) as usize;
    let seconds = outcome.series[0].chunks_exact(bins).skip(HALF.as_secs() as usize);
    seconds.map(|second| second.iter().map(|bytes| bytes.as_u64() as f64 * 8.0).sum()).collect()
}

/// Seconds until 80 % of the rate arrived over two round trips; infinite where that did not happen.
fn back(outcome: &Outcome, over: Duration, best_bps: f64) -> f64 {
    let window = RTT * 2;
    let bins = (window.as_nanos() / outcome.bin.as_nanos()) as usize;
    let first = (over.as_nanos() / outcome.bin.as_nanos()) as usize;
    let needed = 0.8 * best_bps * window.as_secs_f64() / 8.0;
    let enough = |window: &[Bytes]| window.iter().map(|bytes| bytes.as_u64() as f64).sum::<f64>() >= needed;
    let after = outcome.series[0].get(first..).unwrap_or_default();
    let position = after.windows(bins).position(enough);
    position.map_or(f64::INFINITY, |position| (outcome.bin * (position + bins) as u32).as_secs_f64())
}

/// Seconds after a change for good until a mode has 80 % of the rate.
const LATEST_BACK: f64 = 3.0;
/// Payload of a full packet of 1500 bytes.
const PAYLOAD: Bytes = Bytes(1428);

const HEADER: &str = "\
# One flow on 40 Mbit/s, 100 ms, a queue of 1 bandwidth-delay product, over 20 s; the second half counts, in which what changes does.
# Used: part of the payload that the path could carry, in per cent. Least: the same of the worst second, outages excepted. Queue: 95th
# percentile of the wait in ms. Dropped: by queue or policer, in per cent. Back: seconds until 80 % of the rate arrive after the change.
#            |   used  least   queue  dropped   back
";

/// At whatever moment the rate falls, and so whatever the controller is up to then, all of it is used again in the end.
#[test]
fn the_rate_is_found_again_whenever_it_fell() {
    let moments = (0..10).map(|k| ms(10_700 + 61 * k));
    let weathers: Vec<Weather> = moments
        .map(|fall| {
            // The changes of a path are constants.
            let changes = Box::leak(Box::new([(fall, Change::Rate(BitRate::mbps(4))), (fall + secs(3), Change::Rate(RATE))]));
            until(14, "a tenth of the rate for 3 s", 0.6, changes)
        })
        .collect();
    let modes: Vec<(String, Kind)> = MODES.iter().map(|choice| (choice.to_string(), Kind::Haul(*choice))).collect();
    let cases: Vec<(&Weather, &(String, Kind))> =
        weathers.iter().flat_map(|weather| modes.iter().map(move |mode| (weather, mode))).collect();
    let rows = rows(&cases);
    for found in &rows {
        print!("{}", found.row);
    }
    for Found { used, row, .. } in rows {
        assert!(used >= 0.6, "{HEADER}{row}");
    }
}
