//! Servers that say what they have while others send already.

use std::time::Duration;

use haul_plan::simulated::{Fate, Site};
use haul_plan::{Catalogue, Event, Order, Plan, Policy, ServerId, ServerProfile, Settings};
use haul_units::{Bytes, Time};
use proptest::prelude::*;

use crate::properties::{Job, assert_whole, cases, job};

const RTT: Duration = Duration::from_millis(100);

fn at_s(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// One file of 2 GB on all of these, in Mbit/s.
fn replicas(mbps: &[f64]) -> Job {
    let rates: Vec<f64> = mbps.iter().map(|rate| rate * 125_000.0).collect();
    let servers = rates.len();
    Job { rates, rtts: vec![RTT; servers], client: 125e7, files: vec![(2_000_000_000, (0..servers).collect())] }
}

#[test]
fn a_replica_that_shows_up_later_is_used() {
    let job = replicas(&[100.0, 900.0]);
    let mut sites = job.sites();
    sites[1].joins = at_s(10.0);
    let played = job.play(Policy::Dynamic, &sites);
    assert_whole(&job, &played);
    // 125 MB in the first ten seconds, the rest at 1 Gbit/s.
    let bound = 10.0 + (2e9 - 125e6) / 125e6;
    assert!(played.seconds < bound * 1.05, "{:.2} s, and {bound:.2} s at best", played.seconds);
    assert!(played.wasted < 4 << 20, "{} bytes came twice", played.wasted);
}

#[test]
fn the_first_does_not_wait_for_the_last() {
    let mut job = replicas(&[800.0, 800.0]);
    // Nine tenths of the files are on the first alone.
    job.files = (0..100).map(|nth| (10_000_000, vec![usize::from(nth % 10 == 0)])).collect();
    let mut sites = job.sites();
    sites[1].joins = at_s(5.0);
    let played = job.play(Policy::Dynamic, &sites);
    assert_whole(&job, &played);
    assert!(played.seconds < 9.3, "{:.2} s: 9 s at best", played.seconds);
}

/// One of whom there is a sign that it is gone loses its work after half a second of silence, another one after three.
#[test]
fn a_doubted_server_is_not_waited_for_as_long() {
    for (is_doubted, silent_ms) in [(true, 500), (false, 3000)] {
        let mut catalogue = Catalogue::new();
        let servers = [catalogue.add_server(), catalogue.add_server()];
        catalogue.add_file(Bytes::gib(1), &servers).expect("known");
        let mut plan = Plan::new(catalogue, Settings::default());
        for server in servers {
            plan.handle_up(server, ServerProfile::at(RTT), Time::ZERO);
        }
        while plan.poll_order(Time::ZERO).is_some() {}
        if is_doubted {
            plan.handle_doubted(servers[0]);
        }
        let at_ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut stalled = |ms| {
            let _ = plan.poll_order(at_ms(ms));
            plan.server(servers[0]).is_stalled
        };
        assert!(!stalled(silent_ms - 1) && stalled(silent_ms), "{is_doubted}");
    }
}

#[test]
fn what_was_lost_comes_from_whoever_joins_with_it() {
    let mut catalogue = Catalogue::new();
    let (early, late) = (catalogue.add_server(), catalogue.add_server());
    let file = catalogue.add_file(Bytes::mib(4), &[early]).expect("known");
    let mut plan = Plan::new(catalogue, Settings::default());
    plan.handle_up(early, ServerProfile::at(RTT), Time::ZERO);
    let Some(Order::Send { piece, .. }) = plan.poll_order(Time::ZERO) else { panic!("nothing is told") };
    plan.handle_unfit(piece, Time::ZERO);
    assert_eq!((plan.poll_event(), plan.lost_files()), (Some(Event::Lost(file)), 1));
    plan.handle_holder(file, late);
    plan.handle_holder(file, late);
    assert_eq!((plan.lost_files(), plan.is_stuck()), (0, true));
    plan.handle_up(late, ServerProfile::at(RTT), at_s(1.0));
    while let Some(order) = plan.poll_order(at_s(1.0)) {
        let Order::Send { piece, server, range, .. } = order else { continue };
        assert_eq!(server, late);
        plan.handle_arrived(piece, range, at_s(1.0));
    }
    assert!(plan.is_done() && plan.is_complete(file));
    // What has come needs nobody.
    plan.handle_holder(file, early);
    assert_eq!(plan.catalogue().holders(file), [late]);
}

#[test]
fn a_part_is_found_late_too() {
    let mut catalogue = Catalogue::new();
    let only = catalogue.add_server();
    let mut plan = Plan::new(catalogue, Settings::default());
    plan.handle_up(only, ServerProfile::at(RTT), Time::ZERO);
    assert!(plan.is_done() && plan.poll_order(Time::ZERO).is_none());
    let needed = 1 << 20..3 << 20;
    plan.handle_found_part(Bytes::mib(8), std::slice::from_ref(&needed), &[only]).expect("a file");
    assert!(plan.handle_found_part(Bytes(4), &[0..2, 1..3], &[only]).is_err());
    assert!(plan.handle_found(Bytes(1), &[ServerId::new(7)]).is_err());
    let mut told = Vec::new();
    while let Some(Order::Send { range, piece, .. }) = plan.poll_order(Time::ZERO) {
        plan.handle_arrived(piece, range.clone(), Time::ZERO);
        told.push(range);
    }
    assert_eq!(
        (told.first().map(|range| range.start), told.last().map(|range| range.end)),
        (Some(needed.start), Some(needed.end))
    );
    assert!(plan.is_done() && plan.status().total == Bytes::mib(2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 20, ..ProptestConfig::default() })]

    /// Whenever servers join, and whoever slows down or falls silent meanwhile: each byte once, and no later than if all had begun when the last one came.
    #[test]
    fn whenever(job in job(), policy in prop_oneof![Just(Policy::Dynamic), Just(Policy::RoundRobin)],
                joins in proptest::collection::vec(0.0f64..1.0, 1..100), silent in any::<Option<u8>>()) {
        let bound = job.bound_s().max(0.01);
        let mut sites: Vec<Site> = job.sites();
        for (nth, site) in sites.iter_mut().enumerate() {
            site.joins = at_s(bound * joins[nth % joins.len()]);
        }
        let stays: Vec<usize> = job.files.iter().map(|(_, holders)| holders[0]).collect();
        let silent = silent.map(|at| usize::from(at) % sites.len()).filter(|at| !stays.contains(at) && policy == Policy::Dynamic);
        if let Some(at) = silent {
            sites[at].fates.push((at_s(bound), Fate::FallsSilent));
        }
        let last = sites.iter().map(|site| site.joins).max().unwrap_or_default();
        let played = job.play(policy, &sites);
        assert_whole(&job, &played);
        prop_assert_eq!(played.lost, 0);
        let at_once = job.play(policy, &job.sites()).seconds;
        let rtt = job.rtts.iter().max().map_or(0.0, Duration::as_secs_f64);
        if policy == Policy::Dynamic && silent.is_none() {
            let most = last.as_secs_f64() + 1.25 * at_once + 4.0 * rtt + 0.5;
            prop_assert!(played.seconds <= most, "{:.2} s; begun together {at_once:.2} s, the last joined at {:.2} s", played.seconds, last.as_secs_f64());
        }
    }
}
