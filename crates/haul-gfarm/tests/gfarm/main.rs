//! The store of Gfarm on a real one: three storage servers on this machine, started for each test (scripts/gfarm.sh).

#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use fixture::*;
use haul_files::store::{At, Attributes, Content, FileKind, Part as _, ReplicaState, Stage as _, Store};
use haul_files::{Cancel, CopyError, Local, Options, Stop, StoreError, WirePath};
use haul_gfarm::{Gfarm, GfarmDir};
use haul_ramstore::Ram;
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;

/// What a server leaves free in tests that do not run out of room.
const LITTLE: &str = "1M";

fn directory(gfarm: &Gfarm, path: &str) -> GfarmDir {
    let top = gfarm.source(&WirePath(path.into())).unwrap();
    gfarm.directory(At::Top(&top), None).unwrap()
}

fn names(gfarm: &Gfarm, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut each = |entry: haul_files::store::Listed<'_>| {
        names.push(String::from_utf8_lossy(entry.name).into_owned());
        ControlFlow::Continue(())
    };
    gfarm.list(&directory(gfarm, path), &mut each).unwrap();
    names.sort();
    names
}

fn content(gfarm: &Gfarm, path: &str) -> Vec<u8> {
    let top = gfarm.source(&WirePath(path.into())).unwrap();
    let mut content = Vec::new();
    gfarm.open(At::Top(&top)).unwrap().read_at(&mut content, 0, 1 << 30).unwrap();
    content
}

#[test]
fn a_tree_is_the_same_after_a_way_through_gfarm() {
    with_gfarm("a_tree_is_the_same_after_a_way_through_gfarm", LITTLE, |_| {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        write(tree.join("a"), noise(3000, 1));
        write(tree.join("sub/large"), noise(5 << 20, 2));
        write(tree.join("sub/empty"), "");
        fs::create_dir(tree.join("nothing in it")).unwrap();
        fs::hard_link(tree.join("a"), tree.join("sub/again")).unwrap();
        std::os::unix::fs::symlink("../a", tree.join("sub/link")).unwrap();
        for name in [&b"\xff\x01"[..], b"new\nline", b"-r", b"gfarm:", b"*", &[b'n'; 255]] {
            write(tree.join(std::ffi::OsStr::from_bytes(name)), name);
        }
        fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
        let gfarm = open();
        let report = push(&Local::own(), &tree, &gfarm, "/", preserving());
        assert_eq!((report.files, report.symlinks, report.hard_links), (9, 1, 1));
        assert_eq!(names(&gfarm, "/"), ["tree"], "no stage is left");
        assert_eq!(content(&gfarm, "gfarm:/tree/sub/large"), noise(5 << 20, 2));

        let back = dir.path().join("back");
        fs::create_dir(&back).unwrap();
        push(&gfarm, Path::new("/tree"), &Local::own(), back.to_str().unwrap(), preserving());
        let compared =
            std::process::Command::new("diff").args(["-r", "--no-dereference"]).arg(&tree).arg(back.join("tree")).output();
        assert!(compared.unwrap().status.success());
        for name in ["a", "sub/large", "sub", "nothing in it", "sub/link"] {
            let (there, here) =
                (tree.join(name).symlink_metadata().unwrap(), back.join("tree").join(name).symlink_metadata().unwrap());
            assert_eq!(
                (there.mode(), there.mtime(), there.mtime_nsec()),
                (here.mode(), here.mtime(), here.mtime_nsec()),
                "{name}"
            );
        }
        assert_eq!(back.join("tree/a").metadata().unwrap().nlink(), 2);

        // What is there already is not sent again.
        let update = Options { update: true, ..preserving() };
        assert_eq!(push(&Local::own(), &tree, &gfarm, "/", update).files, 0);
    });
}

