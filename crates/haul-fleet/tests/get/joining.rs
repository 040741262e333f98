//! Members that come, or say what they have, while files move already.

use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use haul_files::Cancel;
use haul_fleet::{GetError, GetJob, Here, JobEvent, JobReport, Member, Members, get};
use haul_units::BitRate;

use crate::fixture::*;

/// Runs a job with the first member, and brings the others when `wait` returns, which hears of each file that is finished, and of each order.
fn later(
    names: &[&str],
    first: Member,
    job: &GetJob,
    others: impl FnOnce(&Receiver<String>) -> Vec<(usize, Option<Member>)> + Send,
) -> Result<JobReport, GetError> {
    let (members, bring) = Members::to_come(names.iter().map(|name| (*name).to_owned()).collect());
    bring.came(0, first);
    let (tell, heard): (Sender<String>, _) = channel();
    let tell = Mutex::new(tell);
    let watch = Watch(move |event: &JobEvent<'_>| {
        let said = match event {
            JobEvent::FileFinished { path, .. } => format!("finished {}", path.display()),
            JobEvent::Ordered { member, path, .. } => format!("ordered {} {member}", path.display()),
            JobEvent::Delivered { member, path, .. } => format!("delivered {} {member}", path.display()),
            _ => return,
        };
        let _ = tell.lock().unwrap().send(said);
    });
    thread::scope(|scope| {
        scope.spawn(move || {
            for (at, member) in others(&heard) {
                match member {
                    Some(member) => bring.came(at, member),
                    None => bring.is_absent(at),
                }
            }
        });
        get(members, job, &watch, &Cancel::new())
    })
}

/// Until that was said.
fn until(heard: &Receiver<String>, said: &str) {
    while heard.recv_timeout(Duration::from_secs(60)).expect("it is said") != said {}
}

#[test]
fn files_are_in_place_before_the_last_member_comes() {
    let p = places();
    p.file("a", "set/one", &pattern(3_000_000, 1));
    p.file("b", "set/two", &pattern(700_000, 2));
    let b = serving("b", &p.of("b"));
    let one = p.to.join("set/one");
    let report = later(&["a", "b", "never"], serving("a", &p.of("a")), &job(&["set"], &p.to), |heard| {
        until(heard, "finished set/one");
        assert!(fs::read(&one).unwrap() == pattern(3_000_000, 1));
        vec![(1, Some(b)), (2, None)]
    });
    let report = report.unwrap();
    assert_eq!((report.files.files, report.files.problem_count), (2, 0));
    assert!(fs::read(p.to.join("set/two")).unwrap() == pattern(700_000, 2));
    let names: Vec<(&str, bool)> = report.members.iter().map(|member| (&*member.name, member.is_listed)).collect();
    assert_eq!(names, [("a", true), ("b", true)]);
}

#[test]
fn a_replica_that_comes_later_sends_its_part() {
    let p = places();
    let content = pattern(40 << 20, 5);
    p.file("slow", "large", &content);
    p.file("late", "large", &content);
    let mut slow = serving("slow", &p.of("slow"));
    slow.limit = Some(BitRate::mbps(40));
    let late = serving("late", &p.of("late"));
    let report = later(&["slow", "late"], slow, &job(&["large"], &p.to.join("name")), |heard| {
        until(heard, "ordered large slow");
        vec![(1, Some(late))]
    });
    let report = report.unwrap();
    assert!(fs::read(p.to.join("name")).unwrap() == content);
    let delivered: Vec<u64> = report.members.iter().map(|member| member.delivered.as_u64()).collect();
    assert_eq!(delivered.iter().sum::<u64>(), 40 << 20);
    assert!(delivered[1] >= 10 << 20, "{delivered:?}");
}

