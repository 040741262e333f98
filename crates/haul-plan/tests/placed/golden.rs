//! What the policies reach on some fleets, as a table: a change of behaviour is a change of the table.
//! `HAUL_GOLDEN=write cargo test -p haul-plan --test placed` writes it anew; read the difference.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use haul_plan::{PlacementPolicy, PlacementSettings};
use haul_units::Time;

use crate::properties::bound_s;
use crate::world::{Site, play};

const CLIENT: f64 = 1.25e9;

/// The servers of the IPSJ paper: five of 10 Gbit/s and eight of 1 Gbit/s before a client of 10 Gbit/s, 150 ms away.
fn paper() -> Vec<Site> {
    (0..13).map(|at| Site::new(if at < 5 { 1.25e9 } else { 1.25e8 }, Duration::from_millis(150))).collect()
}

fn changed(change: impl Fn(&mut Vec<Site>)) -> Vec<Site> {
    let mut sites = paper();
    change(&mut sites);
    sites
}

#[test]
fn policies() {
    let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
    let even = vec![125_000_000; 832];
    let small = vec![10_000; 20_000];
    let one_large: Vec<u64> = std::iter::once(20_000_000_000).chain(vec![100_000_000; 400]).collect();
    let slow: Vec<Site> = [12.5e6, 37.5e6, 75e6].map(|rate| Site::new(rate, Duration::from_millis(150))).into();
    let cases: Vec<(&str, Vec<Site>, &[u64], usize)> = vec![
        ("paper, 832 files of 125 MB", paper(), &even, 1),
        ("  two replicas", paper(), &even, 2),
        ("  one of 10 Gbit/s slows to 200 Mbit/s", changed(|sites| sites[1].slows = Some((at(20), 0.02))), &even, 1),
        ("  one of 10 Gbit/s dies after 20 s", changed(|sites| sites[0].dies = Some(at(20))), &even, 1),
        (
            "  the fast ones have room for 5 GB each",
            changed(|sites| sites.iter_mut().take(5).for_each(|site| site.room = Some(5_000_000_000))),
            &even,
            1,
        ),
        ("paper, 20,000 files of 10 kB", paper(), &small, 1),
        ("paper, one of 20 GB and 400 of 100 MB", paper(), &one_large, 1),
        ("100, 300, 600 Mbit/s, 100 files of 20 MB", slow.clone(), &[20_000_000; 100], 1),
        ("  two replicas", slow, &[20_000_000; 100], 2),
    ];
    let mut table = String::from(
        "fleet                                       policy       seconds    bound  given  wasted MB  last idle s\n",
    );
    for (name, sites, sizes, replicas) in &cases {
        for (label, policy) in PlacementPolicy::NAMES {
            let settings = PlacementSettings { policy, replicas: *replicas, ..PlacementSettings::default() };
            let played = play(settings, sites, sizes, CLIENT);
            assert!(played.short.is_empty(), "{name}, {label}: {} files are not placed", played.short.len());
            let (bound, wasted) = (bound_s(sites, sizes, *replicas, CLIENT), played.wasted as f64 / 1e6);
            let _ = writeln!(
                table,
                "{name:<44}{label:<12}{:>8.1}{bound:>9.2}{:>7}{wasted:>11.1}{:>13.1}",
                played.seconds, played.given, played.idle_s
            );
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/placements.txt");
    if std::env::var_os("HAUL_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, &table).expect("the golden table");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == table, "{} differs; this is it now:\n{table}", path.display());
}
