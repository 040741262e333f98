//! Uploads over loopback: servers of copies in this process, each with a directory of its own.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod fixture;
#[path = "../common/loopback.rs"]
mod loopback;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fixture::*;
use haul_files::Filter;
use haul_fleet::{JobEvent, JobObserver, PlacementPolicy, PutError, PutJob, Unwatched, put};
use haul_units::{BitRate, Cancel};

#[test]
fn every_file_is_on_one_member_and_the_tree_on_all() {
    let (fleet, from) = (Servers::start(3), tree(60));
    let said = Said::default();
    let mut job = job(&from, 1);
    job.options.preserve = true;
    let report = put(fleet.members(), &job, &said, &Cancel::new()).unwrap();
    assert_eq!((report.files.files, report.files.problem_count, report.files.symlinks), (63, 0, 1), "{report:?}");
    assert_placed(&fleet, &from, 1, &[]);
    for home in &fleet.homes {
        let made = home.path().join("data/tree");
        assert_eq!(fs::read_link(made.join("link")).unwrap(), Path::new("f1"));
        assert!(made.join("none").is_dir());
        assert_eq!(fs::metadata(made.join("d")).unwrap().permissions().mode() & 0o777, 0o750);
        for path in files(&made) {
            let (there, here) =
                (fs::metadata(made.join(&path)).unwrap(), fs::metadata(from.path().join("tree").join(&path)).unwrap());
            assert_eq!(
                (there.mtime(), there.mtime_nsec(), there.mode()),
                (here.mtime(), here.mtime_nsec(), here.mode()),
                "{path}"
            );
        }
    }
    // What was told: each file given once and finished once, and all of it found.
    let said = said.0.into_inner().unwrap();
    assert_eq!((said.ordered.len(), said.finished.len(), said.up), (63, 63, 3));
    assert!(said.ordered.values().chain(said.finished.values()).all(|times| *times == 1));
    assert_eq!(report.members.iter().map(|member| member.files).sum::<u64>(), 63);
    assert_eq!(said.found, 63);
}

#[test]
fn replicas_are_on_different_members_whatever_the_policy() {
    for policy in [PlacementPolicy::Dynamic, PlacementPolicy::RoundRobin, PlacementPolicy::Space] {
        let (fleet, from) = (Servers::start(3), tree(20));
        let job = PutJob { policy, ..job(&from, 2) };
        let report = put(fleet.members(), &job, &Unwatched, &Cancel::new()).unwrap();
        assert_eq!((report.files.files, report.files.problem_count), (46, 0));
        assert_placed(&fleet, &from, 2, &[]);
    }
}

/// The connection of a member breaks when it has got a few files.
#[test]
fn what_a_member_had_that_dies_goes_to_others() {
    let (fleet, from) = (Servers::start(3), tree(60));
    let members = fleet.members();
    let (victim, seen) = (members[1].connection.clone(), AtomicU64::new(0));
    let watch = |event: &JobEvent<'_>| {
        if let JobEvent::FileFinished { member: Some("m1"), .. } = event
            && seen.fetch_add(1, Ordering::SeqCst) == 2
        {
            victim.close(7, "gone");
        }
    };
    // Slow enough that there is a middle.
    let job = PutJob { limit: Some(BitRate::mbps(40)).into(), ..job(&from, 2) };
    let report = put(members, &job, &Watch(watch), &Cancel::new()).unwrap();
    assert!(seen.load(Ordering::SeqCst) > 2, "it did not die");
    assert_eq!(report.files.problem_count, 0, "{:?}", report.files.problems);
    assert!(report.members[1].down.is_some());
    assert_placed(&fleet, &from, 2, &[1]);
}

#[test]
fn with_too_few_members_left_each_file_is_named() {
    let (fleet, from) = (Servers::start(2), tree(10));
    let members = fleet.members();
    members[0].connection.close(7, "gone");
    let report = put(members, &job(&from, 2), &Unwatched, &Cancel::new()).unwrap();
    assert_eq!(report.files.problem_count, 13);
    assert_eq!(report.files.files, 13);
}