#[test]
fn a_file_is_replaced_at_once_and_a_broken_copy_goes_on() {
    with_gfarm("a_file_is_replaced_at_once_and_a_broken_copy_goes_on", LITTLE, |_| {
        let (from, gfarm) = (Ram::new(), open());
        from.put("large", "old");
        push(&from, Path::new("large"), &gfarm, "/name", Options::default());
        from.put("large", noise(20 << 20, 3));
        let broken = Conditions { break_after: Some(15), arrived: true, ..Conditions::default() };
        assert!(push_under(broken, &from, Path::new("large"), &gfarm, "/name", Options::default()).is_err());
        assert_eq!(content(&gfarm, "/name"), b"old");
        let report = push(&from, Path::new("large"), &gfarm, "/name", Options::default());
        assert!(report.resumed > Bytes::mib(5), "{:?}", report.resumed);
        assert_eq!(content(&gfarm, "/name"), noise(20 << 20, 3));
        assert_eq!(names(&gfarm, "/"), ["name"]);
    });
}

#[test]
fn a_stage_is_one_copys_at_a_time() {
    with_gfarm("a_stage_is_one_copys_at_a_time", LITTLE, |_| {
        let gfarm = open();
        let place = gfarm.destination(&WirePath(b"/".into()), true).unwrap();
        let (first, records) = gfarm.stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        assert_eq!(records.len(), 0);
        let (number, part) = first.create(0o600).unwrap();
        part.set_size(10).unwrap();
        part.write_at(b"second", 4).unwrap();
        first.append(&[haul_files::journal::Record::Top { name: WirePath(b"name".into()) }]).unwrap();
        let impatient = Cancel::new();
        impatient.cancel();
        assert!(gfarm.stage(&place, &[7; 32], true, &impatient).is_err(), "it is held");
        // Another job has another stage.
        let (other, _) = gfarm.stage(&place, &[8; 32], true, &Cancel::new()).unwrap();
        assert_eq!(other.remove(), Ok(false));

        // As a process that ends, and the next run.
        drop((part, first));
        let (second, records) = gfarm.stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(second.is_unused());
        let part = second.reopen(number).unwrap();
        assert_eq!(part.metadata().unwrap().size, 10);
        part.write_at(b"fir", 0).unwrap();
        let made = part.finish(&Attributes::default(), Some(0o640)).unwrap();
        assert_eq!((made.size, made.mode), (10, 0o640));
        let mut read = Vec::new();
        part.read_at(&mut read, 0, 100).unwrap();
        assert_eq!(read, b"fir\0second");
        let (another, _) = second.create(0o600).unwrap();
        assert_ne!(another, number, "no number is given twice");
        drop(part);
        // Without resuming nothing of it is trusted.
        drop(second);
        let (third, records) = gfarm.stage(&place, &[7; 32], false, &Cancel::new()).unwrap();
        assert_eq!(records.len(), 0);
        assert!(third.reopen(number).is_err());
        assert_eq!(third.remove(), Ok(false));
        assert_eq!(names(&gfarm, "/"), Vec::<String>::new());
    });
}

/// Killed after the last write and before the end: what was written then may be in the memory of its server only.
#[test]
fn what_an_earlier_run_has_written_is_synced_before_it_is_finished() {
    with_gfarm("what_an_earlier_run_has_written_is_synced_before_it_is_finished", LITTLE, |servers| {
        let gfarm = open();
        let place = gfarm.destination(&WirePath(b"/".into()), true).unwrap();
        let (first, _) = gfarm.stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        let number = [b"one", b"two"].map(|content| {
            let (number, part) = first.create(0o600).unwrap();
            part.write_at(content, 0).unwrap();
            number
        });
        // This one had even got its mode.
        let part = first.reopen(number[0]).unwrap();
        part.finish(&Attributes::default(), Some(0o400)).unwrap();
        drop((part, first));
        let (second, _) = gfarm.stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        let part = second.reopen(number[0]).unwrap();
        let made = part.finish(&Attributes::default(), Some(0o400)).unwrap();
        assert_eq!((made.size, made.mode), (3, 0o400));
        let mut read = Vec::new();
        part.read_at(&mut read, 0, 100).unwrap();
        assert_eq!(read, b"one");
        // The metadata server alone cannot do it.
        (11..=13).for_each(|server| servers.kill(server));
        let part = second.reopen(number[1]).unwrap();
        assert!(part.finish(&Attributes::default(), Some(0o644)).is_err(), "nobody has synced it");
    });
}

