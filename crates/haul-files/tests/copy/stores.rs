//! Copies between stores: what the engine asks of one, shown on a store in memory that fails at any operation.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_files::store::{At, Local, Store};
use haul_files::{
    Cancel, CopyError, Destination, Fault, Filter, Options, PullJob, PushJob, Silent, Stop, StoreError, Verify, Why, pull_into,
    push_from, serve_store,
};
use haul_ramstore::memory::{Conditions, pair};
use haul_ramstore::{Operation, Ram};
use haul_units::Bytes;

use crate::fixture::*;

/// Copies `source` of one store to `destination` of another.
pub fn push_between<A: Store, B: Store>(from: &A, source: &Path, to: &B, destination: &Path, options: Options) -> Outcome {
    push_under(Conditions::default(), from, source, to, destination, options)
}

pub fn push_under<A: Store, B: Store>(
    conditions: Conditions,
    from: &A,
    source: &Path,
    to: &B,
    destination: &Path,
    options: Options,
) -> Outcome {
    let job = PushJob { options, ..PushJob::new([source.to_owned()], destination) };
    let (here, there) = pair(conditions);
    let transport = here.transport.clone();
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_store(there, to, &Silent, &Cancel::new()));
        let client = push_from(here, from, &job, &Silent, &Cancel::new());
        transport.kill();
        (client, server.join().unwrap())
    });
    let (blocks, bytes) = transport.sent();
    Outcome { client, server, blocks, bytes }
}

/// Files of one piece, of several, and of none.
const FILES: [(&str, usize); 5] =
    [("tree/a", 3000), ("tree/empty", 0), ("tree/d/large", 3 << 20), ("tree/d/e/deep", 70_000), ("tree/z", 10)];

fn source() -> Ram {
    let ram = Ram::new();
    for (seed, (path, length)) in FILES.into_iter().enumerate() {
        ram.put(path, noise(length, seed as u64));
    }
    ram
}

/// A destination in which two of the names are taken already.
fn destination() -> Ram {
    let ram = Ram::new();
    for path in ["tree/a", "tree/d/large"] {
        ram.put(path, "old");
    }
    ram
}

fn copy(from: &Ram, to: &Ram, options: Options) -> Outcome {
    push_between(from, Path::new("tree"), to, Path::new(""), options)
}

/// Every name has all of the new file, or what it had before.
fn assert_old_or_new(to: &Ram, when: &str) {
    for (seed, (path, length)) in FILES.into_iter().enumerate() {
        let there = to.get(path);
        let old = destination().get(path);
        assert!(there == old || there == Some(noise(length, seed as u64)), "{path} is neither, {when}");
    }
}

fn assert_complete(to: &Ram, when: &str) {
    for (seed, (path, length)) in FILES.into_iter().enumerate() {
        assert!(to.get(path) == Some(noise(length, seed as u64)), "{path}, {when}");
    }
    assert_eq!(to.stages(), 0, "{when}");
}

