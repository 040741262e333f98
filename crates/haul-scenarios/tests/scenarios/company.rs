//! Several paths of one connection: one flow to others where they share a bottleneck, all of their links where they do not.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice::{self, Aggressive, Balia, Cubic, Fair, Lia, Modest, Olia, Quickstart};
use haul_scenarios::{Kind, measure};
use haul_sim::{Change, Flow, LossModel, Path, Plan, Queue, TcpConfig, Topology, Ways};
use haul_units::BitRate;

use crate::golden::compare;

const RTT: Duration = Duration::from_millis(40);
const SHARED: Path = Path::new(BitRate::mbps(50), RTT);
const RIVALS: [(Kind, &str); 3] =
    [(Kind::Tcp(TcpConfig::CUBIC), "TCP cubic"), (Kind::Tcp(TcpConfig::BBR), "TCP bbr"), (Kind::Haul(Fair), "fair")];

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Mean payload rate of a connection of so many paths beside a flow that comes 5 s later, on one bottleneck, in Mbit/s.
fn beside(mode: ControllerChoice, paths: u16, rival: Kind) -> f64 {
    let rate = |seed| {
        let connection = Flow { ways: Ways::Hashed(paths), ..Flow::endless(Kind::Haul(mode), 0, 1) };
        let flows = vec![connection, Flow { start: secs(5), ..Flow::endless(rival, 0, 1) }];
        let topology = Topology::Dumbbell { pairs: 1, path: SHARED };
        let plan = Plan { name: "company", seed, topology, flows: Cow::Owned(flows), length: secs(60), checks: &[] };
        measure(&plan).rates[0].as_bps() as f64 / 1e6
    };
    SEEDS.into_iter().map(rate).sum::<f64>() / SEEDS.len() as f64
}

/// A mode, and what N of its paths take at least and at most beside others, as a part of what one takes. Of modest that is a part of 2 Mbit/s.
const ONE_FLOW: [(ControllerChoice, &[u16], f64, f64); 8] = [
    (Fair, &[2, 4, 8], 0.8, 1.25),
    (Quickstart, &[4], 0.8, 1.25),
    (Modest, &[4], 0.8, 1.4),
    (Aggressive, &[4], 0.8, 1.25),
    (Cubic, &[4], 0.7, 1.6),
    (Lia, &[2, 4], 0.7, 1.6),
    (Olia, &[4], 0.7, 1.6),
    (Balia, &[4], 0.7, 1.6),
];
/// Beside BBR a flow of fair needs more than this minute to hold its part (docs/controllers/fair.md), and one that has looked at other paths meanwhile is behind.
const LEAST_BESIDE_BBR: f64 = 0.7;

#[test]
fn paths_of_one_bottleneck_are_one_flow() {
    let mut table = String::from(ONE_HEADER);
    let mut missed = Vec::new();
    for (mode, counts, least, most) in ONE_FLOW {
        for (rival, name) in RIVALS {
            let one = beside(mode, 1, rival);
            let mut row = String::new();
            write!(row, "{:>10} beside {name:>9} | {one:>5.2}", mode.name()).expect("a string takes anything");
            let mut held = true;
            let least = if name == "TCP bbr" { LEAST_BESIDE_BBR } else { least };
            for &paths in counts {
                let part = beside(mode, paths, rival) / one;
                held &= (least..=most).contains(&part);
                write!(row, "  {paths}: {part:.2}").expect("a string takes anything");
            }
            println!("{row}");
            if !held {
                missed.push(row.clone());
            }
            table = table + &row + "\n";
        }
    }
    compare("company-one.txt", &table);
    assert!(missed.is_empty(), "\n{ONE_HEADER}{}", missed.join("\n"));
}

const fn link(mbps: u64, rtt_ms: u64) -> Path {
    Path::new(BitRate::mbps(mbps), Duration::from_millis(rtt_ms))
}