/// One that is in place is said to be, with whose content it is; the error names both.
#[test]
fn another_content_that_is_found_late_is_named_with_what_is_here() {
    for (finished, renamed) in [(true, false), (true, true), (false, false)] {
        let p = places();
        p.file("a", "set/same", &pattern(900_000, 1));
        p.file("b", "set/same", &pattern(900_001, 2));
        p.file("a", "set/large", &pattern(20 << 20, 2));
        let mut a = serving("a", &p.of("a"));
        a.limit = Some(BitRate::mbps(20));
        let b = serving("b", &p.of("b"));
        if !finished {
            p.file("b", "set/large", b"short");
            fs::remove_file(p.of("b").join("set/same")).unwrap();
        }
        let to = if renamed { p.to.join("new") } else { p.to.clone() };
        let below = if renamed { "same" } else { "set/same" };
        let error = later(&["a", "b"], a, &job(&["set"], &to), |heard| {
            until(heard, if finished { format!("finished {below}") } else { "ordered set/large a".to_owned() }.as_str());
            vec![(1, Some(b))]
        });
        let error = error.unwrap_err();
        let said = error.to_string();
        let GetError::Conflict { path, first, second, here } = error else { panic!("{error:?}") };
        assert_eq!((&*first, &*second), ("a", "b"), "{said}");
        if finished {
            assert_eq!((path.to_str().unwrap(), &here), ("set/same", &Here::InPlace { from: "a".into() }), "{said}");
            assert!(fs::read(to.join(below)).unwrap() == pattern(900_000, 1));
            assert!(said.contains("it is in place here, whole, as a has it"), "{said}");
        } else {
            assert_eq!(path.to_str().unwrap(), "set/large");
            assert!(here == Here::Untouched || here == Here::Begun { from: "a".into() }, "{here:?}");
            assert!(!to.join("set/large").exists());
        }
    }
}

/// What the first member cannot give after all is not given up before the last has been heard.
#[test]
fn what_one_has_lost_comes_from_one_that_comes_later() {
    let p = places();
    p.file("a", "set/f", &pattern(400_000, 1));
    p.file("b", "set/f", &pattern(400_000, 1));
    p.file("a", "set/g", &pattern(30 << 20, 1));
    let (a, b) = (serving("a", &p.of("a")), serving("b", &p.of("b")));
    let (gone, ahead) = (p.of("a").join("set/f"), p.of("a").join("set/g"));
    let (tell, lost) = channel();
    let tell = Mutex::new(tell);
    let observer = Watch(move |event: &JobEvent<'_>| {
        if matches!(event, JobEvent::Unfit { path, .. } if path.as_os_str() == "set/f") {
            let _ = tell.lock().unwrap().send(());
        }
        // It is listed and not yet read: what has another length then is not what was announced.
        if matches!(event, JobEvent::Listed { member: "a", .. }) {
            fs::write(&gone, b"changed").unwrap();
            fs::remove_file(&ahead).unwrap();
        }
    });
    let (members, bring) = Members::to_come(vec!["a".into(), "b".into()]);
    bring.came(0, a);
    let heard = thread::scope(|scope| {
        let job = job(&["set"], &p.to);
        let run = scope.spawn(move || get(members, &job, &observer, &Cancel::new()));
        lost.recv_timeout(Duration::from_secs(60)).expect("the first one cannot give it");
        bring.came(1, b);
        drop(bring);
        run.join().unwrap()
    });
    let report = heard.unwrap();
    assert!(fs::read(p.to.join("set/f")).unwrap() == pattern(400_000, 1));
    // What only that one had is a problem.
    let problems: Vec<String> = report.files.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("set/g: ") || problems[0].contains("/set/g: "), "{problems:?}");
}

#[test]
fn where_nobody_comes_there_is_nothing_to_fetch_from() {
    let p = places();
    let (members, bring) = Members::to_come(vec!["a".into()]);
    drop(bring);
    let result = get(members, &job(&["set"], &p.to), &haul_fleet::Unwatched, &Cancel::new());
    assert!(matches!(result, Err(GetError::AllDown { ref members }) if members.is_empty()), "{result:?}");
}
