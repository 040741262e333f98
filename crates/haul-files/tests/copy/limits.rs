//! Few file descriptors: copies wait and close, and do not fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use haul_files::block::PieceSum;
use haul_files::protocol::{FileEnd, Message, ROOT};
use haul_files::{CopyError, Local, Options, Stop};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::fixture::*;
use crate::hostile::{file, piece, pusher};
use crate::stores::push_between;

/// Runs a test of this file in a process of its own that may have `limit` descriptors.
fn limited(test: &str, limit: u64, from: &Path, to: &Path) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("HAUL_TEST_LIMITED", format!("{}|{}|{limit}", from.display(), to.display()))
        .output()
        .unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "with {limit} descriptors: {said}\n{complained}");
}

/// Where this process is to copy, if it is one with a limit; it has that from here on.
fn as_limited() -> Option<(PathBuf, PathBuf)> {
    let arguments = std::env::var("HAUL_TEST_LIMITED").ok()?;
    let mut arguments = arguments.split('|');
    let (from, to) = (arguments.next()?.into(), arguments.next()?.into());
    let current = arguments.next()?.parse().ok();
    setrlimit(Resource::Nofile, Rlimit { current, maximum: current }).unwrap();
    Some((from, to))
}

/// Not a test by itself: what [`a_tree_of_more_directories_than_descriptors`] runs.
#[test]
fn two_copies() {
    let Some((from, to)) = as_limited() else { return };
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (from, to) = (&from, to.join(seed.to_string()));
            scope.spawn(move || push_paths(&[from], &to, Options { preserve: true, ..recursive() }, shuffled(seed)).clean());
        }
    });
}

#[test]
fn a_tree_of_more_directories_than_descriptors() {
    let p = places();
    let tree = p.from.join("tree");
    for i in 0..3000 {
        // Wide, and deep now and then.
        let path = if i % 10 == 0 { format!("{}/{i}", "deep/".repeat(i / 50)) } else { format!("{}/{i}", i % 7) };
        write(tree.join(path).join("file"), i.to_string());
    }
    write(tree.join("large"), noise(5 << 20, 1));
    for limit in [64, 128, 256] {
        for seed in 0..2 {
            fs::create_dir_all(p.to.join(format!("{limit}/{seed}"))).unwrap();
        }
        limited("limits::two_copies", limit, &tree, &p.to.join(limit.to_string()));
        for seed in 0..2 {
            let to = p.to.join(format!("{limit}/{seed}"));
            assert_same(&tree, &to.join("tree"));
            assert_nothing_left(&to);
        }
    }
}

/// Not a test by itself: what [`more_files_under_way_than_descriptors`] runs.
#[test]
fn many_under_way() {
    let Some((_, to)) = as_limited() else { return };
    let count = 500;
    let (result, _) = pusher(&to, |peer| {
        peer.say(&Message::Entries((1..=count).map(|id| file(id, ROOT, id.to_string().as_bytes(), 2)).collect()));
        let halves: Vec<_> = [(0, b"a"), (1, b"b")].into_iter().map(|(at, content)| (at, &content[..])).collect();
        for &(at, content) in &halves {
            for id in 1..=count {
                peer.block(&[piece(id, at, content, false)], content);
            }
        }
        let mut sum = PieceSum::default();
        for &(at, content) in &halves {
            sum.add(at, 1, &piece(1, at, content, false).hash);
        }
        for id in 1..=count {
            peer.say(&Message::FileEnd(FileEnd::Sent { id, size: 2, bytes: 2, sum: sum.to_bytes() }));
        }
        peer.finish();
    });
    assert_eq!(result.unwrap().files, count);
}

/// What a sender does that begins a piece of each of its files before it ends one.
#[test]
fn more_files_under_way_than_descriptors() {
    let p = places();
    limited("limits::many_under_way", 64, &p.from, &p.to);
    assert_eq!(fs::read_dir(&p.to).unwrap().count(), 500);
    assert_eq!(fs::read(p.to.join("499")).unwrap(), b"ab");
}

/// The memory of a machine is no place for what does not fit: that is known before any of it is written, here of a hole that is larger than any memory.
#[test]
fn a_ram_disk_refuses_what_does_not_fit() {
    let p = places();
    let ram = Local::ram_disk().unwrap();
    let place = format!("ram:/test-{}", std::process::id());
    let small = p.from.join("small");
    write(&small, noise(3000, 1));
    fs::File::create(p.from.join("huge")).unwrap().set_len(8 << 40).unwrap();
    let destination = Path::new(&place);
    push_between(&Local::own(), &small, &ram, destination, Options::default()).clean();
    let refused = push_between(&Local::own(), &p.from.join("huge"), &ram, destination, Options::default());
    assert!(matches!(refused.server, Err(CopyError::Stopped(Stop::DestinationFull { .. }))), "{:?}", refused.server);
    assert!(matches!(refused.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", refused.client);
    // The old file is still there, and comes back by the same name.
    let back = p.to.join("back");
    push_between(&ram, destination, &Local::own(), &back, Options::default()).clean();
    assert_eq!(fs::read(&back).unwrap(), noise(3000, 1));
    let uid = rustix::process::geteuid().as_raw();
    fs::remove_file(format!("/dev/shm/haul-{uid}/test-{}", std::process::id())).unwrap();
}