#[test]
fn reading_goes_on_at_another_server() {
    with_gfarm("reading_goes_on_at_another_server", LITTLE, |servers| {
        let (from, gfarm) = (Ram::new(), open());
        let all = noise(8 << 20, 5);
        from.put("a", all.clone());
        push(&from, Path::new("a"), &gfarm, "/", Options::default());
        servers.spread("/a", 3);
        let top = gfarm.source(&WirePath(b"/a".into())).unwrap();
        let replicas = gfarm.locate(At::Top(&top)).unwrap().unwrap();
        assert_eq!(replicas.len(), 3);
        assert!(replicas.iter().all(|one| one.state == ReplicaState::Ready && one.generation == replicas[0].generation));

        let file = gfarm.open(At::Top(&top)).unwrap();
        let mut read = Vec::new();
        file.read_at(&mut read, 0, 1 << 20).unwrap();
        // Whichever it is read from, it is among these, or it is not and the next is.
        servers.kill(11);
        servers.kill(12);
        file.read_at(&mut read, 1 << 20, 3 << 20).unwrap();
        assert_eq!(read, all[..4 << 20]);
        let replicas = gfarm.locate(At::Top(&top)).unwrap().unwrap();
        let down: Vec<_> = replicas.iter().filter(|one| one.state == ReplicaState::Down).map(|one| &*one.host).collect();
        assert_eq!(down.len(), 2, "{replicas:?}");
        assert!(!down.contains(&"127.0.0.13"));
        servers.kill(13);
        assert!(file.read_at(&mut read, 4 << 20, 1 << 20).is_err(), "nobody has it any more");
        assert_eq!(read.len(), 4 << 20, "what was read before is still there");
    });
}

#[test]
fn a_replica_that_is_removed_behind_our_back_is_not_needed() {
    with_gfarm("a_replica_that_is_removed_behind_our_back_is_not_needed", LITTLE, |servers| {
        let (from, gfarm) = (Ram::new(), open());
        let all = noise(6 << 20, 6);
        from.put("a", all.clone());
        push(&from, Path::new("a"), &gfarm, "/", Options::default());
        servers.spread("/a", 2);
        let top = gfarm.source(&WirePath(b"/a".into())).unwrap();
        let before = gfarm.locate(At::Top(&top)).unwrap().unwrap();
        let file = gfarm.open(At::Top(&top)).unwrap();
        servers.program("gfrm", &["-h", &before[0].host, "gfarm:/a"]);
        let mut read = Vec::new();
        file.read_at(&mut read, 0, 8 << 20).unwrap();
        assert_eq!(read, all);
        let after = gfarm.locate(At::Top(&top)).unwrap().unwrap();
        assert_eq!(after.len(), 1, "{after:?}");
        assert_eq!(after[0].host, before[1].host);
    });
}

#[test]
fn what_gfarm_knows_of_a_file_is_told() {
    with_gfarm("what_gfarm_knows_of_a_file_is_told", LITTLE, |_| {
        let (from, gfarm) = (Ram::new(), open());
        from.put("small", "hello");
        push(&from, Path::new("small"), &gfarm, "/", Options::default());
        let top = gfarm.source(&WirePath(b"/small".into())).unwrap();
        let sum = gfarm.checksum(At::Top(&top)).unwrap().unwrap();
        assert_eq!((&*sum.algorithm, &*sum.hex), ("md5", "5d41402abc4b2a76b9719d911017c592"));
        let space = gfarm.space(&directory(&gfarm, "/")).unwrap();
        assert!(space.free > Bytes::ZERO && space.free <= space.total, "{space:?}");
        // Another generation is another content.
        let before = gfarm.stat(At::Top(&top)).unwrap();
        from.put("small", "world");
        push(&from, Path::new("small"), &gfarm, "/", Options::default());
        let after = gfarm.stat(At::Top(&top)).unwrap();
        assert_ne!((before.identity, before.changed), (after.identity, after.changed));
        let nowhere = gfarm.source(&WirePath(b"/nowhere".into())).unwrap();
        assert_eq!(gfarm.locate(At::Top(&nowhere)).unwrap_err(), StoreError::Missing);
    });
}