#[test]
fn cancelled_it_goes_on_where_it_was() {
    let (fleet, from) = (Servers::start(3), tree(60));
    let (cancel, seen) = (Cancel::new(), AtomicU64::new(0));
    let watch = |event: &JobEvent<'_>| {
        if let JobEvent::FileFinished { .. } = event
            && seen.fetch_add(1, Ordering::SeqCst) == 20
        {
            cancel.cancel();
        }
    };
    let slow = PutJob { limit: Some(BitRate::mbps(40)).into(), ..job(&from, 1) };
    let result = put(fleet.members(), &slow, &Watch(watch), &cancel);
    assert!(matches!(result, Err(PutError::Cancelled)), "{result:?}");
    let report = put(fleet.members(), &job(&from, 1), &Unwatched, &Cancel::new()).unwrap();
    assert_eq!(report.files.problem_count, 0, "{:?}", report.files.problems);
    assert!(report.files.skipped_files >= 20, "{}", report.files.skipped_files);
    assert_placed(&fleet, &from, 1, &[]);
}

/// An observer that panics ends the job with that panic: nobody waits for ever.
#[test]
fn a_panic_of_the_observer_ends_the_job() {
    let panics: [fn(&JobEvent<'_>) -> bool; 3] = [
        |event| matches!(event, JobEvent::Up { .. }),
        |event| matches!(event, JobEvent::Ordered { .. }),
        |event| matches!(event, JobEvent::FileFinished { .. }),
    ];
    for when in panics {
        let (fleet, from) = (Servers::start(2), tree(20));
        let (members, job) = (fleet.members(), job(&from, 1));
        let panicking = Panicking(when);
        let run = std::panic::AssertUnwindSafe(|| put(members, &job, &panicking, &Cancel::new()));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

struct Panicking(fn(&JobEvent<'_>) -> bool);

impl JobObserver for Panicking {
    fn event(&self, event: &JobEvent<'_>) {
        assert!(!(self.0)(event), "the observer's own");
    }
}

/// With `skip_same`, what a member has counts, whoever put it there, and nothing is sent again.
#[test]
fn what_members_have_counts_as_placed() {
    let (fleet, from) = (Servers::start(3), tree(30));
    let mut job = job(&from, 1);
    job.options.skip_same = true;
    put(fleet.members(), &job, &Unwatched, &Cancel::new()).unwrap();
    assert_placed(&fleet, &from, 1, &[]);
    fs::write(from.path().join("tree/d/f3"), "new content").unwrap();
    let report = put(fleet.members(), &job, &Unwatched, &Cancel::new()).unwrap();
    assert_eq!((report.files.files, report.files.skipped_files), (1, 32));
    // The old content of the one that changed may be on another member still.
    let placed = placed(&fleet, &[]);
    assert!(placed.iter().filter(|(path, _)| *path != "d/f3").all(|(path, on)| on.len() == 1 || panic!("{path} is on {on:?}")));
    assert!(placed["d/f3"].iter().any(|at| fs::read(fleet.homes[*at].path().join("data/tree/d/f3")).unwrap() == b"new content"));
}

/// What is left out is on no member, and what is below it is not looked at.
#[test]
fn what_is_excluded_goes_to_nobody() {
    let (fleet, from) = (Servers::start(2), tree(6));
    let mut job = job(&from, 2);
    job.filter = Filter::new(["/tree/d/".to_owned(), "f*".to_owned(), "!f1".to_owned()]).unwrap();
    let report = put(fleet.members(), &job, &Unwatched, &Cancel::new()).unwrap();
    assert_eq!((report.files.problem_count, report.files.left_out), (0, 4), "{report:?}");
    for home in &fleet.homes {
        assert_eq!(files(&home.path().join("data/tree")), ["empty", "f1", "large"]);
    }
}

/// A member with a file where a directory is to be gets nothing below it; one whose destination is a file gets nothing at all.
#[test]
fn what_a_member_cannot_have_goes_to_others() {
    let (fleet, from) = (Servers::start(3), tree(30));
    fs::create_dir_all(fleet.homes[0].path().join("data/tree")).unwrap();
    fs::write(fleet.homes[0].path().join("data/tree/d"), "in the way").unwrap();
    fs::write(fleet.homes[1].path().join("data"), "in the way").unwrap();
    let report = put(fleet.members(), &job(&from, 1), &Unwatched, &Cancel::new()).unwrap();
    // The directory is named, for nothing of it is there.
    assert!((1..=2).contains(&report.files.problem_count), "{:?}", report.files.problems);
    let placed = placed(&fleet, &[1]);
    for path in files(&from.path().join("tree")) {
        let on = &placed[&path];
        assert!(on.len() == 1 || path == "d", "{path} is on {on:?}");
        assert!(!path.starts_with("d/") || on == &[2], "{path} is on {on:?}");
    }
}

/// The same of members that are asked first what they have: that they lack nothing of what they cannot take does not count as there.
#[test]
fn what_an_asked_member_cannot_have_goes_to_others_or_is_named() {
    let (fleet, from) = (Servers::start(2), tree(12));
    let there = fleet.homes[0].path().join("data/tree");
    fs::create_dir_all(there.join("f1")).unwrap();
    fs::write(there.join("d"), "in the way").unwrap();
    (0..4).for_each(|file| fs::write(from.path().join(format!("tree/d/empty{file}")), "").unwrap());
    // What a copy that was interrupted has left in the source, and nobody takes.
    let left = from.path().join("tree/.haul-1234abcd");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("p1"), "a part").unwrap();
    let mut job = job(&from, 1);
    job.options.skip_same = true;
    let (cancel, seen) = (Cancel::new(), AtomicU64::new(0));
    let watch = |event: &JobEvent<'_>| {
        // A fifth of a second each: it takes one or two.
        if matches!(event, JobEvent::Progress(_)) && seen.fetch_add(1, Ordering::SeqCst) == 150 {
            cancel.cancel();
        }
    };
    let report = put(fleet.members(), &job, &Watch(watch), &cancel).unwrap();
    let mut problems: Vec<String> = report.files.problems.iter().map(|problem| problem.path.to_string()).collect();
    problems.sort();
    // Each member tells of the directory that it does not make, by its own path.
    assert_eq!(problems, ["data/tree/.haul-1234abcd", "data/tree/.haul-1234abcd", "data/tree/d", "tree/.haul-1234abcd/p1"]);
    let placed = placed(&fleet, &[]);
    for path in files(&from.path().join("tree")).into_iter().filter(|path| !path.starts_with(".haul")) {
        let on = &placed[&path];
        assert_eq!(on.len(), 1, "{path} is on {on:?}");
        assert!(!path.starts_with("d/") && path != "f1" || on == &[1], "{path} is on {on:?}");
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused_before_anything_is_sent() {
    let from = tree(1);
    let nobody = put(Vec::new(), &job(&from, 1), &Unwatched, &Cancel::new());
    assert!(matches!(nobody, Err(PutError::NoMembers)));
    let fleet = Servers::start(1);
    let twice = put(fleet.members(), &job(&from, 2), &Unwatched, &Cancel::new());
    assert!(matches!(twice, Err(PutError::Replicas { replicas: 2, members: 1 })));
}

#[derive(Default)]
struct Told {
    ordered: BTreeMap<String, u64>,
    finished: BTreeMap<String, u64>,
    found: u64,
    up: u64,
}

#[derive(Default)]
struct Said(Mutex<Told>);

impl JobObserver for Said {
    fn event(&self, event: &JobEvent<'_>) {
        let mut told = self.0.lock().unwrap();
        match event {
            JobEvent::Ordered { path, .. } => *told.ordered.entry(path.display().to_string()).or_default() += 1,
            JobEvent::FileFinished { path, .. } => *told.finished.entry(path.display().to_string()).or_default() += 1,
            JobEvent::Found { files, .. } => told.found = *files,
            JobEvent::Up { .. } => told.up += 1,
            _ => {}
        }
    }
}

struct Watch<F>(F);

impl<F: Fn(&JobEvent<'_>) + Send + Sync> JobObserver for Watch<F> {
    fn event(&self, event: &JobEvent<'_>) {
        (self.0)(event);
    }
}

/// A tree of so many files and three more: an empty one, a large one, one deeper down.
fn tree(files: usize) -> tempfile::TempDir {
    let from = tempfile::tempdir().unwrap();
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("d/e")).unwrap();
    fs::create_dir(tree.join("none")).unwrap();
    for file in 0..files {
        let dir = if file % 3 == 0 { "d/" } else { "" };
        fs::write(tree.join(format!("{dir}f{file}")), noise(10_000 + file * 3_000, file as u64)).unwrap();
    }
    fs::write(tree.join("empty"), "").unwrap();
    fs::write(tree.join("large"), noise(5 << 20, 77)).unwrap();
    fs::write(tree.join("d/e/deep"), noise(70_000, 78)).unwrap();
    symlink("f1", tree.join("link")).unwrap();
    fs::set_permissions(tree.join("d"), fs::Permissions::from_mode(0o750)).unwrap();
    from
}

fn job(from: &tempfile::TempDir, replicas: usize) -> PutJob {
    let mut job = PutJob::new(vec![from.path().join("tree")], "data");
    (job.options.recursive, job.replicas, job.pause) = (true, replicas, Duration::ZERO);
    job
}
