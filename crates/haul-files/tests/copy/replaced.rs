//! Files that were there before: whose they are afterwards, and what becomes of those in directories that may not be written to.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use haul_files::protocol::{Message, Needs, ROOT, Request, Want};
use haul_files::{CopyError, Note, Options, Stop};
use haul_ramstore::memory::Conditions;

use crate::fixture::*;
use crate::hostile::{file, piece, push_request, pusher_asking};

#[test]
fn what_root_replaces_stays_its_owner_s() {
    if !is_root() {
        return skip::skip("this test needs root");
    }
    for size in [10, 3 << 20] {
        let p = places();
        write(p.from.join("file"), noise(size, 1));
        write(p.to.join("file"), "old");
        chown(p.to.join("file"), Some(12345), Some(54321)).unwrap();
        fs::set_permissions(p.to.join("file"), fs::Permissions::from_mode(0o4640)).unwrap();
        let stat = |options| {
            push_paths(&[&p.from.join("file")], &p.to, options, shuffled(1)).clean();
            let stat = fs::metadata(p.to.join("file")).unwrap();
            (stat.uid(), stat.gid(), stat.mode() & 0o7777)
        };
        assert_eq!(stat(Options::default()), (12345, 54321, 0o640), "and no set-id bit: the content is another");
        assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(size, 1));
        assert_eq!(stat(preserving()), (0, 0, 0o644));
    }
}

const NOBODY: u32 = 65534;

/// Runs one of these tests as a user that is not root, in `base`, where there is `tmp` for what is temporary.
fn as_nobody(test: &str, base: &Path) {
    let program = base.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new(&program)
        .args(["--exact", &format!("replaced::{test}"), "--nocapture"])
        .env("HAUL_TEST_OVER", base)
        .env("TMPDIR", base.join("tmp"))
        .current_dir(base)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn give_modes(base: &Path, modes: &[(&str, u32)]) {
    for (path, mode) in modes {
        fs::set_permissions(base.join(path), fs::Permissions::from_mode(*mode)).unwrap();
    }
}

/// Not a test by itself: what [`a_directory_that_may_only_be_written_to_takes_a_copy`] runs as a user that is not root.
#[test]
fn into_a_drop_box() {
    let Ok(places) = std::env::var("HAUL_TEST_OVER") else { return };
    let places = Path::new(&places);
    let report = push_paths(&[&places.join("from/file")], &places.join("to"), Options::default(), shuffled(1)).clean();
    assert_eq!(report.files, 1);
}

#[test]
fn a_directory_that_may_only_be_written_to_takes_a_copy() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    write(p.from.join("file"), noise(100, 1));
    fs::set_permissions(&p.to, fs::Permissions::from_mode(0o733)).unwrap();
    fs::set_permissions(p.from.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    as_nobody("into_a_drop_box", p.from.parent().unwrap());
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(100, 1));
    assert_nothing_left(&p.to);
}

/// Not a test by itself: what [`a_file_that_is_written_over_stays_where_there_is_no_room`] runs as a user that is not root.
#[test]
fn over_what_is_too_short() {
    let Ok(places) = std::env::var("HAUL_TEST_OVER") else { return };
    let places = Path::new(&places);
    let copy = || push_paths(&[&places.join("from/file")], &places.join("to/file"), Options::default(), shuffled(1));
    let first = copy();
    assert!(matches!(first.client, Err(CopyError::Refused(Stop::DestinationFull { .. }))), "{:?}", first.client);
    assert_eq!(fs::read(places.join("to/file")).unwrap(), noise(1 << 20, 3), "the old one");
    fs::File::options().write(true).open(places.join("to/full")).unwrap().set_len(0).unwrap();
    let again = copy();
    assert!(again.bytes < 2 << 20, "its part was there: {}", again.bytes);
    again.clean();
}

#[test]
fn a_file_that_is_written_over_stays_where_there_is_no_room() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    let base = p.from.parent().unwrap();
    let Some(_mounted) = Mounted::tmpfs(&p.to, "size=4m,mode=0755") else { return };
    write(p.from.join("file"), noise(3 << 20, 1));
    write(p.to.join("file"), noise(1 << 20, 3));
    write(p.to.join("full"), noise(2 << 20, 4));
    fs::create_dir(base.join("tmp")).unwrap();
    give_modes(base, &[("to/file", 0o666), ("to/full", 0o666), ("tmp", 0o1777), ("", 0o755)]);
    as_nobody("over_what_is_too_short", base);
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(3 << 20, 1));
    assert_eq!(fs::read_dir(base.join("tmp")).unwrap().count(), 0);
}

/// Not a test by itself: what [`what_was_written_over_and_is_another_s_is_not_copied_again_for_its_mode`] runs as a user that is not root.
#[test]
fn over_and_again() {
    let Ok(places) = std::env::var("HAUL_TEST_OVER") else { return };
    let small = Path::new(&places).join("to/file");
    let request = |options| Request { options, ..push_request(&small, false) };
    let entries = || Message::Entries(vec![file(1, ROOT, b"file", 3)]);
    let (first, _) = pusher_asking(request(Options::default()), |peer| {
        peer.say(&entries());
        peer.block(&[piece(1, 0, b"abc", true)], b"abc");
        wait_until(|| fs::read(&small).unwrap() == b"abc");
        peer.link.transport.kill();
    });
    assert!(first.is_err());
    let mut wants = None;
    let (again, _) = pusher_asking(request(preserving()), |peer| {
        peer.say(&entries());
        wants = std::iter::from_fn(|| Some(peer.hear())).find(|said| matches!(said, Message::Wants(_)));
        peer.link.transport.kill();
    });
    assert!(again.is_err());
    assert_eq!(wants, Some(Message::Wants(vec![Want { id: 1, needs: Needs::Nothing }])));
}

