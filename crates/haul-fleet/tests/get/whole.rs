//! Downloads that end well.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use haul_files::Cancel;
use haul_fleet::{Begin, GetError, Here, JobEvent, ReplicasBy, get};
use haul_units::BitRate;

use crate::fixture::*;

#[test]
fn a_tree_that_lies_spread_comes_whole_with_its_metadata() {
    let p = places();
    // What there is, and who has it: alone, two of them, all.
    let holders = [&["a"][..], &["b"], &["c"], &["a", "b"], &["b", "c"], &["a", "b", "c"]];
    for i in 0..120 {
        for member in ["all"].iter().chain(holders[i % holders.len()]) {
            p.file(member, &format!("set/{}/f{i}", i % 7), &pattern(i * 97, i));
        }
    }
    for member in ["all", "a", "c"] {
        p.file(member, "set/large/l", &pattern(5_000_000, 3));
        p.file(member, "set/empty", b"");
        symlink("large/l", p.of(member).join("set/link")).unwrap();
        fs::create_dir_all(p.of(member).join("set/hollow")).unwrap();
    }
    let secret = p.of("all").join("set/3/f3");
    for file in [secret, p.of("a").join("set/3/f3"), p.of("b").join("set/3/f3")] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let report = fetch(p.members(&["a", "b", "c"]), &job(&["set"], &p.to)).unwrap();
    assert_eq!((report.files.files, report.files.problem_count, report.files.symlinks), (122, 0, 1));
    let (mut want, mut got) = (tree(&p.of("all").join("set")), tree(&p.to.join("set")));
    // The times of links and directories are the members', which were made one after the other.
    for tree in [&mut want, &mut got] {
        tree.values_mut().filter(|thing| thing.0 & 0o170_000 != 0o100_000).for_each(|thing| thing.1 = 0);
    }
    assert!(want == got);
    assert!(report.members.iter().all(|member| member.is_listed && member.down.is_none() && member.files > 0));
    // Once more: all is there.
    let mut again = job(&["set"], &p.to);
    again.options.update = true;
    let report = fetch(p.members(&["c", "a", "b"]), &again).unwrap();
    assert_eq!((report.files.files, report.files.skipped_files, report.files.bytes.as_u64()), (0, 122, 0));
}

#[test]
fn one_file_comes_from_all_its_replicas() {
    let p = places();
    let content = pattern(24 << 20, 1);
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        p.file(name, "large", &content);
        let mut member = serving(name, &p.of(name));
        member.limit = Some(BitRate::from_bps(150_000_000));
        members.push(member);
    }
    let heard = Heard::default();
    let report = get(members, &job(&["large"], &p.to.join("name")), &heard, &Cancel::new()).unwrap();
    assert!(fs::read(p.to.join("name")).unwrap() == content);
    assert_eq!((report.files.files, report.files.bytes.as_u64()), (1, 24 << 20));
    let delivered: Vec<u64> = report.members.iter().map(|member| member.delivered.as_u64()).collect();
    assert_eq!(delivered.iter().sum::<u64>(), 24 << 20);
    assert!(delivered.iter().all(|bytes| *bytes >= 1 << 20), "{delivered:?}");
    let heard = heard.0.into_inner().unwrap();
    assert!(heard.iter().any(|event| event.starts_with("FileFinished")), "{heard:?}");
}

/// Who handles what comes slower than it comes says all the same how far it is, again and again.
#[test]
fn news_of_progress_does_not_wait_until_nothing_waits() {
    let p = places();
    for member in ["a", "b", "c"] {
        for i in 0..16 {
            p.file(member, &format!("set/{member}{i}"), &pattern(1 << 20, i));
        }
    }
    let told = std::sync::Mutex::new(String::new());
    let slow = Watch(|event: &JobEvent<'_>| match event {
        JobEvent::Delivered { .. } => {
            told.lock().unwrap().push('d');
            std::thread::park_timeout(std::time::Duration::from_millis(40));
        }
        JobEvent::Progress(_) => told.lock().unwrap().push('p'),
        _ => {}
    });
    get(p.members(&["a", "b", "c"]), &job(&["set"], &p.to), &slow, &Cancel::new()).unwrap();
    let told = told.into_inner().unwrap();
    let longest = told.split('p').map(str::len).max().unwrap();
    assert!(longest <= 12, "told between deliveries: {told}");
}

#[test]
fn holes_stay_holes() {
    let p = places();
    for name in ["a", "b"] {
        p.file(name, "sparse", b"");
        let file = fs::File::options().write(true).open(p.of(name).join("sparse")).unwrap();
        file.set_len(32 << 20).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, &pattern(100_000, 2), 9 << 20).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
        file.set_modified(time).unwrap();
    }
    let report = fetch(p.members(&["a", "b"]), &job(&["sparse"], &p.to)).unwrap();
    assert!(report.files.bytes.as_u64() < 8 << 20, "{}", report.files.bytes);
    assert!(fs::read(p.to.join("sparse")).unwrap() == fs::read(p.of("a").join("sparse")).unwrap());
}

#[test]
fn two_contents_under_one_name_are_an_error_before_anything_is_written_where_all_are_waited_for() {
    let p = places();
    p.file("a", "set/one", b"1");
    p.file("b", "set/two", b"2");
    p.file("a", "set/sub/same", b"this");
    p.file("b", "set/sub/same", b"other");
    let mut job = job(&["set"], &p.to);
    job.begin = Begin::WhenAllAreHeard;
    let error = fetch(p.members(&["a", "b"]), &job).unwrap_err();
    let GetError::Conflict { path, mut first, second, here: Here::Untouched } = error else { panic!("{error:?}") };
    first.push_str(&second);
    assert_eq!(path.to_str().unwrap(), "set/sub/same");
    assert!(first == "ab" || first == "ba", "{first}");
    assert!(tree(&p.to).is_empty());
}

