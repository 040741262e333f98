//! Members whose machines are busy with other things and say so.

use std::time::Duration;

use haul_plan::{Load, Placement, PlacementSettings, Task};
use haul_units::{Bytes, Time};

use crate::world::{Site, play};

const RTT: Duration = Duration::from_millis(150);

/// Four machines of four processors: as many want one on the third as would get a tenth of it, and on the last a quarter.
const LOADS: [f64; 4] = [0.0, 2.0, 39.0, 15.0];

fn sites(tell: bool) -> Vec<Site> {
    let site = |running: f64| {
        let rate = 125e6 * (4.0 / (running + 1.0)).min(1.0);
        Site { load: tell.then_some(Load { running, processors: 4 }), ..Site::new(rate, RTT) }
    };
    LOADS.into_iter().map(site).collect()
}

#[test]
fn the_first_large_files_go_to_those_who_have_time_for_them() {
    for (sizes, gains) in [(vec![60_000_000; 4], true), (vec![60_000_000; 8], true), (vec![5_000_000; 400], false)] {
        let run = |tell| play(PlacementSettings::default(), &sites(tell), &sizes, 1.25e9);
        let (told, blind) = (run(true), run(false));
        assert!(told.short.is_empty() && blind.short.is_empty());
        let words = format!("{} files: {:.1} s, blind {:.1} s", sizes.len(), told.seconds, blind.seconds);
        println!("{words}");
        assert!(told.seconds <= blind.seconds * if gains { 0.7 } else { 1.05 }, "{words}");
    }
}

#[test]
fn the_busy_one_is_given_nothing_while_another_has_time() {
    let mut placement = Placement::new(PlacementSettings::default(), 2);
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    for member in 0..2 {
        placement.handle_up(member, RTT, at(0));
    }
    placement.handle_load(0, Load { running: 99.0, processors: 1 });
    let mut file = || {
        let file = placement.add_file(Bytes(10_000_000));
        placement.release(file);
    };
    (0..3).for_each(|_| file());
    assert!(matches!(placement.poll(1, at(0)), Task::Take(_)));
    assert!(!matches!(placement.poll(0, at(0)), Task::Take(_)));
}