#[test]
fn hostile_names_and_links_lead_nowhere() {
    with_gfarm("hostile_names_and_links_lead_nowhere", LITTLE, |servers| {
        let (from, gfarm) = (Ram::new(), open());
        from.put("d/f", "content");
        from.put("f", "content");
        push(&from, Path::new("d"), &gfarm, "/", recursive());
        servers.program("gfln", &["-s", "/d", "/link"]);
        let root = directory(&gfarm, "/");
        for name in ["..", "a/b", "", "a\0b", "d/f"] {
            assert_eq!(gfarm.stat(At::In(&root, name.as_bytes())).unwrap_err(), StoreError::OutsideRoot, "{name}");
        }
        assert_eq!(gfarm.open(At::In(&root, b"link")).map(drop).unwrap_err(), StoreError::Link);
        assert_eq!(gfarm.directory(At::In(&root, b"link"), None).map(drop).unwrap_err(), StoreError::Link);
        assert_eq!(gfarm.make_directory(&root, b"link", 0o755).map(drop).unwrap_err(), StoreError::Link);
        assert_eq!(gfarm.stat(At::In(&root, b"link")).unwrap().kind, FileKind::Symlink);
        assert_eq!(gfarm.read_link(&root, b"link").unwrap(), b"/d");
        let other = gfarm.stat(At::In(&root, b"link")).unwrap().identity;
        assert_eq!(gfarm.directory(At::In(&root, b"d"), Some(other)).map(drop).unwrap_err(), StoreError::Replaced);
        // A user's own word may follow one.
        let top = gfarm.source(&WirePath(b"gfarm:/link/f".into())).unwrap();
        assert_eq!(gfarm.stat(At::Top(&top)).unwrap().size, 7);

        let refused = |spelled: &str, many| gfarm.destination(&WirePath(spelled.into()), many).map(drop).unwrap_err();
        assert!(matches!(refused("/d/.haul-01234567/x", false), Stop::Destination { .. }));
        assert!(matches!(refused("/no/such", false), Stop::Destination { .. }));
        assert!(matches!(refused("/d/f/x", false), Stop::Destination { .. }));
        assert!(matches!(refused("/d/f", true), Stop::NeedsDirectory { .. }));
        // A link is replaced by a file and not followed, a directory is not replaced.
        from.put("link", "now a file");
        push(&from, Path::new("link"), &gfarm, "/", Options::default());
        assert_eq!(gfarm.stat(At::In(&root, b"link")).unwrap().kind, FileKind::File);
        from.put("x/d", "a file");
        let report = push_under(Conditions::default(), &from, Path::new("x/d"), &gfarm, "/", Options::default()).unwrap();
        assert_eq!((report.files, report.problem_count), (0, 1), "{:?}", report.problems);
        assert_eq!(content(&gfarm, "/d/f"), b"content");
    });
}

#[test]
fn where_no_server_has_room_the_copy_ends() {
    with_gfarm("where_no_server_has_room_the_copy_ends", "1000T", |_| {
        let (from, gfarm) = (Ram::new(), open());
        from.put("a", noise(100_000, 1));
        let ended = push_under(Conditions::default(), &from, Path::new("a"), &gfarm, "/", Options::default());
        let Err(error) = ended else { panic!("it has room: {ended:?}") };
        assert!(matches!(error, CopyError::Stopped(Stop::DestinationFull { .. })), "{error:?}");
    });
}
