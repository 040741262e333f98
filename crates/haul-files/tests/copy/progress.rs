//! What is told of a copy while it runs.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_files::{
    Cancel, Destination, Event, FileUnderWay, Filter, Observer, Options, PullJob, PushJob, Silent, pull, push, serve,
};
use haul_ramstore::memory::{Conditions, pair};

use crate::fixture::*;

/// Keeps what is told, and slows the copy down to several reports.
#[derive(Default)]
struct Told {
    files: Mutex<Vec<FileUnderWay>>,
    most: Mutex<usize>,
    resumed: Mutex<u64>,
}

impl Observer for Told {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::UnderWay(files) => {
                let mut most = self.most.lock().unwrap();
                *most = files.len().max(*most);
                self.files.lock().unwrap().extend_from_slice(files);
            }
            Event::Resumed => *self.resumed.lock().unwrap() += 1,
            _ => {}
        }
    }
    fn wants_files(&self) -> bool {
        true
    }
}

/// Copies with both sides watched: client, server.
fn watched(from: &Path, to: &Path, pulled: bool) -> (Told, Told) {
    let (client, server) = (Told::default(), Told::default());
    let (here, there) = pair(Conditions { capacity: 2, ..Conditions::default() });
    std::thread::scope(|scope| {
        scope.spawn(|| serve(there, &account(), &server, &Cancel::new()).unwrap());
        if pulled {
            let destination = Destination::Path(to.to_owned());
            pull(
                here,
                &PullJob { sources: vec![from.to_owned()], destination, options: recursive(), filter: Filter::default() },
                &client,
                &Cancel::new(),
            )
        } else {
            push(here, &PushJob::new([PathBuf::from(from)], to), &client, &Cancel::new())
        }
        .unwrap();
    });
    (client, server)
}

#[test]
fn both_sides_hear_how_much_of_a_large_file_has_arrived() {
    const SIZE: u64 = 1 << 30;
    for pulled in [false, true] {
        let p = places();
        write(p.from.join("tree/small"), "x");
        let large = std::fs::File::create(p.from.join("tree/large")).unwrap();
        // Not a hole: a byte in every page is data to the file system.
        rustix::fs::fallocate(&large, rustix::fs::FallocateFlags::empty(), 0, SIZE).unwrap();
        let (client, server) = watched(&p.from.join("tree"), &p.to, pulled);
        for told in [client, server] {
            let files = told.files.into_inner().unwrap();
            assert!(!files.is_empty(), "nothing was told");
            assert!(files.iter().all(|file| file.path.ends_with("tree/large") && file.size.as_u64() == SIZE), "{files:?}");
            assert!(files.iter().any(|file| (1..SIZE).contains(&file.arrived.as_u64())), "{files:?}");
            assert!(files.is_sorted_by_key(|file| file.arrived), "{files:?}");
        }
    }
}

#[test]
fn small_files_are_not_told_one_by_one() {
    let p = places();
    for i in 0..2000 {
        write(p.from.join(format!("tree/{i}")), noise(10_000, i));
    }
    let (client, server) = watched(&p.from.join("tree"), &p.to, false);
    assert!(client.files.into_inner().unwrap().is_empty() && server.files.into_inner().unwrap().is_empty());
    assert_eq!((client.resumed.into_inner().unwrap(), server.resumed.into_inner().unwrap()), (0, 0));
}

#[test]
fn going_on_from_an_earlier_run_is_told_on_both_sides() {
    for pulled in [false, true] {
        let p = places();
        write(p.from.join("file"), noise(20 << 20, 1));
        let breaking = Conditions { break_after: Some(15), shuffle: 8, seed: 1, capacity: 8, arrived: false };
        let first = if pulled {
            pull_paths(&[&p.from.join("file")], Destination::Path(p.to.clone()), recursive(), breaking)
        } else {
            push_paths(&[&p.from.join("file")], &p.to, recursive(), breaking)
        };
        assert!(first.client.is_err());
        // Another copy into the same directory neither takes it over nor disturbs it.
        write(p.from.join("other"), noise(3 << 20, 2));
        let other = push_paths(&[&p.from.join("other")], &p.to, Options::default(), shuffled(1));
        assert_eq!(other.clean().resumed, haul_units::Bytes::ZERO);
        let (client, server) = watched(&p.from.join("file"), &p.to, pulled);
        assert_eq!((client.resumed.into_inner().unwrap(), server.resumed.into_inner().unwrap()), (1, 1));
        assert_nothing_left(&p.to);
        assert_same_content(&p.from, &p.to);
    }
}

#[test]
fn a_copy_that_nobody_watches_is_as_whole_as_any() {
    let p = places();
    write(p.from.join("file"), noise(5 << 20, 1));
    let job = PushJob::new([p.from.join("file")], &p.to);
    let outcome = run_push(&job, &account(), Conditions::default(), &Silent, |_| {});
    let outcome = outcome.clean();
    assert_eq!(outcome.files, 1);
    assert_same_content(&p.from, &p.to);
    assert_nothing_left(&p.to);
}