#[test]
fn a_tree_is_the_same_after_a_way_through_another_store() {
    let p = places();
    let tree = p.from.join("tree");
    write(tree.join("a"), noise(3000, 1));
    write(tree.join("sub/large"), noise(3 << 20, 2));
    write(tree.join("sub/empty"), "");
    fs::create_dir(tree.join("nothing in it")).unwrap();
    fs::hard_link(tree.join("a"), tree.join("sub/again")).unwrap();
    std::os::unix::fs::symlink("../a", tree.join("sub/link")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(tree.join("a"), private).unwrap();
    let ram = Ram::new();
    push_between(&Local::own(), &tree, &ram, Path::new(""), preserving()).clean();
    assert_eq!(ram.get("tree/sub/large"), Some(noise(3 << 20, 2)));
    assert_eq!(ram.peek("tree/a").unwrap().identity, ram.peek("tree/sub/again").unwrap().identity);
    push_between(&ram, Path::new("tree"), &Local::own(), &p.to, preserving()).clean();
    assert_same(&tree, &p.to.join("tree"));
    assert_nothing_left(&p.to);
}

/// A process that is killed at any moment, on a machine that loses its power at that moment.
#[test]
fn killed_after_any_operation_it_has_the_old_or_the_new_and_ends_complete() {
    let from = source();
    let mut kills = 0;
    for after in 1.. {
        let to = destination();
        to.kill_after(after);
        let outcome = copy(&from, &to, recursive());
        let when = format!("killed after {after}");
        assert_old_or_new(&to, &when);
        to.heal();
        to.lose_power(after);
        assert_old_or_new(&to, &format!("{when}, power lost"));
        copy(&from, &to, recursive()).clean();
        assert_complete(&to, &when);
        if outcome.client.is_ok() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 30, "{kills}");
}

/// A run that keeps more than the one before gives it to files that are in place, and to parts that are whole.
#[test]
fn a_run_that_keeps_more_gives_it_to_what_is_there_and_sends_nothing_again() {
    let from = source();
    let seen = |ram: &Ram, path: &str| ram.peek(path).map(|there| (there.mode, there.mtime));
    let (mut placed, mut parts) = (0, 0);
    for after in 10.. {
        let to = Ram::new();
        to.kill_after(after);
        let _ = copy(&from, &to, recursive());
        if to.stages() == 0 {
            break;
        }
        let before: Vec<_> = FILES.iter().map(|(path, _)| to.peek(path).map(|there| there.identity)).collect();
        parts += to.parts();
        to.heal();
        copy(&from, &to, preserving()).clean();
        for ((path, _), identity) in FILES.iter().zip(before) {
            assert_eq!(seen(&to, path), seen(&from, path), "{path}, killed after {after}");
            assert!(identity.is_none_or(|identity| identity == to.peek(path).unwrap().identity), "{path} was copied again");
            placed += usize::from(identity.is_some());
        }
        assert_complete(&to, &format!("killed after {after}"));
    }
    assert!(placed > 0 && parts > 0, "{placed} {parts}");
}

/// Without hashes nobody knows what reached the disk: it counts while the machine runs, and no longer.
#[test]
fn what_was_not_hashed_counts_until_the_power_is_lost() {
    let from = source();
    let options = Options { verify: Verify::Off, ..recursive() };
    let mut resumed = Bytes::ZERO;
    for after in (10..80).step_by(3) {
        for loses_power in [false, true] {
            let to = destination();
            to.kill_after(after);
            let _ = copy(&from, &to, options);
            to.heal();
            if loses_power {
                to.lose_power(after);
            }
            let report = copy(&from, &to, options).clean();
            assert_complete(&to, &format!("killed after {after}, power lost: {loses_power}"));
            assert!(!loses_power || report.resumed == Bytes::ZERO, "{report:?}");
            resumed += report.resumed;
        }
    }
    assert!(resumed > Bytes::ZERO);
}

#[test]
fn what_has_ended_well_survives_a_loss_of_power() {
    let from = source();
    for seed in 0..10 {
        let to = destination();
        copy(&from, &to, preserving()).clean();
        to.lose_power(seed);
        assert_complete(&to, "after the end");
    }
}

#[test]
fn an_error_at_any_operation_costs_a_file_or_the_copy_and_no_more() {
    use Operation::*;
    let from = source();
    for operation in [
        Stat,
        Directory,
        MakeDirectory,
        FinishDirectory,
        Stage,
        Append,
        Create,
        SetSize,
        Write,
        Finish,
        Sync,
        ReadBack,
        Commit,
        SyncNames,
        Remove,
    ] {
        for after in [0, 2] {
            let to = destination();
            to.fail(operation, after, StoreError::FAILED);
            let options = Options { verify: Verify::ReadBack, ..preserving() };
            let outcome = copy(&from, &to, options);
            let when = format!("{operation:?} fails after {after}");
            match &outcome.client {
                // Few operations of this kind, or none in this copy.
                Ok(report) if report.problem_count == 0 => assert_complete(&to, &when),
                Ok(report) => assert!(report.problems.iter().all(|problem| problem.fault == Fault::Destination), "{when}"),
                Err(CopyError::Refused(Stop::Destination { .. })) => {}
                Err(error) => panic!("{error}, {when}"),
            }
            assert!(
                after > 0 || operation == Directory || !matches!(&outcome.client, Ok(report) if report.problem_count == 0),
                "{when}"
            );
            assert_old_or_new(&to, &when);
            to.heal();
            copy(&from, &to, options).clean();
            assert_complete(&to, &when);
        }
    }
}

/// What a system could not write it takes for written once it has said so: no later sync tells of it again.
#[test]
fn after_a_sync_that_failed_all_of_it_is_sent_again() {
    let from = source();
    let to = Ram::new();
    for path in ["tree/d/large", "tree/a"] {
        to.fail(Operation::Sync, 0, StoreError::FAILED);
        let copy = || push_between(&from, Path::new(path), &to, Path::new(""), recursive());
        assert!(matches!(copy().client, Err(CopyError::Refused(Stop::Destination { .. }))));
        assert_eq!((to.stages(), to.parts()), (1, 0));
        to.heal();
        let size = from.get(path).unwrap().len() as u64;
        let report = copy().clean();
        assert_eq!((report.files, report.skipped_files, report.bytes, report.resumed), (1, 0, Bytes(size), Bytes::ZERO));
    }
}

/// A part that waits for its name has its mode already, and its user may be allowed no more than to read it.
#[test]
fn a_part_that_can_only_be_read_is_sent_again_where_it_does_not_count() {
    let p = places();
    let (file, to) = (p.from.join("file"), Ram::new());
    write(&file, noise(3 << 20, 1));
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let copy = |verify| push_between(&Local::own(), &file, &to, Path::new(""), Options { verify, ..preserving() });
    to.fail(Operation::Commit, 0, StoreError::FULL);
    assert!(matches!(copy(Verify::Off).client, Err(CopyError::Refused(Stop::DestinationFull { .. }))));
    assert_eq!(to.parts(), 1);
    to.heal();
    // Without hashes it does not count where they are asked for.
    copy(Verify::Arrival).clean();
    assert_eq!(to.get("file"), Some(noise(3 << 20, 1)));
}

#[test]
fn a_source_that_cannot_be_read_costs_that_file() {
    let from = source();
    from.fail(Operation::Open, 1, StoreError::FAILED);
    let to = Ram::new();
    let report = copy(&from, &to, recursive()).partial();
    assert!(report.problem_count >= 1 && report.files >= 1, "{report:?}");
    assert!(report.problems.iter().all(|problem| problem.fault == Fault::Source && matches!(problem.why, Why::Os(_))));
    from.heal();
    copy(&from, &to, recursive()).clean();
    assert_complete(&to, "healed");
}

#[test]
fn without_room_it_stops_clearly_and_goes_on_when_there_is_some() {
    let from = source();
    let to = destination();
    to.limit(Some(2 << 20));
    let outcome = copy(&from, &to, recursive());
    assert!(matches!(outcome.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", outcome.client);
    assert_old_or_new(&to, "full");
    to.limit(None);
    let report = copy(&from, &to, recursive()).clean();
    assert!(report.resumed >= Bytes::mib(1), "{:?}", report.resumed);
    assert_complete(&to, "room");
}

/// A file that could only be written over, and was lost on the way: its part is what there is, and stays.
#[test]
fn where_the_old_file_is_lost_the_copy_ends_and_the_next_run_has_its_part() {
    let (from, to) = (source(), destination());
    to.fail(Operation::Commit, 0, StoreError::Emptied(rustix::io::Errno::IO.raw_os_error()));
    let outcome = copy(&from, &to, recursive());
    let why = StoreError::FAILED.into();
    assert!(matches!(&outcome.client, Err(CopyError::Refused(Stop::Destination { why: told, .. })) if *told == why));
    assert!(to.stages() == 1 && to.parts() > 0);
    to.heal();
    let report = copy(&from, &to, recursive()).clean();
    assert!(report.skipped_files > 0, "{report:?}");
    assert_complete(&to, "healed");
}

#[test]
fn a_store_without_links_says_so() {
    let p = places();
    let tree = p.from.join("tree");
    write(tree.join("a"), "content");
    std::os::unix::fs::symlink("a", tree.join("link")).unwrap();
    let to = Ram::new();
    to.fail(Operation::Symlink, 0, StoreError::UNSUPPORTED);
    let report = push_between(&Local::own(), &tree, &to, Path::new(""), recursive()).partial();
    assert_eq!(report.problem_count, 1);
    assert_eq!(Some(&report.problems[0].why), Some(&StoreError::UNSUPPORTED.into()));
    assert_eq!(to.get("tree/a").unwrap(), b"content");
}

/// A server waits for the stage that an earlier run of the same job has, and its client is killed meanwhile. What that has sent is written nowhere: the
/// run after it may be over by then, and then nobody would come back for the stage.
#[test]
fn who_has_waited_for_a_stage_writes_nothing_for_a_client_that_is_gone() {
    for killed in [true, false] {
        let (from, to) = (source(), destination());
        let (here, there) = pair(Conditions { arrived: true, ..Conditions::default() });
        let link = here.transport.clone();
        to.before(Operation::Stage, move || {
            wait_until(|| link.sent().0 > 0);
            std::thread::park_timeout(Duration::from_millis(200));
            if killed {
                link.kill();
            }
        });
        let job = PushJob::new([PathBuf::from("tree")], "");
        let (client, server) = std::thread::scope(|scope| {
            let server = scope.spawn(|| serve_store(there, &to, &Silent, &Cancel::new()));
            (push_from(here, &from, &job, &Silent, &Cancel::new()), server.join().unwrap())
        });
        assert_eq!((client.is_err(), server.is_err()), (killed, killed));
        assert_eq!(to.stages(), 0, "killed: {killed}");
        if !killed {
            assert_complete(&to, "waited");
        }
    }
}

/// The sender gives a file up while a block of it is being written: that its part is gone is no second problem.
#[test]
fn a_block_that_is_late_for_a_file_that_was_given_up_is_no_problem() {
    let (from, to) = (Ram::new(), Ram::new());
    from.put("large", noise(20 << 20, 1));
    let (source, store) = (from.clone(), to.clone());
    to.before(Operation::Write, move || {
        source.fail(Operation::Read, 0, StoreError::FAILED);
        wait_until(|| store.parts() == 0);
        store.fail(Operation::Write, 0, StoreError::Missing);
    });
    // The sender cannot have read it to its end by then.
    let conditions = Conditions { capacity: 1, ..Conditions::default() };
    let report = push_under(conditions, &from, Path::new("large"), &to, Path::new(""), Options::default()).partial();
    let whys: Vec<_> = report.problems.iter().map(|problem| &problem.why).collect();
    assert_eq!(whys, [&StoreError::FAILED.into()]);
    assert_eq!((report.files, report.problem_count, to.get("large")), (0, 1, None));
}

#[test]
fn patterns_are_expanded_in_any_store() {
    let (from, to) = (source(), Ram::new());
    let job = PullJob {
        sources: vec!["tree/?".into()],
        destination: Destination::Path("".into()),
        options: Options::default(),
        filter: Filter::default(),
    };
    let (here, there) = pair(Conditions::default());
    let report = std::thread::scope(|scope| {
        scope.spawn(|| serve_store(there, &from, &Silent, &Cancel::new()));
        pull_into(here, &to, &job, &Silent, &Cancel::new())
    });
    // `d` is a directory, and nobody asked for those.
    let report = report.unwrap();
    assert_eq!((report.files, report.problem_count), (2, 1), "{:?}", report.problems);
    assert_eq!((to.get("a"), to.get("z")), (from.get("tree/a"), from.get("tree/z")));
}

#[test]
fn the_room_of_a_directory_is_told() {
    let p = places();
    let local = Local::own();
    let place = local.destination(&p.to.as_path().into(), false).unwrap();
    let space = local.space(&place.root).unwrap();
    assert!(space.total > Bytes(0) && space.free <= space.total, "{space:?}");
    assert!(matches!(local.stat(At::In(&*place.root, b"not there")), Err(StoreError::Missing)));
}
