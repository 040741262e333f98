//! What the policies reach on some fleets, as a table: a change of behaviour is a change of the table.
//! `HAUL_GOLDEN=write cargo test -p haul-plan --test simulated` writes it anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use haul_plan::Policy;
use haul_units::Time;

use crate::properties::Job;
use haul_plan::simulated::{Fate, Site};

const FAR: Duration = Duration::from_millis(150);

fn mbps(rate: f64) -> f64 {
    rate * 1e6 / 8.0
}

/// The servers of the IPSJ paper: five of 10 Gbit/s and eight of 1 Gbit/s before a client of 10 Gbit/s. Every server has `files` of its own; each lies on
/// `replicas` servers, on the next ones too.
fn paper(files: usize, replicas: usize) -> Job {
    let servers = 13;
    let rates = (0..servers).map(|at| if at < 5 { mbps(10_000.0) } else { mbps(1_000.0) }).collect();
    let holders = |at: usize| (0..replicas).map(|nth| (at + nth * 5) % servers).collect::<Vec<usize>>();
    let files = (0..servers * files).map(|number| (125_000_000, holders(number % servers))).collect();
    Job { rates, rtts: vec![FAR; servers], client: mbps(10_000.0), files }
}

fn one_file(rates: &[f64]) -> Job {
    let servers = rates.len();
    let rates: Vec<f64> = rates.iter().map(|rate| mbps(*rate)).collect();
    Job { client: mbps(10_000.0), rtts: vec![FAR; servers], files: vec![(2_000_000_000, (0..servers).collect())], rates }
}

fn at_s(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

#[test]
fn policies() {
    let (single, replicated) = (paper(64, 1), paper(64, 3));
    let striped = one_file(&[100.0, 300.0, 600.0]);
    let small = Job { files: (0..20_000).map(|number| (10_000, vec![number % 13, (number + 1) % 13])).collect(), ..paper(1, 1) };
    let mut half = replicated.sites();
    half[1].fates.push((at_s(20.0), Fate::Slows(0.02)));
    let mut dead = replicated.sites();
    dead[0].fates.push((at_s(20.0), Fate::Dies));
    let mut silent = replicated.sites();
    silent[0].fates.push((at_s(20.0), Fate::FallsSilent));
    let mut fastest = striped.sites();
    fastest[2].fates.push((at_s(8.0), Fate::Dies));
    let plain = |job: &Job| job.sites();
    let cases: Vec<(&str, &Job, Vec<Site>)> = vec![
        ("paper, 64 files a server, one replica", &single, plain(&single)),
        ("paper, three replicas", &replicated, plain(&replicated)),
        ("  one of 10 Gbit/s slows to 200 Mbit/s", &replicated, half),
        ("  one of 10 Gbit/s dies after 20 s", &replicated, dead),
        ("  one of 10 Gbit/s falls silent after 20 s", &replicated, silent),
        ("20,000 files of 10 kB, two replicas", &small, plain(&small)),
        ("2 GB on 100, 300, 600 Mbit/s", &striped, plain(&striped)),
        ("  the fastest dies after 8 s", &striped, fastest),
    ];
    let mut table =
        String::from("fleet                                       policy       seconds    bound  taken  twice  wasted MB\n");
    for (name, job, sites) in &cases {
        for (policy, label) in [(Policy::Dynamic, "dynamic"), (Policy::RoundRobin, "round-robin")] {
            let played = job.play(policy, sites);
            // Round robin knows no remedy for a server that says nothing.
            let seconds = if played.is_done { format!("{:.2}", played.seconds) } else { "never".to_owned() };
            let (bound, wasted) = (job.bound_s(), played.wasted as f64 / 1e6);
            let _ = writeln!(
                table,
                "{name:<44}{label:<12}{seconds:>8}{bound:>9.2}{:>7}{:>7}{wasted:>11.1}",
                played.taken, played.twice
            );
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/policies.txt");
    if std::env::var_os("HAUL_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, &table).expect("the golden table");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == table, "{} differs; this is it now:\n{table}", path.display());
}