#[test]
fn what_was_written_over_and_is_another_s_is_not_copied_again_for_its_mode() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    let base = p.from.parent().unwrap();
    write(p.to.join("file"), "old");
    fs::create_dir(base.join("tmp")).unwrap();
    give_modes(base, &[("to/file", 0o666), ("tmp", 0o1777), ("", 0o755)]);
    as_nobody("over_and_again", base);
    assert_eq!(fs::metadata(p.to.join("file")).unwrap().mode() & 0o7777, 0o666);
}

/// Not a test by itself: what [`directories_that_were_opened_up_are_closed_again_when_a_copy_breaks_off`] runs as a user that is not root.
#[test]
fn into_what_was_opened_up() {
    let Ok(places) = std::env::var("HAUL_TEST_OVER") else { return };
    let to = Path::new(&places).join("to");
    let source = Path::new(&places).join("from/tree");
    let modes = || ["tree/there", "tree/made"].map(|path| fs::metadata(to.join(path)).unwrap().mode() & 0o7777);
    let breaking = Conditions { break_after: Some(15), capacity: 8, ..Conditions::default() };
    assert!(push_paths(&[&source], &to, recursive(), breaking).client.is_err());
    assert_eq!(modes(), [0o555; 2], "after a break");
    push_paths(&[&source], &to, recursive(), shuffled(1)).clean();
    assert_eq!(modes(), [0o555; 2], "at the end");
}

#[test]
fn directories_that_were_opened_up_are_closed_again_when_a_copy_breaks_off() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    let base = p.from.parent().unwrap();
    for path in ["there/small", "made/small"] {
        write(p.from.join("tree").join(path), noise(100, 1));
    }
    write(p.from.join("tree/large"), noise(20 << 20, 2));
    fs::create_dir_all(p.to.join("tree/there")).unwrap();
    for path in ["to", "to/tree", "to/tree/there", "from/tree/made"] {
        chown(base.join(path), Some(NOBODY), None).unwrap();
    }
    give_modes(base, &[("from/tree/made", 0o555), ("to/tree/there", 0o555), ("", 0o755)]);
    as_nobody("into_what_was_opened_up", base);
    assert_same_content(&p.from.join("tree"), &p.to.join("tree"));
    assert_nothing_left(&p.to);
}

/// Not a test by itself: what [`a_file_that_may_be_written_in_a_directory_that_may_not`] runs as a user that is not root.
#[test]
fn over_what_may_be_written() {
    let Ok(places) = std::env::var("HAUL_TEST_OVER") else { return };
    let places = Path::new(&places);
    let from = places.join("from");
    let to = places.join("to");
    // The destination itself, and a directory in a tree.
    let report = push_paths(&[&from.join("file")], &to.join("file"), Options::default(), shuffled(1)).clean();
    assert_eq!(report.notes, [Note::WrittenInPlace { path: to.join("file").as_path().into() }]);
    let report = push_paths(&[&from.join("tree")], &places.join("open"), recursive(), shuffled(1)).partial();
    assert_eq!((report.files, report.problem_count), (1, 2), "{:?}", report.problems);
    let written = places.join("open/tree/sub/file");
    assert_eq!(report.notes, [Note::WrittenInPlace { path: written.as_path().into() }]);
    // Where there is nothing to write to it is what it always was.
    let new = push_paths(&[&from.join("file")], &to.join("new"), Options::default(), shuffled(1));
    assert!(new.client.is_err());
}

#[test]
fn a_file_that_may_be_written_in_a_directory_that_may_not() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    let base = p.from.parent().unwrap();
    write(p.from.join("file"), noise(3 << 20, 1));
    for name in ["file", "linked", "new"] {
        write(p.from.join("tree/sub").join(name), noise(100, 2));
    }
    let longer = noise(4 << 20, 3);
    write(p.to.join("file"), &longer);
    for name in ["file", "linked"] {
        write(base.join("open/tree/sub").join(name), &longer);
    }
    // What another user could have linked there must not be written to.
    fs::hard_link(base.join("open/tree/sub/linked"), base.join("precious")).unwrap();
    let open = |path: &str, mode| fs::set_permissions(base.join(path), fs::Permissions::from_mode(mode)).unwrap();
    for path in ["to/file", "open/tree/sub/file", "open/tree/sub/linked"] {
        open(path, 0o666);
    }
    chown(base.join("open"), Some(NOBODY), None).unwrap();
    fs::create_dir(base.join("tmp")).unwrap();
    open("tmp", 0o1777);
    open("", 0o755);
    let inode = fs::metadata(p.to.join("file")).unwrap().ino();
    as_nobody("over_what_may_be_written", base);
    let stat = fs::metadata(p.to.join("file")).unwrap();
    assert_eq!((stat.ino(), stat.uid()), (inode, 0));
    assert_eq!(fs::read(p.to.join("file")).unwrap(), noise(3 << 20, 1));
    assert_eq!(fs::read(base.join("open/tree/sub/file")).unwrap(), noise(100, 2));
    assert_eq!(fs::read(base.join("precious")).unwrap(), longer);
    assert!(!base.join("open/tree/sub/new").exists());
    assert_eq!(fs::read_dir(base.join("tmp")).unwrap().count(), 0);
    assert_nothing_left(&base.join("open"));
}
