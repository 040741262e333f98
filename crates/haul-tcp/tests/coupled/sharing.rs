//! Coupled laws: a Multipath TCP connection of two subflows beside one flow of TCP, over one narrow link and over two.
//!
//! Beside them the same connection by Reno, whose subflows know nothing of each other: all in namespaces of their own at the same time, so that what slows down one
//! slows down all.

use std::time::{Duration, Instant};

use haul_tcp::{Choice, Connection, Law, Scope};

use crate::objects;
use crate::rig::{Rig, own};
use crate::road::{Flow, RATE_MBPS, Road, Shape, multipath, pause, until};

/// Starts and their losses are over then.
const SETTLED: Duration = Duration::from_secs(3);
/// More than thirty times from a loss to the next.
const MEASURED: Duration = Duration::from_secs(20);

const ATTEMPTS: u32 = 3;

const LAWS: [Law; 3] = [Law::Lia, Law::Olia, Law::Balia];

/// What arrived in all, of a narrow link's rate.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    law: Option<Law>,
    single: f64,
    multipath: f64,
}

/// What one of them gets in twenty seconds is chance as well: whose packets a full queue drops. So much is asked of each, and more of all three together.
#[test]
fn two_subflows_on_one_link_take_about_what_one_flow_takes() {
    let Some(outcomes) = measured(Shape::Shared) else { return };
    let ratio = |outcome: &Outcome| outcome.multipath / outcome.single;
    let (uncoupled, coupled) = outcomes.split_first().expect("Reno is the first");
    assert!(ratio(uncoupled) > 1.3, "two flows that know nothing of each other are two: {outcomes:.2?}");
    for of in coupled {
        assert!(ratio(of) > 0.25 && ratio(of) < ratio(uncoupled), "{of:.2?} of {outcomes:.2?}");
    }
    let mean = mean(coupled, |of| ratio(of).ln()).exp();
    assert!((0.4..1.6).contains(&mean) && mean < ratio(uncoupled) * 0.8, "{mean:.2}: {outcomes:.2?}");
}

#[test]
fn on_two_links_the_free_one_is_filled_and_the_other_left_to_tcp() {
    let Some(outcomes) = measured(Shape::Apart) else { return };
    let (uncoupled, coupled) = outcomes.split_first().expect("Reno is the first");
    for of in coupled {
        assert!(of.multipath > 0.7, "the free link is not filled: {of:.2?}");
        assert!(of.single > uncoupled.single * 0.95, "it does TCP harm: {of:.2?} of {outcomes:.2?}");
    }
    assert!(mean(coupled, |of| of.multipath) > 0.85, "the free link is not filled: {outcomes:.2?}");
    assert!(mean(coupled, |of| of.single) > uncoupled.single * 1.1, "nothing is left to TCP: {outcomes:.2?}");
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
}

/// Reno, then the coupled laws; none where this kernel has no Multipath TCP, which is said. What a machine gives that is too busy to fill the links says nothing.
fn measured(shape: Shape) -> Option<Vec<Outcome>> {
    let rig = Rig::open().filter(|_| multipath())?;
    // Over two links it is Reno's that are full; what the others leave of theirs is what is tried.
    let (full, of) = if shape == Shape::Shared { (0.85, LAWS.len() + 1) } else { (1.7, 1) };
    let is_full = |outcomes: &[Outcome]| outcomes.iter().take(of).all(|outcome| outcome.single + outcome.multipath > full);
    for _ in 0..ATTEMPTS {
        let outcomes = measure(&rig, shape);
        if is_full(&outcomes) {
            return Some(outcomes);
        }
        println!("the links are not full: once more");
    }
    panic!("in {ATTEMPTS} attempts this machine was too busy to fill the links");
}

#[expect(clippy::disallowed_methods, reason = "what is measured takes its time")]
fn measure(rig: &Rig, shape: Shape) -> Vec<Outcome> {
    let laws: Vec<Option<Law>> = std::iter::once(None).chain(LAWS.map(Some)).collect();
    let roads: Vec<Road> = laws.iter().map(|law| Road::lay(law.map_or("reno", Law::name), shape)).collect();
    for (law, road) in laws.iter().zip(&roads) {
        let scope = Scope { namespace: Some(road.namespace()), ..Scope::default() };
        rig.tcp.on(&law.map_or_else(|| Choice::Kernel("reno".to_owned()), own), &scope).expect("on");
    }
    let mut singles: Vec<Flow> = roads.iter().map(Flow::single).collect();
    singles.iter_mut().for_each(Flow::start);
    let mut multipaths: Vec<Flow> = roads.iter().map(Flow::multipath).collect();
    for (road, flow) in roads.iter().zip(&multipaths) {
        until("two subflows", || subflows_of(rig, road, flow.port) == 2);
    }
    // With what is sent before that it would all be on the first.
    multipaths.iter_mut().for_each(Flow::start);
    pause(SETTLED);
    let flows: Vec<(&Road, &Flow)> = roads.iter().chain(&roads).zip(singles.iter().chain(&multipaths)).collect();
    let arrived = || flows.iter().map(|(road, flow)| acknowledged(rig, road, flow.port)).collect::<Vec<u64>>();
    let (before, began) = (arrived(), Instant::now());
    pause(MEASURED);
    let (after, took) = (arrived(), began.elapsed().as_secs_f64());
    let of_link = |(before, after): (&u64, &u64)| (after - before) as f64 * 8e-6 / took / f64::from(RATE_MBPS);
    let shares: Vec<f64> = before.iter().zip(&after).map(of_link).collect();
    let (single, multipath) = shares.split_at(laws.len());
    let outcomes: Vec<Outcome> = laws
        .iter()
        .zip(single.iter().zip(multipath))
        .map(|(law, (single, multipath))| Outcome { law: *law, single: *single, multipath: *multipath })
        .collect();
    for of in &outcomes {
        let law = of.law.map_or("reno", Law::name);
        println!("{shape:?} {law}: multipath {:.2}, single {:.2}: {:.2}", of.multipath, of.single, of.multipath / of.single);
    }
    singles.into_iter().chain(multipaths).for_each(Flow::end);
    // So that nothing holds a law when its namespace goes.
    until("nobody is known", || objects::subflows() == 0);
    rig.tcp.off(None).expect("off");
    drop(roads);
    outcomes
}

fn subflows_of(rig: &Rig, road: &Road, port: u16) -> usize {
    open(rig, road, port).len()
}

/// By all subflows, in whatever order it is put together later.
fn acknowledged(rig: &Rig, road: &Road, port: u16) -> u64 {
    open(rig, road, port).iter().map(|connection| connection.acknowledged_bytes).sum()
}

fn open(rig: &Rig, road: &Road, port: u16) -> Vec<Connection> {
    let mut seen = rig.tcp.connections(&road.namespace()).expect("connections");
    seen.retain(|connection| connection.peer.port() == port);
    seen
}
