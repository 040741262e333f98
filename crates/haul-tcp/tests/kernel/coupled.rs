//! Coupled laws: a Multipath TCP connection of two subflows beside one flow of TCP, over one narrow link and over two.
//!
//! Beside them the same connection by Reno, whose subflows know nothing of each other: all in namespaces of their own at the same time, so that what slows down one
//! slows down all.

use std::path::Path;
use std::time::{Duration, Instant};

use haul_tcp::{Choice, Law, Scope};

use crate::objects;
use crate::rig::{Rig, own};
use crate::road::{Flow, RATE_MBPS, Road, Shape};

/// Starts and their losses are over then.
const SETTLED: Duration = Duration::from_secs(3);
/// More than ten times from a loss to the next.
const MEASURED: Duration = Duration::from_secs(10);
/// Handshakes and ends of connections, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(15);

const LAWS: [Law; 3] = [Law::Lia, Law::Olia, Law::Balia];

/// What arrived, of a narrow link's rate.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    law: Option<Law>,
    single: f64,
    multipath: f64,
}

#[test]
fn two_subflows_on_one_link_take_about_what_one_flow_takes() {
    let Some(outcomes) = measured(Shape::Shared) else { return };
    let ratio = |outcome: &Outcome| outcome.multipath / outcome.single;
    let (uncoupled, coupled) = outcomes.split_first().expect("Reno is the first");
    assert!(ratio(uncoupled) > 1.3, "two flows that know nothing of each other are two: {outcomes:.2?}");
    for of in coupled {
        assert!((0.4..1.6).contains(&ratio(of)) && ratio(of) < ratio(uncoupled) * 0.8, "{of:.2?} of {outcomes:.2?}");
        assert!(of.single + of.multipath > 0.8, "{of:.2?}");
    }
}

#[test]
fn on_two_links_the_free_one_is_filled_and_the_other_left_to_tcp() {
    let Some(outcomes) = measured(Shape::Apart) else { return };
    let (uncoupled, coupled) = outcomes.split_first().expect("Reno is the first");
    for of in coupled {
        assert!(of.multipath > 0.85, "the free link is not filled: {of:.2?}");
        assert!(of.single > 0.45 && of.single > uncoupled.single * 0.95, "it does TCP harm: {of:.2?} of {outcomes:.2?}");
        assert!(of.single + of.multipath > 1.6, "{of:.2?}");
    }
}

/// A subflow's entry goes with the subflow, whoever comes and goes meanwhile, and with its law.
#[test]
fn a_subflow_is_known_for_as_long_as_it_has_a_coupled_law() {
    let Some(rig) = Rig::open().filter(|_| multipath()) else { return };
    let road = Road::lay("known", Shape::Apart);
    let namespace = road.namespace();
    rig.tcp.on(&own(Law::Lia), &Scope { namespace: Some(road.namespace()), ..Scope::default() }).expect("on");
    let first = Flow::multipath(&road);
    let single = Flow::by_default(&road);
    until("both subflows sit", || objects::subflows() == 2);
    let second = Flow::multipath(&road);
    until("and those of the other one", || objects::subflows() == 4);
    // From one coupled law to the other a subflow stays.
    rig.tcp.switch(&own(Law::Balia), &namespace, &[]).expect("switched");
    assert_eq!(objects::subflows(), 4);
    first.end();
    until("the first connection's go", || objects::subflows() == 2);
    rig.tcp.switch(&Choice::Kernel("reno".to_owned()), &namespace, &[]).expect("switched");
    assert_eq!(objects::subflows(), 0, "those of Reno are not known");
    rig.tcp.switch(&own(Law::Olia), &namespace, &[]).expect("switched");
    assert_eq!(objects::subflows(), 2);
    second.end();
    single.end();
    until("nobody is known", || objects::subflows() == 0);
    rig.tcp.off(None).expect("off");
}

/// Reno, then the coupled laws; none where this kernel has no Multipath TCP, which is said.
fn measured(shape: Shape) -> Option<Vec<Outcome>> {
    let rig = Rig::open().filter(|_| multipath())?;
    let laws: Vec<Option<Law>> = std::iter::once(None).chain(LAWS.map(Some)).collect();
    let roads: Vec<Road> = laws.iter().map(|law| Road::lay(law.map_or("reno", Law::name), shape)).collect();
    for (law, road) in laws.iter().zip(&roads) {
        let scope = Scope { namespace: Some(road.namespace()), ..Scope::default() };
        rig.tcp.on(&law.map_or_else(|| Choice::Kernel("reno".to_owned()), own), &scope).expect("on");
    }
    let singles: Vec<Flow> = roads.iter().map(Flow::single).collect();
    let multipaths: Vec<Flow> = roads.iter().map(Flow::multipath).collect();
    for (road, flow) in roads.iter().zip(&multipaths) {
        until("two subflows", || subflows_of(&rig, road, flow.port) == 2);
    }
    pause(SETTLED);
    let arrived = || singles.iter().chain(&multipaths).map(Flow::received).collect::<Vec<u64>>();
    let (before, began) = (arrived(), Instant::now());
    pause(MEASURED);
    let (after, took) = (arrived(), began.elapsed().as_secs_f64());
    let shares: Vec<f64> =
        before.iter().zip(&after).map(|(before, after)| (after - before) as f64 * 8e-6 / took / f64::from(RATE_MBPS)).collect();
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
    Some(outcomes)
}

fn subflows_of(rig: &Rig, road: &Road, port: u16) -> usize {
    let seen = rig.tcp.connections(&road.namespace()).expect("connections");
    seen.iter().filter(|connection| connection.peer.port() == port).count()
}

fn multipath() -> bool {
    let there = Path::new("/proc/sys/net/mptcp/enabled").exists();
    if !there {
        skip::skip("this kernel has no Multipath TCP");
    }
    there
}

#[expect(clippy::disallowed_methods, reason = "the kernel says nothing of it when it has ended a connection")]
fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        pause(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured takes its time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
