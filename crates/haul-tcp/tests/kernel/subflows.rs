//! Subflows of a Multipath TCP connection and their entries in the map of the coupled laws: which are there, by whatever way they got their law, and that they go.

use haul_tcp::{Choice, Law, Scope, Way};

use crate::objects;
use crate::rig::{Rig, own};
use crate::road::{Flow, Road, Shape, multipath, until};
use crate::wire::ip;

/// A subflow's entry goes with the subflow, whoever comes and goes meanwhile, and with its law.
#[test]
fn a_subflow_is_known_for_as_long_as_it_has_a_coupled_law() {
    let Some(rig) = Rig::open().filter(|_| multipath()) else { return };
    let road = Road::lay("known", Shape::Apart);
    let namespace = road.namespace();
    rig.tcp.on(&own(Law::Lia), &Scope { namespace: Some(road.namespace()), ..Scope::default() }).expect("on");
    let mut first = Flow::multipath(&road);
    let mut single = Flow::by_default(&road);
    first.start();
    single.start();
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

/// By the default, by routes, by a program at a cgroup: the further subflow has the law that the first one has.
#[test]
fn further_subflows_get_the_law_by_each_way() {
    let Some(rig) = Rig::open().filter(|_| multipath()) else { return };
    let road = Road::lay("ways", Shape::Apart);
    let networks = ["10.91.1.0/24", "10.92.1.0/24"];
    let scope = Scope {
        namespace: Some(road.namespace()),
        networks: networks.map(|to| to.parse().expect("a network")).into(),
        cgroup: None,
    };
    let mut seen = Vec::new();
    for routes in [false, true] {
        if routes {
            for to in networks {
                ip(&["-n", &road.a, "route", "add", to, "via", "10.90.0.254"]);
            }
        }
        let rules = rig.tcp.on(&own(Law::Lia), &scope).expect("on");
        seen.extend(rules.into_iter().map(|rule| matches!(rule.way, Way::Routes(_))));
        let flow = Flow::multipath(&road);
        until("both subflows sit", || objects::subflows() == 2);
        flow.end();
        until("nobody is known", || objects::subflows() == 0);
        rig.tcp.off(None).expect("off");
    }
    assert_eq!(seen, [false, false, true, true]);
}
