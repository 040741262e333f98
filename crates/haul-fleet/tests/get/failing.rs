//! Members that go, files that go, and downloads that are stopped: what is left ends right, or goes on later.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use haul::Connection;
use haul_files::{Cancel, Why};
use haul_fleet::{Begin, GetError, JobEvent, Member, get};
use haul_units::BitRate;

use crate::fixture::*;

/// Limits members, so that a download lasts, and gives the connection of one.
fn limited(members: &mut [Member], bps: u64) -> Connection {
    for member in members.iter_mut() {
        member.limit = Some(BitRate::from_bps(bps));
    }
    members[0].connection.clone()
}

#[test]
fn a_member_that_dies_is_named_and_others_do_its_work() {
    let p = places();
    for name in ["a", "b", "c"] {
        p.file(name, "set/large", &pattern(24 << 20, 1));
        for i in 0..50 {
            p.file(name, &format!("set/{i}"), &pattern(40_000, i));
        }
    }
    let mut members = p.members(&["a", "b", "c"]);
    let connection = limited(&mut members, 200_000_000);
    let killed = AtomicBool::new(false);
    let kill = |event: &JobEvent<'_>| {
        // In the middle: it has sent something, and has more to send.
        if let JobEvent::Progress(now) = event
            && now.members[0].delivered.as_u64() > 0
            && now.members[0].outstanding.as_u64() > 0
            && !killed.swap(true, Ordering::SeqCst)
        {
            connection.close(1, "killed");
        }
    };
    let report = get(members, &job(&["set"], &p.to), &Watch(kill), &Cancel::new()).unwrap();
    assert!(killed.into_inner());
    assert_eq!((report.files.files, report.files.problem_count), (51, 0));
    assert!(
        tree(&p.to.join("set"))
            .into_values()
            .map(|thing| thing.2)
            .eq(tree(&p.of("b").join("set")).into_values().map(|thing| thing.2))
    );
    assert!(report.members[0].down.is_some() && report.members[0].is_listed);
    assert!(report.members[1].down.is_none() && report.members[2].down.is_none());
}