const TWO: &[Path] = &[link(50, 40), link(50, 40)];
const FOUR: &[Path] = &[link(100, 20), link(100, 20), link(100, 20), link(100, 20)];
const SHORT_QUEUES: &[Path] = &[link(100, 40).queue(Queue::Bdp(0.5)), link(100, 40).queue(Queue::Bdp(0.5))];
const UNEQUAL: &[Path] = &[link(200, 20), link(50, 60)];
const FAR: &[Path] = &[link(500, 20), link(500, 200)];
const LOSSY: &[Path] = &[link(50, 40), link(50, 40).loss(0.01)];

/// Links of their own, and the part of their sum that blocks are to get at least, in the second half of a minute.
const APART: [(&str, &[Path], ControllerChoice, f64); 9] = [
    ("2 x 50 Mbit/s 40 ms", TWO, Fair, 0.95),
    ("2 x 50 Mbit/s 40 ms", TWO, Cubic, 0.95),
    ("2 x 50 Mbit/s 40 ms", TWO, Lia, 0.90),
    ("4 x 100 Mbit/s 20 ms", FOUR, Fair, 0.95),
    ("2 x 100 Mbit/s 40 ms, half a queue", SHORT_QUEUES, Fair, 0.95),
    ("200 Mbit/s 20 ms, 50 Mbit/s 60 ms", UNEQUAL, Fair, 0.95),
    ("200 Mbit/s 20 ms, 50 Mbit/s 60 ms", UNEQUAL, Lia, 0.90),
    ("500 Mbit/s at 20 and 200 ms", FAR, Fair, 0.95),
    ("2 x 50 Mbit/s, 1 % lost on one", LOSSY, Fair, 0.95),
];

/// The same for an ordered stream, where what has come by the near link waits for what the far one brings.
const ORDERED: [(&str, &[Path], f64); 2] =
    [("200 Mbit/s 20 ms, 50 Mbit/s 60 ms", UNEQUAL, 0.90), ("500 Mbit/s at 20 and 200 ms", FAR, 0.90)];

/// As in tables.
fn title(kind: Kind) -> String {
    match kind {
        Kind::Haul(mode) => mode.name().to_owned(),
        Kind::Ordered(mode) => format!("{}, ordered", mode.name()),
        _ => "another".to_owned(),
    }
}

/// Mean payload rate in the second half of a minute of one flow over links of its own, in Mbit/s, seed by seed.
fn over(kind: Kind, paths: &'static [Path], seeds: &[u64]) -> Vec<f64> {
    let rate = |seed: &u64| {
        let flow = Flow { ways: Ways::Apart(paths.len() as u16), ..Flow::endless(kind, 0, 1) };
        let topology = Topology::Parallel { pairs: 1, paths };
        let plan = Plan { name: "apart", seed: *seed, topology, flows: Cow::Owned(vec![flow]), length: secs(60), checks: &[] };
        measure(&plan).rates[0].as_bps() as f64 / 1e6
    };
    seeds.iter().map(rate).collect()
}

const SLOW: &[Path] = &[link(12, 20), link(1, 40).queue(Queue::Bdp(25.0))];

