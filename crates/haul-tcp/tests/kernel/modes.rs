//! The modes, as they run in the kernel, where the other end and the line between are the test's.

use std::time::Duration;

use haul_tcp::Law;

use crate::line::Line;
use crate::rig::{Rig, own};
use crate::stage::{Flow, Stage, now};

/// Of the line: packets a second, and the round trip of an empty queue. 40 packets are under way at once.
const RATE: u32 = 2_000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);
/// That of a look at the path, and one that fills most of it.
const LOOK: u32 = 4;
const FULL: u32 = 30;

/// Alone on a path for long, `modest` keeps a queue and has not seen the path without it: it lets it run empty for a round trip, and goes on as before. Another law that
/// comes in between has the window of before.
#[test]
fn modest_looks_at_its_path_and_goes_on() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Modest), &rig.scope()).expect("on");
    // The smallest round-trip time is looked for three times while it is kept.
    rig.tcp.set("base-rtt-s=2").expect("set");
    let stage = Stage::set(&rig);
    let mut flows = [stage.connect(Law::Modest, ROUND_TRIP)];
    let mut line = Line::new(&stage, RATE, ROUND_TRIP);
    for _ in 0..2 {
        until(&mut line, &mut flows, "the path is full", |window| window >= FULL);
        until(&mut line, &mut flows, "it is empty", |window| window <= LOOK);
    }
    flows[0].give(Law::Westwood);
    assert!(flows[0].window() >= FULL, "{}", flows[0].window());
}

fn until(line: &mut Line<'_>, flows: &mut [Flow], what: &str, is: impl Fn(u32) -> bool) {
    let begun = now();
    line.carry(flows, |flows| !is(flows[0].window()) && begun.elapsed() < PATIENCE, |_, _| false);
    assert!(is(flows[0].window()), "not within {PATIENCE:?}: {what}, but {}", flows[0].window());
}