/// An observer that panics, on whichever thread it was told something, ends the job with that panic: nobody waits for ever.
#[test]
fn a_panic_of_the_observer_ends_the_job() {
    let panics: [&(dyn Fn(&JobEvent<'_>) -> bool + Send + Sync); 4] = [
        &|event| matches!(event, JobEvent::Up { .. }),
        &|event| matches!(event, JobEvent::Ordered { .. }),
        &|event| matches!(event, JobEvent::Progress(_)),
        // Told by the receiver.
        &|event| matches!(event, JobEvent::FileFinished { .. }),
    ];
    for when in panics {
        let p = places();
        for name in ["a", "b"] {
            p.file(name, &format!("set/{name}"), &pattern(3 << 20, 1));
            p.file(name, "set/both", &pattern(3 << 20, 2));
        }
        let (members, job) = (p.members(&["a", "b"]), job(&["set"], &p.to));
        let watch = Watch(|event: &JobEvent<'_>| assert!(!when(event), "the observer's own"));
        let run = std::panic::AssertUnwindSafe(|| get(members, &job, &watch, &Cancel::new()));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

/// A file that goes or changes on one member comes from the others; where there is no other, it is a problem and the rest goes on.
#[test]
fn files_that_go_behind_our_back() {
    let p = places();
    for name in ["a", "b"] {
        for file in ["gone", "changed", "well"] {
            p.file(name, &format!("set/{file}"), &pattern(3 << 20, 1));
        }
    }
    p.file("a", "set/only", &pattern(2 << 20, 2));
    p.file("a", "set/small", b"small");
    let of_a = p.of("a").join("set");
    let (unfit, problems) = (std::sync::Mutex::new(Vec::new()), std::sync::Mutex::new(Vec::new()));
    let watch = |event: &JobEvent<'_>| match event {
        JobEvent::Found { complete: true, .. } => {
            for file in ["gone", "only", "small"] {
                fs::remove_file(of_a.join(file)).unwrap();
            }
            fs::write(of_a.join("changed"), b"another").unwrap();
        }
        JobEvent::Unfit { member, path, why } => unfit.lock().unwrap().push(format!("{member} {} {why}", path.display())),
        JobEvent::Problem(problem) => problems.lock().unwrap().push(problem.path.to_string()),
        _ => {}
    };
    let mut job = job(&["set"], &p.to);
    job.begin = Begin::WhenAllAreHeard;
    let report = get(p.members(&["a", "b"]), &job, &Watch(watch), &Cancel::new()).unwrap();
    for file in ["gone", "changed", "well"] {
        assert!(fs::read(p.to.join("set").join(file)).unwrap() == pattern(3 << 20, 1));
    }
    assert!(!p.to.join("set/only").exists() && !p.to.join("set/small").exists());
    assert_eq!((report.files.files, report.files.problem_count), (3, 2));
    assert!(report.files.problems.iter().all(|problem| matches!(problem.why, Why::Os(_))), "{:?}", report.files.problems);
    let mut problems = problems.into_inner().unwrap();
    problems.sort();
    assert_eq!(problems, ["set/only", "set/small"]);
    let unfit = unfit.into_inner().unwrap();
    assert!(unfit.iter().any(|line| line == "a set/only No such file or directory"), "{unfit:?}");
    assert!(unfit.iter().all(|line| line.starts_with("a ")), "{unfit:?}");
    assert!(report.members.iter().all(|member| member.down.is_none()));
}

/// The same job goes on where another was stopped, with other members too, and takes only what is missing.
#[test]
fn what_was_stopped_goes_on() {
    let p = places();
    for name in ["a", "b", "c"] {
        p.file(name, "set/large", &pattern(20 << 20, 1));
        for i in 0..20 {
            p.file(name, &format!("set/{i}"), &pattern(30_000, i));
        }
    }
    let all = (20 << 20) + 20 * 30_000;
    let mut members = p.members(&["a", "b"]);
    limited(&mut members, 80_000_000);
    let cancel = Cancel::new();
    let stop = |event: &JobEvent<'_>| {
        if let JobEvent::Progress(now) = event
            && now.bytes_done.as_u64() > 3 << 20
        {
            cancel.cancel();
        }
    };
    let result = get(members, &job(&["set"], &p.to), &Watch(stop), &cancel);
    assert!(matches!(result, Err(GetError::Cancelled)), "{result:?}");
    assert!(!p.to.join("set/large").exists());
    let report = fetch(p.members(&["c", "b"]), &job(&["set"], &p.to)).unwrap();
    let came = report.files.bytes.as_u64();
    assert!(came > 0 && came < all - (2 << 20), "{came} of {all}");
    assert_eq!(came + report.files.resumed.as_u64() + report.files.skipped.as_u64(), all);
    assert!(fs::read(p.to.join("set/large")).unwrap() == pattern(20 << 20, 1));
    assert_eq!(fs::read_dir(&p.to).unwrap().count(), 1, "the stage is gone");
}

/// When all are gone, what has arrived stays for the next run.
#[test]
fn when_all_are_gone_what_came_is_kept() {
    let p = places();
    p.file("a", "large", &pattern(16 << 20, 1));
    p.file("b", "other", b"other");
    let mut members = p.members(&["a", "b"]);
    limited(&mut members, 80_000_000);
    let connections: Vec<Connection> = members.iter().map(|member| member.connection.clone()).collect();
    let kill = |only: usize| {
        let connections = connections.clone();
        move |event: &JobEvent<'_>| {
            if let JobEvent::Progress(now) = event
                && now.bytes_done.as_u64() > 3 << 20
            {
                connections[..only].iter().for_each(|connection| connection.close(1, "killed"));
            }
        }
    };
    let result = get(members, &job(&["large", "other"], &p.to), &Watch(kill(1)), &Cancel::new());
    let Err(GetError::OutOfReach { files: 1, members, .. }) = result else { panic!("{result:?}") };
    assert_eq!((members.len(), &*members[0].0), (1, "a"));
    let report = fetch(p.members(&["a", "b"]), &job(&["large", "other"], &p.to)).unwrap();
    assert!(report.files.bytes.as_u64() < 15 << 20, "{}", report.files.bytes);
    assert!(fs::read(p.to.join("large")).unwrap() == pattern(16 << 20, 1));
    assert_eq!(fs::read(p.to.join("other")).unwrap(), b"other");

    let members = p.members(&["a", "b"]);
    for member in &members {
        member.connection.close(1, "killed");
    }
    let result = fetch(members, &job(&["large"], &p.to.join("x")));
    let Err(GetError::AllDown { members }) = result else { panic!("{result:?}") };
    assert_eq!(members.len(), 2);
    assert!(matches!(fetch(Vec::new(), &job(&["large"], &p.to)), Err(GetError::NoMembers)));
}

/// All members together keep to the limit: counted in the time that the job itself tells.
#[test]
fn all_together_keep_to_the_limit() {
    let p = places();
    for name in ["a", "b"] {
        p.file(name, "large", &pattern(8 << 20, 1));
    }
    let mut limited = job(&["large"], &p.to);
    limited.limit = Some(BitRate::from_bps(100_000_000)).into();
    let report = fetch(p.members(&["a", "b"]), &limited).unwrap();
    // 64 Mbit and no less; a block or two may be there before it counts.
    assert!(report.elapsed.as_secs_f64() > 0.5, "{:?}", report.elapsed);
    assert!(fs::read(p.to.join("large")).unwrap() == pattern(8 << 20, 1));
}