/// 12 Mbit/s, and 1 Mbit/s with a queue of a second: never below the 12 alone.
#[test]
fn a_slow_link_lowers_nothing() {
    let mut table = String::from(SLOW_HEADER);
    let mut missed = Vec::new();
    for kind in [Kind::Haul(Fair), Kind::Ordered(Fair), Kind::Haul(Lia), Kind::Ordered(Lia)] {
        let (alone, both) = (over(kind, &SLOW[..1], &SEEDS), over(kind, SLOW, &SEEDS));
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let worst = both.iter().zip(&alone).map(|(both, alone)| both / alone).fold(f64::INFINITY, f64::min);
        let row = format!("{:>13} | {:>5.2} {:>5.2} {worst:>6.2}", title(kind), mean(&alone), mean(&both));
        println!("{row}");
        if worst < 1.0 {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("company-slow.txt", &table);
    assert!(missed.is_empty(), "\n{SLOW_HEADER}{}", missed.join("\n"));
}

#[test]
fn links_of_their_own_add_up() {
    let mut table = String::from(APART_HEADER);
    let mut missed = Vec::new();
    for (name, paths, mode, least) in APART {
        let (mean, worst) = part_of_the_sum(Kind::Haul(mode), paths);
        let row = format!("{name:>35} {:>6} | {:>5.1} {:>5.1}", mode.name(), mean * 100.0, worst * 100.0);
        println!("{row}");
        if mean < least {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("company-apart.txt", &table);
    assert!(missed.is_empty(), "\n{APART_HEADER}{}", missed.join("\n"));
}

#[test]
fn an_ordered_stream_has_links_of_their_own_too() {
    let mut table = String::from(ORDERED_HEADER);
    let mut missed = Vec::new();
    for (name, paths, least) in ORDERED {
        let (mean, worst) = part_of_the_sum(Kind::Ordered(Fair), paths);
        let row = format!("{name:>35} | {:>5.1} {:>5.1}", mean * 100.0, worst * 100.0);
        println!("{row}");
        if mean < least {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("company-ordered.txt", &table);
    assert!(missed.is_empty(), "\n{ORDERED_HEADER}{}", missed.join("\n"));
}

/// Of what all links carry together: mean and least over the seeds. A gigabit of a minute is simulated once.
fn part_of_the_sum(kind: Kind, paths: &'static [Path]) -> (f64, f64) {
    let sum: f64 = paths.iter().map(|path| path.rate.as_bps() as f64).sum();
    let seeds = if sum < 5e8 { &SEEDS[..] } else { &SEEDS[..1] };
    let rates: Vec<f64> = over(kind, paths, seeds).into_iter().map(|mbps| mbps * 1e6 / sum / PAYLOAD).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (mean, rates.iter().fold(1.0_f64, |least, rate| least.min(*rate)))
}

/// One link with another flow on it and one of its own: half of the first and all of the second.
#[test]
fn one_shared_link_and_one_of_its_own() {
    let mut table = String::from(PRIVATE_HEADER);
    let mut missed = Vec::new();
    for (rival, name) in RIVALS {
        let rates = |ways: Ways, paths: &'static [Path]| {
            let all = SEEDS.map(|seed| {
                let flow = Flow { ways, ..Flow::endless(Kind::Haul(Fair), 0, 1) };
                let flows = vec![flow, Flow { start: secs(5), ways: Ways::Only(0), ..Flow::endless(rival, 0, 1) }];
                let topology = Topology::Parallel { pairs: 1, paths };
                let plan = Plan { name: "private", seed, topology, flows: Cow::Owned(flows), length: secs(60), checks: &[] };
                let outcome = measure(&plan);
                [outcome.rates[0].as_bps() as f64 / 1e6, outcome.rates[1].as_bps() as f64 / 1e6]
            });
            [0, 1].map(|flow| all.iter().map(|rates| rates[flow]).sum::<f64>() / all.len() as f64)
        };
        let one = rates(Ways::Only(0), &TWO[..1]);
        let two = rates(Ways::Apart(2), TWO);
        let gained = two[0] - one[0];
        let row = format!(
            "{name:>9} | alone on the shared link {:>5.2} : {:>5.2}, with the other {:>5.2} : {:>5.2}",
            one[0], one[1], two[0], two[1]
        );
        println!("{row}");
        // The other link's worth of payload, and what the rival is left with.
        if gained < 0.85 * 50.0 * PAYLOAD || two[1] < 0.8 * one[1] {
            missed.push(row.clone());
        }
        table = table + &row + "\n";
    }
    compare("company-private.txt", &table);
    assert!(missed.is_empty(), "\n{PRIVATE_HEADER}{}", missed.join("\n"));
}

/// The second link, which is the first path's where the seed says so, dies before further paths carry anything, carries from the 8th second on, is dead again from the 20th to the 32nd, and then carries again.
const COMES_AND_GOES: &[Path] = &[link(50, 40), Path { changes: CHANGES, ..link(50, 40) }];
const CHANGES: &[(Duration, Change)] = &[
    (Duration::from_millis(200), Change::Loss(LossModel::All)),
    (secs(8), Change::Loss(LossModel::None)),
    (secs(20), Change::Loss(LossModel::All)),
    (secs(32), Change::Loss(LossModel::None)),
];
/// Seconds, and the least of one link's payload that is carried in each of them.
const STRETCHES: [(usize, usize, f64); 5] = [(2, 8, 0.95), (14, 20, 1.8), (20, 22, 0.8), (23, 32, 0.95), (44, 60, 1.8)];

#[test]
fn a_path_that_joins_late_goes_and_comes_back() {
    let mut table = String::from(COMES_HEADER);
    let mut missed = Vec::new();
    for seed in SEEDS {
        let flow = Flow { ways: Ways::Apart(2), ..Flow::endless(Kind::Haul(Fair), 0, 1) };
        let topology = Topology::Parallel { pairs: 1, paths: COMES_AND_GOES };
        let plan = Plan { name: "comes", seed, topology, flows: Cow::Owned(vec![flow]), length: secs(60), checks: &[] };
        let outcome = measure(&plan);
        let bins = (1.0 / outcome.bin.as_secs_f64()).round() as usize;
        let mut row = format!("seed {seed} |");
        for (from, to, least) in STRETCHES {
            let bytes: u64 = outcome.series[0].iter().take(to * bins).skip(from * bins).map(|bytes| bytes.as_u64()).sum();
            let links = bytes as f64 * 8.0 / (to - from) as f64 / (50e6 * PAYLOAD);
            write!(row, "  {from:>2}-{to:>2} s {links:.2}").expect("a string takes anything");
            if links < least {
                missed.push(format!("seed {seed}, {from} to {to} s: {links:.2} links, not {least}"));
            }
        }
        let longest = outcome.series[0].split(|bytes| bytes.as_u64() > 0).map(<[_]>::len).max().unwrap_or(0);
        writeln!(row, "  longest pause {:.2} s", longest as f64 / bins as f64).expect("a string takes anything");
        print!("{row}");
        table += &row;
    }
    compare("company-comes.txt", &table);
    assert!(missed.is_empty(), "{missed:?}");
}

/// Of a packet of 1472 bytes and its headers, what the application gave.
const PAYLOAD: f64 = 1428.0 / 1500.0;
const SEEDS: [u64; 3] = [1, 2, 3];
const ONE_HEADER: &str = "\
# A connection of N paths beside a flow that comes 5 s later, on 50 Mbit/s, 40 ms, a queue of 1 product; second half of 60 s, mean of 3 seeds.
# One: Mbit/s with one path. N: what N paths take as a part of that.
#                           |   one   N
";
const APART_HEADER: &str = "\
# One connection with a path on each of several links; second half of 60 s, part of the sum of all links in per cent: mean and least of 3 seeds (above 500 Mbit/s of one).
#                             links   mode |  mean least
";
const ORDERED_HEADER: &str = "\
# fair on one ordered stream, with a path on each of two links; second half of 60 s, part of the sum of both in per cent: mean and least of 3 seeds (above 500 Mbit/s of one).
#                             links |  mean least
";
const SLOW_HEADER: &str = "\
# One connection on 12 Mbit/s, 20 ms, alone, and with a second path on 1 Mbit/s, 40 ms and a second of queue; second half of 60 s, Mbit/s, mean of 3 seeds, and the least part of the first that the second was.
#        mode | alone  both  least
";
const COMES_HEADER: &str = "\
# fair with a path on each of two links of 50 Mbit/s, 40 ms. One of them is dead until the 8th second and from the 20th to the 32nd: what is carried, in links.
";
const PRIVATE_HEADER: &str = "\
# fair with a path on a link of 50 Mbit/s, 40 ms, that another flow is on, and one on a link like it of its own: Mbit/s of both flows, second half of 60 s, mean of 3 seeds.
";
