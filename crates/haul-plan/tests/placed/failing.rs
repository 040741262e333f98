//! Files that a member could not keep, and says so after those that were given to it later are finished.

use std::time::Duration;

use haul_plan::{Placement, PlacementPolicy, PlacementSettings, Task};
use haul_units::{Bytes, Time};

use crate::world::{Site, play};

const RTT: Duration = Duration::from_millis(100);
const SIZE: u64 = 1_000_000;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// So many members with the same files, which each of them was given in this order.
fn given(members: usize, files: usize) -> (Placement, Vec<Vec<u32>>) {
    let mut placement = Placement::new(PlacementSettings { replicas: members, ..PlacementSettings::default() }, members);
    (0..members).for_each(|member| placement.handle_up(member, RTT, at(0)));
    for _ in 0..files {
        let file = placement.add_file(Bytes(SIZE));
        placement.release(file);
    }
    placement.complete();
    let mut order = vec![Vec::new(); members];
    for (member, order) in order.iter_mut().enumerate() {
        while let Task::Take(file) = placement.poll(member, at(0)) {
            order.push(file);
        }
        assert_eq!(order.len(), files);
    }
    (placement, order)
}

#[test]
fn every_file_is_on_living_members_although_some_of_them_fail_late() {
    for (policy, replicas) in PlacementPolicy::NAMES.into_iter().flat_map(|(_, policy)| [(policy, 1), (policy, 2)]) {
        let settings = PlacementSettings { policy, replicas, ..PlacementSettings::default() };
        let mut sites: Vec<Site> = (0..3).map(|_| Site::new(125e6, RTT)).collect();
        sites[0].fails = (0..200).step_by(3).collect();
        sites[1].fails = (0..200).step_by(7).filter(|file| file % 3 != 0).collect();
        let played = play(settings, &sites, &[5_000_000; 200], 1.25e9);
        assert!(played.short.is_empty(), "{policy:?}: {:?}", played.short);
        assert!(played.held.iter().all(|held| held.len() == replicas), "{policy:?}: {:?}", played.held);
    }
}

#[test]
fn a_file_that_fails_when_another_was_taken_for_it_does_not_stay_under_way() {
    let (mut placement, order) = given(1, 3);
    let [first, second, third] = order[0][..] else { panic!("{order:?}") };
    // The second is finished: by its word, one is.
    placement.handle_progress(0, Bytes(SIZE), 1, at(500));
    assert_eq!(placement.poll_finished(), Some((0, first)));
    placement.handle_unfit(0, first);
    assert!(!placement.is_settled(), "the third is not finished");
    assert_eq!(placement.load(0, at(500)).0, Bytes(SIZE));
    placement.handle_progress(0, Bytes(2 * SIZE), 2, at(1000));
    let finished: Vec<_> = std::iter::from_fn(|| placement.poll_finished()).collect();
    assert_eq!(finished, [(0, second), (0, third)]);
    assert!(placement.is_settled(), "all that can be placed is");
    assert_eq!((placement.finished_files(0), placement.short().collect::<Vec<_>>()), (2, vec![(first, 0)]));
}

#[test]
fn a_file_that_cannot_be_read_for_one_member_may_have_gone_to_another() {
    let (mut placement, order) = given(2, 2);
    let [first, _] = order[0][..] else { panic!("{order:?}") };
    // The one has the second and not the first, the other has both.
    placement.handle_progress(0, Bytes(SIZE), 1, at(500));
    placement.handle_lost(0, first);
    placement.handle_progress(1, Bytes(SIZE), 1, at(500));
    assert!(!placement.is_settled(), "the other's second is not finished");
    placement.handle_progress(1, Bytes(2 * SIZE), 2, at(1000));
    placement.poll(0, at(1000));
    assert!(placement.is_settled(), "all is where it can be");
    assert_eq!(placement.short().next(), None, "what cannot be read is nobody's");
    // Said again, it changes nothing more.
    let (mut placement, order) = given(1, 2);
    (0..3).for_each(|_| placement.handle_lost(0, order[0][0]));
    assert!(!placement.is_settled());
    placement.handle_progress(0, Bytes(SIZE), 1, at(500));
    assert!(placement.is_settled());
}
