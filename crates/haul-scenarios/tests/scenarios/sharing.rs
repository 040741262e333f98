//! Several flows on one bottleneck: connections among themselves, and beside TCP.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use haul_cc::ControllerChoice::{Aggressive, Bbr, Cubic, Fair, Modest};
use haul_sim::{CoDel, Discipline, Flow, Outcome, Path, Plan, Queue, TcpConfig, Topology};
use haul_units::BitRate;

use crate::golden::{compare, seed};
use crate::{Kind, measure};

const FAIR: Kind = Kind::Haul(Fair);
const MODEST: Kind = Kind::Haul(Modest);
const AGGRESSIVE: Kind = Kind::Haul(Aggressive);
const BBR: Kind = Kind::Haul(Bbr);
const CUBIC: Kind = Kind::Haul(Cubic);
const TCP: Kind = Kind::Tcp(TcpConfig::CUBIC);
const RENO: Kind = Kind::Tcp(TcpConfig::RENO);
const TCP_BBR: Kind = Kind::Tcp(TcpConfig::BBR);
const RTT: Duration = Duration::from_millis(50);
const PATH: Path = Path::new(BitRate::mbps(100), RTT);

#[test]
fn sharing() {
    let mut table = String::from(HEADER);
    let mut missed = Vec::new();
    let long = PATH.queue(Queue::Bdp(4.0));
    let short = PATH.queue(Queue::Bdp(0.25));
    let codel = long.discipline(Discipline::CoDel(CoDel::DEFAULT));
    // Last: what each flow is to get at least, in per cent. With CUBIC 35 to 65 % are wanted of fair; behind a queue of a quarter, and beside BBR, it gets less.
    let mut add = |table: &mut String, name, kinds: &[Kind], apart, path, extra_rtt, least: &[u64]| {
        let is_tcp = |kind: &Kind| matches!(kind, Kind::Tcp(_));
        // When in the cycle of TCP's window a flow of haul's begins decides much of a single run.
        let mixed = apart > 1 && kinds.iter().any(is_tcp) && !kinds.iter().all(is_tcp);
        let moments = if mixed { apart - 2..=apart + 2 } else { apart..=apart };
        let outcomes: Vec<Outcome> = moments.map(|apart| run(name, kinds, apart, path, extra_rtt)).collect();
        let (row, each) = row(name, &outcomes, kinds.len());
        let shares = least.iter().zip(&each).all(|(&least, share)| *share >= least as f64 - 0.5);
        if !shares || outcomes.iter().any(|outcome| outcome.utilisation < LEAST_USED) {
            missed.push(format!("{row}  (at least {least:?})"));
        }
        *table += &row;
    };
    for (name, kinds, apart, path, least) in [
        ("2 fair, together", vec![FAIR; 2], 0, PATH, vec![45, 45]),
        ("2 fair, 5 s apart", vec![FAIR; 2], 5, PATH, vec![40, 40]),
        ("4 fair, 3 s apart", vec![FAIR; 4], 3, PATH, vec![20; 4]),
        ("8 fair, 1 s apart", vec![FAIR; 8], 1, PATH, vec![8; 8]),
        ("haul bbr, fair", vec![BBR, FAIR], 5, PATH, vec![40, 40]),
        ("fair, haul bbr", vec![FAIR, BBR], 5, PATH, vec![40, 40]),
        ("modest, alone", vec![MODEST], 0, PATH, vec![100]),
        ("2 modest, 5 s apart", vec![MODEST; 2], 5, PATH, vec![30, 30]),
        ("TCP cubic, modest", vec![TCP, MODEST], 5, PATH, vec![90, 1]),
        ("fair, modest", vec![FAIR, MODEST], 5, PATH, vec![80, 5]),
        ("TCP cubic, aggressive", vec![TCP, AGGRESSIVE], 5, PATH, vec![25, 55]),
        ("fair, aggressive", vec![FAIR, AGGRESSIVE], 5, PATH, vec![20, 25]),
        ("2 haul cubic, 5 s apart", vec![CUBIC; 2], 5, PATH, vec![40, 40]),
        ("4 haul cubic, 3 s apart", vec![CUBIC; 4], 3, PATH, vec![20; 4]),
        ("2 TCP cubic, 5 s apart", vec![TCP; 2], 5, PATH, vec![30, 30]),
        ("fair, TCP cubic 5 s later", vec![FAIR, TCP], 5, PATH, vec![35, 35]),
        ("TCP cubic, fair 5 s later", vec![TCP, FAIR], 5, PATH, vec![35, 35]),
        ("TCP cubic, fair; short queue", vec![TCP, FAIR], 5, short, vec![35, 18]),
        ("TCP cubic, fair; long queue", vec![TCP, FAIR], 5, long, vec![35, 35]),
        ("TCP cubic, fair; CoDel", vec![TCP, FAIR], 5, codel, vec![30, 35]),
        ("TCP reno, fair", vec![RENO, FAIR], 5, PATH, vec![35, 35]),
        ("TCP bbr, fair", vec![TCP_BBR, FAIR], 5, PATH, vec![35, 18]),
        ("fair, TCP bbr", vec![FAIR, TCP_BBR], 5, PATH, vec![35, 35]),
        ("TCP bbr, TCP cubic", vec![TCP_BBR, TCP], 5, PATH, vec![35, 5]),
        ("2 TCP bbr, 5 s apart", vec![TCP_BBR; 2], 5, PATH, vec![35, 35]),
        ("TCP cubic, haul cubic", vec![TCP, CUBIC], 5, PATH, vec![35, 30]),
        ("4 TCP cubic, fair", vec![TCP, TCP, TCP, TCP, FAIR], 1, PATH, vec![12; 5]),
    ] {
        add(&mut table, name, &kinds, apart, path, Duration::ZERO, &least);
    }
    let near = Path { rtt: Duration::from_millis(20), queue: Queue::Bytes(PATH.bdp()), ..PATH };
    for (name, kind, least) in [("fair 20 ms, fair 200 ms", FAIR, [35, 35]), ("TCP 20 ms, TCP 200 ms", TCP, [35, 18])] {
        add(&mut table, name, &[kind; 2], 5, near, Duration::from_millis(180), &least);
    }
    compare("sharing.txt", &table);
    assert!(missed.is_empty(), "\n{HEADER}{}", missed.concat());
}