/// By hash, files of one size whose times differ are compared: what is equal is one file that comes from both.
#[test]
fn equal_content_with_different_times_is_a_replica_where_that_is_asked() {
    let p = places();
    let content = pattern(24 << 20, 4);
    p.file("a", "set/large", &content);
    p.file("b", "set/large", &content);
    p.file("c", "set/small", b"one");
    p.file("a", "set/small", b"one");
    let other = |member: &str, path: &str| {
        let file = fs::File::options().write(true).open(p.of(member).join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000)).unwrap();
    };
    other("b", "set/large");
    other("c", "set/small");
    // All are waited for, or a file that one has listed may be in place before another contradicts.
    let mut by_time = job(&["set"], &p.to);
    by_time.begin = Begin::WhenAllAreHeard;
    let by_time = fetch(p.members(&["a", "b", "c"]), &by_time).unwrap_err();
    assert!(matches!(by_time, GetError::Conflict { .. }), "{by_time:?}");
    let mut by_hash = job(&["set"], &p.to);
    by_hash.replicas_by = ReplicasBy::Hash;
    let mut members = p.members(&["a", "b", "c"]);
    for member in &mut members {
        member.limit = Some(BitRate::mbps(150));
    }
    let report = fetch(members, &by_hash).unwrap();
    assert!(fs::read(p.to.join("set/large")).unwrap() == content);
    assert_eq!((report.files.files, report.files.problem_count), (2, 0));
    assert!(report.members[..2].iter().all(|member| member.delivered.as_u64() >= 1 << 20), "{report:?}");
    // The time is that of the first in the order of the job: the next run finds the same.
    let mut again = by_hash.clone();
    again.options.skip_same = true;
    assert_eq!(fetch(p.members(&["a", "b", "c"]), &again).unwrap().files.skipped_files, 2);

    // Another content of the same length is named with both, and nothing is written.
    p.file("c", "set/small", b"two");
    other("c", "set/small");
    fs::remove_dir_all(p.to.join("set")).unwrap();
    by_hash.begin = Begin::WhenAllAreHeard;
    let GetError::Conflict { path, first, second, here: Here::Untouched } =
        fetch(p.members(&["a", "b", "c"]), &by_hash).unwrap_err()
    else {
        panic!()
    };
    assert_eq!((path.to_str().unwrap(), &*first, &*second), ("set/small", "a", "c"));
    assert!(tree(&p.to).is_empty());
}

#[test]
fn a_source_is_missing_only_where_nobody_has_it() {
    let p = places();
    p.file("a", "here", b"1");
    p.file("b", "there", b"2");
    let report = fetch(p.members(&["a", "b"]), &job(&["here", "there", "nowhere"], &p.to)).unwrap();
    assert_eq!(report.files.files, 2);
    let problems: Vec<String> = report.files.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["nowhere: No such file or directory"]);
}

#[test]
fn a_directory_that_was_not_to_be_is_told_once() {
    let p = places();
    p.file("a", "set/one", b"1");
    p.file("b", "set/two", b"2");
    let mut flat = job(&["set"], &p.to);
    flat.options.recursive = false;
    let report = fetch(p.members(&["a", "b"]), &flat).unwrap();
    let problems: Vec<String> = report.files.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["set: is a directory: not copied without -r"]);
}

/// Where a member has its files is its own: relative sources start there.
#[test]
fn each_member_has_its_own_place() {
    let p = places();
    p.file("all", "first/set/one", b"1");
    p.file("all", "second/below/set/two", b"2");
    let mut members = vec![serving("a", &p.of("all")), serving("b", &p.of("all"))];
    members[0].path = Some("first".into());
    members[1].path = Some("second/below".into());
    let report = fetch(members, &job(&["set", "nowhere"], &p.to)).unwrap();
    assert_eq!(report.files.files, 2);
    assert_eq!(fs::read(p.to.join("set/two")).unwrap(), b"2");
    let problems: Vec<String> = report.files.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["nowhere: No such file or directory"]);
}

/// A destination that cannot be is an error of the destination, as with any copy.
#[test]
fn a_destination_that_cannot_be() {
    let p = places();
    p.file("a", "one", b"1");
    p.file("b", "two", b"2");
    p.file("to", "file", b"");
    for to in ["new", "file", "no/such/directory"] {
        let result = fetch(p.members(&["a", "b"]), &job(&["one", "two"], &p.to.join(to)));
        assert!(matches!(result, Err(GetError::Destination(_))), "{to}: {result:?}");
    }
    assert_eq!(tree(&p.to).len(), 1);
}

/// What each member does can be followed: what it was told, and what came.
#[test]
fn what_is_ordered_is_delivered() {
    let p = places();
    for name in ["a", "b"] {
        p.file(name, "set/l", &pattern(9 << 20, 1));
        p.file(name, "set/s", &pattern(900, 1));
    }
    let (ordered, delivered) = (std::sync::atomic::AtomicU64::new(0), std::sync::atomic::AtomicU64::new(0));
    let count = |event: &JobEvent<'_>| {
        let (sum, range) = match event {
            JobEvent::Ordered { range, .. } => (&ordered, range),
            JobEvent::Delivered { range, .. } => (&delivered, range),
            _ => return,
        };
        sum.fetch_add(range.end - range.start, std::sync::atomic::Ordering::SeqCst);
    };
    get(p.members(&["a", "b"]), &job(&["set"], &p.to), &Watch(count), &Cancel::new()).unwrap();
    let (ordered, delivered) = (ordered.into_inner(), delivered.into_inner());
    assert!(ordered >= delivered && ordered >= (9 << 20) + 900, "{ordered} {delivered}");
}
