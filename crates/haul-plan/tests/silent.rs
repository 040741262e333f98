//! Servers that are silent for a time: an order was lost on its way or is forgotten there, or what was told comes late.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::ops::Range;
use std::time::Duration;

use haul_plan::{Catalogue, Order, PieceId, Plan, Policy, ServerId, ServerProfile, Settings};
use haul_units::{Bytes, Time};

const MIB: u64 = 1 << 20;
/// What the plan has patience for.
const PATIENCE: Duration = Duration::from_secs(3);

type Told = (ServerId, PieceId, Range<u64>);

/// All that is told, and the pieces of which nothing more is wanted.
fn told(plan: &mut Plan, now: Time) -> (Vec<Told>, Vec<PieceId>) {
    let (mut sent, mut ended) = (Vec::new(), Vec::new());
    while let Some(order) = plan.poll_order(now) {
        match order {
            Order::Send { server, piece, range, .. } => sent.push((server, piece, range)),
            Order::Shorten { piece, .. } => ended.push(piece),
            _ => {}
        }
    }
    (sent, ended)
}

#[test]
fn who_alone_has_a_file_is_asked_for_it_again() {
    let mut catalogue = Catalogue::new();
    let (only, other) = (catalogue.add_server(), catalogue.add_server());
    let file = catalogue.add_file(Bytes(MIB), &[only]).unwrap();
    let mut plan = Plan::new(catalogue, Settings::default());
    for server in [only, other] {
        plan.handle_up(server, ServerProfile::at(Duration::from_millis(10)), Time::ZERO);
    }
    let (first, _) = told(&mut plan, Time::ZERO);
    assert_eq!(first.iter().map(|(server, _, range)| (*server, range.clone())).collect::<Vec<_>>(), [(only, 0..MIB)]);
    let (mut now, mut last) = (Time::ZERO, first[0].1);
    for _ in 0..3 {
        // It is taken for silent, then asked anew.
        let begun = now;
        let again = loop {
            now = plan.next_timeout(now).expect("somebody is waited for").max(now);
            let (again, ended) = told(&mut plan, now);
            if !again.is_empty() {
                assert_eq!(ended, [last], "both are not to come");
                break again;
            }
        };
        assert!(now.since(begun) >= PATIENCE && now.since(begun) <= PATIENCE * 3, "{:?}", now.since(begun));
        assert_eq!(again.iter().map(|(server, _, range)| (*server, range.clone())).collect::<Vec<_>>(), [(only, 0..MIB)]);
        last = again[0].1;
    }
    assert_eq!(plan.handle_arrived(last, 0..MIB, now), MIB);
    assert!(plan.is_done() && plan.is_complete(file));
}

#[test]
fn who_is_heard_again_is_not_told_the_same_twice() {
    let mut catalogue = Catalogue::new();
    let only = catalogue.add_server();
    let files: Vec<_> = (0..3).map(|_| catalogue.add_file(Bytes(64 * MIB), &[only]).unwrap()).collect();
    let mut plan = Plan::new(catalogue, Settings::default());
    plan.handle_up(only, ServerProfile::at(Duration::from_millis(10)), Time::ZERO);
    let (mut open, _) = told(&mut plan, Time::ZERO);
    // Silent, and taken for that; then the first mebibyte comes all the same.
    let now = plan.next_timeout(Time::ZERO).expect("it is waited for");
    assert_eq!(told(&mut plan, now), (vec![], vec![]));
    assert!(plan.server(only).is_stalled);
    let mut now = now + PATIENCE / 2;
    while let Some((_, piece, range)) = open.first().cloned() {
        let come = range.start..range.end.min(range.start + MIB);
        assert_eq!(plan.handle_arrived(piece, come.clone(), now), MIB, "nothing comes twice");
        open[0].2.start = come.end;
        open.retain(|(_, _, range)| !range.is_empty());
        let (sent, ended) = told(&mut plan, now);
        assert_eq!(ended, []);
        open.extend(sent);
        now += Duration::from_millis(10);
    }
    assert!(plan.is_done() && files.into_iter().all(|file| plan.is_complete(file)));
    assert_eq!(plan.status().wasted, Bytes(0));
}

/// Dealt beforehand, to one that then dies before another holder comes.
#[test]
fn what_waits_for_a_dead_one_goes_to_the_holder_that_comes() {
    for policy in [Policy::Dynamic, Policy::RoundRobin] {
        let mut catalogue = Catalogue::new();
        let (first, later) = (catalogue.add_server(), catalogue.add_server());
        let file = catalogue.add_file(Bytes(MIB), &[first]).unwrap();
        let mut plan = Plan::new(catalogue, Settings { policy, ..Settings::default() });
        let profile = || ServerProfile::at(Duration::from_millis(10));
        plan.handle_up(first, profile(), Time::ZERO);
        assert_eq!(told(&mut plan, Time::ZERO).0.len(), 1);
        let now = Time::ZERO + Duration::from_secs(1);
        plan.handle_down(first, now);
        plan.handle_holder(file, later);
        assert_eq!(told(&mut plan, now).0, [], "nobody is there");
        plan.handle_up(later, profile(), now);
        let sent: Vec<_> = told(&mut plan, now).0.into_iter().map(|(server, _, range)| (server, range)).collect();
        assert_eq!(sent, [(later, 0..MIB)], "{policy:?}");
    }
}
