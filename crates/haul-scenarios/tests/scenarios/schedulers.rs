//! How soon something is over that goes by two paths, by the scheduler: each with links of its own.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice::Fair;
use haul_proto::Scheduler;
use haul_scenarios::{Kind, measure};
use haul_sim::{Flow, Path, Plan, Queue, Topology, Ways};
use haul_units::{BitRate, Bytes};

use crate::golden::compare;

const fn link(mbps: u64, rtt_ms: u64) -> Path {
    Path::new(BitRate::mbps(mbps), Duration::from_millis(rtt_ms))
}

/// What goes by which links, as blocks or as one ordered stream. Which of the links the connection begins on is the seed's to say.
const CASES: [(&str, &[Path], bool); 6] = [
    ("2 x 50 Mbit/s 40 ms", &[link(50, 40), link(50, 40)], false),
    ("2 x 50 Mbit/s 40 ms, 1 % lost", &[LOSSY, LOSSY], false),
    ("100 Mbit/s at 20 and 200 ms", &[link(100, 20), link(100, 200)], false),
    ("100 Mbit/s at 20 and 200 ms", &[link(100, 20), link(100, 200)], true),
    ("12 Mbit/s 20 ms, 1 Mbit/s 40 ms, 1 s", &[link(12, 20), link(1, 40).queue(Queue::Bdp(25.0))], false),
    ("12 Mbit/s 20 ms, 1 Mbit/s 40 ms, 1 s", &[link(12, 20), link(1, 40).queue(Queue::Bdp(25.0))], true),
];
const LOSSY: Path = link(50, 40).loss(0.01);
/// Short, where the end is a good part of all, and long.
const SIZES: [(&str, u64); 2] = [("5 MB", 5_000_000), ("20 MB", 20_000_000)];
const SEEDS: std::ops::Range<u64> = 1..5;

/// Seconds until all has arrived, mean over the seeds.
fn seconds(scheduler: Scheduler, ordered: bool, paths: &'static [Path], size: u64) -> f64 {
    let took = |seed| {
        let kind = Kind::Scheduled { controller: Fair, scheduler, ordered };
        let flow = Flow { ways: Ways::Apart(paths.len() as u16), size: Some(Bytes(size)), ..Flow::endless(kind, 0, 1) };
        let topology = Topology::Parallel { pairs: 1, paths };
        let length = Duration::from_secs(120);
        let plan = Plan { name: "scheduler", seed, topology, flows: Cow::Owned(vec![flow]), length, checks: &[] };
        measure(&plan).completed[0].expect("two minutes are enough").as_secs_f64()
    };
    SEEDS.map(took).sum::<f64>() / SEEDS.count() as f64
}

#[test]
fn the_default_ends_first() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    for (name, paths, ordered) in CASES {
        for (size_name, size) in SIZES {
            let all = Scheduler::ALL.map(|scheduler| seconds(scheduler, ordered, paths, size));
            let kind = if ordered { "ordered" } else { "blocks" };
            let mut row = format!("{name:>36} {kind:>7} {size_name:>6} |");
            for seconds in all {
                write!(row, " {seconds:>12.3}").expect("a string takes anything");
            }
            println!("{row}");
            if all[1..].iter().any(|other| all[0] > other * SOONER) {
                missed.push(row.clone());
            }
            table = table + &row + "\n";
        }
    }
    compare("schedulers.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.join("\n"));
}

/// By how much another one may be sooner: what goes twice at the end costs a path that is not through yet.
const SOONER: f64 = 1.01;
const HEADER: &str = "\
# Something sent with fair by two paths with links of their own, by the scheduler: seconds from the first packet of the handshake until all has arrived, mean of 4 seeds.
#                                links    kind   size |   completion shortest-rtt  round-robin    redundant
";