fn run(name: &'static str, kinds: &[Kind], apart: u64, path: Path, extra_rtt: Duration) -> Outcome {
    // The first is near.
    let flow = |(n, kind): (usize, &Kind)| Flow {
        start: Duration::from_secs(apart * n as u64),
        extra_rtt: if n == 0 { Duration::ZERO } else { extra_rtt },
        ..Flow::endless(*kind, 0, 1)
    };
    measure(&Plan {
        name,
        seed: seed(1),
        topology: Topology::Dumbbell { pairs: 1, path },
        flows: Cow::Owned(kinds.iter().enumerate().map(flow).collect()),
        length: Duration::from_secs(60),
        checks: &[],
    })
}

/// The means of some runs, and each flow's share in per cent.
fn row(name: &str, outcomes: &[Outcome], flows: usize) -> (String, Vec<f64>) {
    let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
    let shares: Vec<f64> = (0..flows).map(|flow| mean(&|outcome| outcome.share(flow) * 100.0)).collect();
    let each: Vec<String> = shares.iter().map(|share| format!("{share:.0}")).collect();
    let mut text = String::new();
    writeln!(
        text,
        "{name:>29} | {:>5.3} {:>6.1} {:>6.2} {:>8.2}  {}",
        mean(&|outcome| outcome.jain()),
        mean(&|outcome| outcome.utilisation * 100.0),
        mean(&|outcome| outcome.queue_p95.as_secs_f64() / RTT.as_secs_f64()),
        mean(&|outcome| outcome.dropped * 100.0),
        each.join(" ")
    )
    .expect("a string takes anything");
    (text, shares)
}

/// Whoever shares a link fills it.
const LEAST_USED: f64 = 0.97;

const HEADER: &str = "\
# Flows on 100 Mbit/s, 50 ms, a queue of 1 bandwidth-delay product (short: 0.25; long and CoDel: 4) over 60 s; the second half counts.
# Jain: index of fairness. Used: the link's bytes in per cent. Queue: 95th percentile of the wait in round trips. Dropped: by the queue in
# per cent. Each: share of the payload in per cent, in order of start. Of haul's beside TCP: the mean of five runs, a second apart in when
# the later flow begins.
#                             |  jain   used  queue  dropped  each
";
