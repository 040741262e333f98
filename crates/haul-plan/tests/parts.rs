//! Files of which only ranges are needed, and files that are not needed any more.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::ops::Range;
use std::time::Duration;

use haul_plan::{Catalogue, CatalogueError, Event, Order, Plan, Policy, ServerId, ServerProfile, Settings};
use haul_units::{Bytes, Time};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn up(catalogue: Catalogue, servers: &[ServerId], policy: Policy) -> Plan {
    let mut plan = Plan::new(catalogue, Settings { policy, ..Settings::default() });
    for server in servers {
        plan.handle_up(*server, ServerProfile::at(Duration::from_millis(10)), Time::ZERO);
    }
    plan
}

/// All that is told, which arrives at once.
fn told(plan: &mut Plan) -> Vec<(usize, Range<u64>)> {
    let mut told = Vec::new();
    while let Some(order) = plan.poll_order(Time::ZERO) {
        let Order::Send { piece, file, range, .. } = order else { continue };
        assert_eq!(plan.not_come(piece, range.clone()), vec![range.clone(); usize::from(!range.is_empty())]);
        assert_eq!(plan.handle_arrived(piece, range.clone(), Time::ZERO), range.end - range.start);
        told.push((file.index(), range));
    }
    told
}

proptest! {
    #[test]
    fn only_what_is_needed_is_told(
        cuts in proptest::collection::btree_set(1..20 * MIB, 2..12),
        round_robin: bool,
        whole in 0..3 * MIB,
    ) {
        let cuts: Vec<u64> = cuts.into_iter().collect();
        let needed: Vec<Range<u64>> = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        let bytes: u64 = needed.iter().map(|range| range.end - range.start).sum();
        let mut catalogue = Catalogue::new();
        let servers = [catalogue.add_server(), catalogue.add_server()];
        let file = catalogue.add_part(Bytes(20 * MIB), &needed, &servers).unwrap();
        catalogue.add_file(Bytes(whole), &servers).unwrap();
        prop_assert_eq!(catalogue.total().as_u64(), bytes + whole);
        let policy = if round_robin { Policy::RoundRobin } else { Policy::Dynamic };
        let mut plan = up(catalogue, &servers, policy);
        let mut ranges: Vec<Range<u64>> = told(&mut plan).into_iter().filter(|told| told.0 == file.index()).map(|told| told.1).collect();
        ranges.sort_by_key(|range| range.start);
        let joined = ranges.into_iter().fold(Vec::<Range<u64>>::new(), |mut joined, range| {
            match joined.last_mut().filter(|last| last.end == range.start && !needed.iter().any(|range| range.start == last.end)) {
                Some(last) => last.end = range.end,
                None => joined.push(range),
            }
            joined
        });
        prop_assert_eq!(joined, needed);
        prop_assert!(plan.is_done() && plan.is_complete(file));
        prop_assert_eq!(plan.status().arrived.as_u64(), bytes + whole);
        prop_assert_eq!(plan.status().wasted.as_u64(), 0);
    }
}

#[test]
fn ranges_that_are_not_in_the_file_are_refused() {
    let mut catalogue = Catalogue::new();
    let server = catalogue.add_server();
    let mut refused = |needed: &[Range<u64>]| catalogue.add_part(Bytes(10), needed, &[server]).unwrap_err();
    let backwards = [4..6, 2..3];
    let beyond = [0..1, 5..11];
    assert_eq!(refused(&backwards), CatalogueError::NotInFile);
    assert_eq!(refused(&beyond), CatalogueError::NotInFile);
    assert_eq!(refused(&[]), CatalogueError::NotInFile);
}

#[test]
fn what_is_not_needed_any_more_is_not_told_and_what_was_told_ends() {
    let mut catalogue = Catalogue::new();
    let server = catalogue.add_server();
    let first = catalogue.add_file(Bytes(50 * MIB), &[server]).unwrap();
    let second = catalogue.add_file(Bytes(MIB), &[server]).unwrap();
    let third = catalogue.add_file(Bytes(2 * MIB), &[server]).unwrap();
    let mut plan = up(catalogue, &[server], Policy::Dynamic);
    let Some(Order::Send { piece, file, .. }) = plan.poll_order(Time::ZERO) else { panic!("work") };
    assert_eq!(file, first);
    // Begun, and not begun.
    plan.handle_unwanted(first, Time::ZERO);
    plan.handle_unwanted(second, Time::ZERO);
    plan.handle_unwanted(second, Time::ZERO);
    let mut orders = Vec::new();
    while let Some(order) = plan.poll_order(Time::ZERO) {
        if let Order::Send { piece, file, range, .. } = &order {
            assert_eq!(*file, third);
            plan.handle_arrived(*piece, range.clone(), Time::ZERO);
        }
        orders.push(order);
    }
    assert!(orders.contains(&Order::Shorten { piece, server, end: 0 }), "{orders:?}");
    assert!(plan.is_done() && plan.not_come(piece, 0..MIB).is_empty());
    assert_eq!(plan.poll_event(), Some(Event::Complete(third)));
    assert_eq!(plan.poll_event(), None);
    assert_eq!(plan.status().in_flight.as_u64(), 0);
}

/// A file that nobody holds any more is let go by its driver, and the rest ends.
#[test]
fn a_lost_file_can_be_let_go() {
    let mut catalogue = Catalogue::new();
    let server = catalogue.add_server();
    let lost = catalogue.add_file(Bytes(9 * MIB), &[server]).unwrap();
    let mut plan = up(catalogue, &[server], Policy::Dynamic);
    let Some(Order::Send { piece, .. }) = plan.poll_order(Time::ZERO) else { panic!("work") };
    plan.handle_unfit(piece, Time::ZERO);
    assert_eq!(plan.poll_event(), Some(Event::Lost(lost)));
    assert!(!plan.is_done());
    plan.handle_unwanted(lost, Time::ZERO);
    assert!(plan.is_done());
}
