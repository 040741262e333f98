//! Machines that are busy with other things and say so.

use std::time::Duration;

use haul_plan::simulated::Site;
use haul_plan::{Catalogue, Load, Order, Plan, Policy, ServerProfile, Settings};
use haul_units::{Bytes, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::properties::{Job, assert_whole};

const RTT: Duration = Duration::from_millis(100);
/// What a server is taken for of which nothing is known.
const WHOLE: f64 = 125e6;

fn load(running: f64) -> Load {
    Load { running, processors: 4 }
}

#[test]
fn a_file_that_all_have_is_asked_of_the_one_that_is_least_busy() {
    for (loads, first) in
        [([None; 3], 0), ([Some(load(9.0)), Some(load(2.0)), Some(load(7.0))], 1), ([Some(load(9.0)), None, None], 1)]
    {
        let mut catalogue = Catalogue::new();
        let servers: Vec<_> = loads.iter().map(|_| catalogue.add_server()).collect();
        catalogue.add_file(Bytes(1000), &servers).expect("known");
        let mut plan = Plan::new(catalogue, Settings::default());
        for (server, load) in servers.iter().zip(loads) {
            plan.handle_up(*server, ServerProfile { load, ..ServerProfile::at(RTT) }, Time::ZERO);
        }
        let Some(Order::Send { server, .. }) = plan.poll_order(Time::ZERO) else { panic!("nothing is told") };
        assert_eq!(server, servers[first], "{loads:?}");
    }
}

/// Some busy machines, each as fast as its share of a processor makes it, and files that all of them have.
fn busy() -> impl Strategy<Value = (Job, Vec<Load>)> {
    let machines = proptest::collection::vec(prop_oneof![Just(0.0), 0.0f64..40.0], 2..8);
    (machines, 1usize..30, (3.0f64..8.0).prop_map(|magnitude| 10f64.powf(magnitude) as u64)).prop_map(|(running, files, size)| {
        let servers = running.len();
        let rates = running.iter().map(|running| WHOLE * (4.0 / (running + 1.0)).min(1.0)).collect();
        let files = vec![(size, (0..servers).collect()); files];
        (Job { rates, rtts: vec![RTT; servers], client: 10.0 * WHOLE, files }, running.into_iter().map(load).collect())
    })
}

/// A job that is over before much has been measured may be over sooner for it, and seldom later; a long one is neither. The jobs are always the same ones.
#[test]
fn what_machines_say_of_their_load_helps_more_than_it_harms() {
    const JOBS: usize = 300;
    let (mut runner, jobs) = (TestRunner::deterministic(), busy());
    let mut ratios: Vec<(f64, String)> = Vec::new();
    for _ in 0..JOBS {
        let (job, loads) = jobs.new_tree(&mut runner).expect("a job").current();
        let play = |tells: bool| {
            let mut sites: Vec<Site> = job.sites();
            for (site, load) in sites.iter_mut().zip(&loads).filter(|_| tells) {
                site.load = Some(*load);
            }
            let played = job.play(Policy::Dynamic, &sites);
            assert_whole(&job, &played);
            played.seconds
        };
        let (told, blind) = (play(true), play(false));
        ratios.push((told / blind, format!("{told:.3} s, {blind:.3} s without: {job:?} {loads:?}")));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = ratios.iter().map(|(ratio, _)| ratio).sum::<f64>() / JOBS as f64;
    let (helped, harmed) =
        (ratios.partition_point(|(ratio, _)| *ratio < 0.95), JOBS - ratios.partition_point(|(ratio, _)| *ratio <= 1.05));
    let worst = ratios.last().expect("jobs");
    println!("mean {mean:.3}, helped {helped}, harmed {harmed}, best {:?}, worst {worst:?}", ratios[0]);
    assert!(mean < 0.95 && helped > 10 * harmed, "{mean:.3} of the time; {helped} jobs helped, {harmed} harmed");
    assert!(worst.0 < 1.25, "{worst:?}");
}
