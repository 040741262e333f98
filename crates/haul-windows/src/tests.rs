//! Whole copies, within this process, on this machine's own file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use haul_files::store::{At, Attributes, Content as _, Discarded, FileKind, Part as _, Spot, Stage as _, Store as _};
use haul_files::{
    Access, Cancel, CopyError, Export, Options, Ownership, PushJob, Report, Silent, Stop, StoreError, Verify, Why, WirePath,
    push_from, serve_store,
};
use haul_ramstore::{Ram, memory};

use crate::Local;

/// Copies from one store to the other.
fn copied<A: haul_files::Store, B: haul_files::Store>(from: &A, source: &Path, to: &B, place: &str, options: Options) -> Report {
    let job = PushJob { options, ..PushJob::new([source.to_owned()], place) };
    let (client, server) = memory::pair(memory::Conditions::default());
    std::thread::scope(|scope| {
        scope.spawn(|| serve_store(server, to, &Silent, &Cancel::new()));
        push_from(client, from, &job, &Silent, &Cancel::new())
    })
    .unwrap()
}

fn exported(path: &Path) -> Local {
    let export = Export { name: "r".into(), path: path.to_owned(), writable: true, ownership: Ownership::Mask };
    Local::of(Access::Exports(vec![export]))
}

/// Paths and contents below a directory.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                dirs.push(path);
            } else {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_tree_is_the_same_after_two_copies() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let deep = from.join(format!("{}/{}", "d".repeat(150), "e".repeat(150)));
    // Longer than the 260 of old programs.
    fs::create_dir_all(Path::new(&format!(r"\\?\{}", deep.display().to_string().replace('/', "\\")))).unwrap();
    fs::create_dir_all(from.join("empty")).unwrap();
    fs::create_dir(&to).unwrap();
    let large: Vec<u8> = (0..5_000_000_u32).map(|at| (at / 7) as u8).collect();
    for (name, content) in [
        ("large", &large[..]),
        ("crlf.txt", b"a\r\nb\n"),
        ("nothing", b""),
        ("\u{65e5}\u{672c} \u{e9}.txt", b"x"),
        (" two  words", b"y"),
    ] {
        fs::write(from.join(name), content).unwrap();
    }
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_700);
    fs::File::options().write(true).open(from.join("crlf.txt")).unwrap().set_modified(time).unwrap();
    let options = Options { recursive: true, preserve: true, verify: Verify::ReadBack, ..Options::default() };
    let report = copied(&Local::own(), &from.join("."), &exported(&to), "/r", options);
    assert_eq!((report.files, report.problem_count), (5, 0), "{:?}", report.problems);
    assert_eq!(tree(&from), tree(&to), "no stage is left either");
    assert_eq!(fs::metadata(to.join("crlf.txt")).unwrap().modified().unwrap(), time);
    // Again, where nothing is to be done, and over what is there.
    let same = Options { skip_same: true, ..options };
    assert_eq!(copied(&Local::own(), &from.join("."), &exported(&to), "/r", same).files, 0);
    fs::write(to.join("large"), "old").unwrap();
    let held = fs::File::open(to.join("nothing")).unwrap();
    copied(&Local::own(), &from.join("."), &exported(&to), "/r", options);
    drop(held);
    assert_eq!(tree(&from), tree(&to));
}

/// Another system's names, from a store that takes them all.
#[test]
fn names_that_cannot_be_there_are_told_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let ram = Ram::new();
    let bad = ["con", "NUL.txt", "com1", "a.", "a ", "x:y", "back\\slash", "what?", "star*", "q\"", "tab\t", "..\\up", "C:"];
    let place = ram.destination(&WirePath(b"/".into()), true).map_err(|stop| stop.to_string()).unwrap();
    let (stage, _) = ram.stage(&place, &[1; 32], false, &Cancel::new()).map_err(|stop| stop.to_string()).unwrap();
    let attributes = Attributes { final_mode: 0o644, ..Attributes::default() };
    for name in bad.iter().chain(&["Good", "good", "GOOD", "other"]) {
        let (number, part) = stage.create(0o644).unwrap();
        part.write_at(name.as_bytes(), 0).unwrap();
        part.finish(&attributes, Some(0o644)).unwrap();
        stage
            .commit(number, &Spot { dir: &place.root, name: name.as_bytes(), path: &|name| name.to_vec() }, &attributes)
            .unwrap();
    }
    stage.remove().unwrap();
    let options = Options { recursive: true, ..Options::default() };
    let report = copied(&ram, Path::new("/."), &exported(dir.path()), "/r", options);
    let mut said: Vec<_> = report.problems.iter().map(|problem| (problem.path.to_string(), problem.why.clone())).collect();
    said.sort_by(|a, b| a.0.cmp(&b.0));
    let spellings = said.iter().filter(|(_, why)| *why == Why::OtherSpelling).count();
    assert_eq!(spellings, 2, "of three that differ in case alone one is there: {said:?}");
    assert_eq!(said.iter().filter(|(_, why)| *why == Why::CannotBeNamed).count(), bad.len(), "{said:?}");
    let there = tree(dir.path());
    assert_eq!(there.len(), 2, "{there:?}");
    let kept = there.keys().find(|name| name.eq_ignore_ascii_case("good")).unwrap();
    assert_eq!(there[kept], kept.as_bytes(), "and has its own content");
    assert!(!dir.path().join("../up").exists());
}

#[test]
fn nothing_leads_out_of_a_root() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("root/sub")).unwrap();
    fs::write(dir.path().join("secret"), "x").unwrap();
    fs::write(dir.path().join("root/sub/a"), "content").unwrap();
    let store = exported(&dir.path().join("root"));
    let stat = |spelled: &str| {
        let top = store.source(&WirePath(spelled.into())).map_err(|_| StoreError::FAILED)?;
        store.stat(At::Top(&top)).map(|there| there.kind)
    };
    assert_eq!(
        (stat("/r"), stat("/r/sub"), stat("/r/SUB/A")),
        (Ok(FileKind::Directory), Ok(FileKind::Directory), Ok(FileKind::File))
    );
    for spelled in ["/r/../secret", "/r/sub/../../secret"] {
        assert_eq!(stat(spelled), Err(StoreError::OutsideRoot), "{spelled}");
    }
    for spelled in ["/r/..\\secret", "/r/sub\\..\\..\\secret", "/r/sub/a::$DATA", "/r/C:"] {
        assert_eq!(stat(spelled), Err(StoreError::CannotBeNamed), "{spelled}");
    }
    assert_eq!(stat("/r/no"), Err(StoreError::Missing));
    for spelled in ["/r/nul", "/r/sub/x.", "/r/a:b"] {
        assert!(store.destination(&WirePath(spelled.into()), false).is_err(), "{spelled}");
    }
    assert!(matches!(store.destination(&WirePath(b"/other".into()), false), Err(Stop::UnknownRoot { .. })));
}

#[test]
fn what_is_unfinished_is_found_locked_taken_over_and_discarded() {
    let dir = tempfile::tempdir().unwrap();
    let local = Local::own();
    let spelled = WirePath::from(dir.path());
    let place = local.destination(&spelled, true).map_err(|stop| stop.to_string()).unwrap();
    let (stage, _) = local.stage(&place, &[7; 32], true, &Cancel::new()).map_err(|stop| stop.to_string()).unwrap();
    let (number, part) = stage.create(0o600).unwrap();
    part.write_at(b"half", 4).unwrap();
    assert!(local.interrupted_in(&spelled).unwrap()[0].running);
    let cancelled = Cancel::new();
    cancelled.cancel();
    assert!(matches!(local.stage(&place, &[7; 32], true, &cancelled), Err(Stop::Busy { .. })));
    assert_eq!(local.discard_in(&spelled).unwrap()[0].1, Discarded::Running);
    drop((stage, part));

    assert!(local.has_stage(&place.root, &[7; 32]) && !local.has_stage(&place.root, &[8; 32]));
    let (stage, records) = local.stage(&place, &[7; 32], true, &Cancel::new()).map_err(|stop| stop.to_string()).unwrap();
    assert_eq!(records.len(), 1, "whose it is");
    let mut content = Vec::new();
    stage.reopen(number).unwrap().read_at(&mut content, 0, 100).unwrap();
    assert_eq!(content, b"\0\0\0\0half");
    assert!(stage.create(0o600).unwrap().0 > number);
    drop(stage);
    assert_eq!(local.discard_in(&spelled).unwrap()[0].1, Discarded::Removed);
    assert!(tree(dir.path()).is_empty());
    assert!(local.space(&place.root).unwrap().free.as_u64() > 0);
}

#[test]
fn hard_links_are_kept_and_a_name_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(from.join("a"), "content").unwrap();
    fs::hard_link(from.join("a"), from.join("b")).unwrap();
    let options = Options { recursive: true, preserve: true, ..Options::default() };
    copied(&Local::own(), &from.join("."), &exported(&to), "/r", options);
    assert_eq!(tree(&to).len(), 2);
    fs::write(to.join("a"), "changed").unwrap();
    assert_eq!(fs::read(to.join("b")).unwrap(), b"changed", "one file");

    let local = Local::own();
    let place = local.destination(&WirePath::from(&*to), true).map_err(|stop| stop.to_string()).unwrap();
    local.rename((&place.root, b"a"), (&place.root, b"d")).unwrap();
    assert_eq!(local.rename((&place.root, b"D"), (&place.root, b"c")), Err(StoreError::OtherSpelling));
    assert_eq!(local.rename((&place.root, b"d"), (&place.root, b"nul")), Err(StoreError::CannotBeNamed));
    local.remove(&place.root, b"d", false).unwrap();
    assert_eq!(tree(&to).into_keys().collect::<Vec<_>>(), ["b"]);
}

/// What one side says of what the other told it.
#[test]
fn a_destination_that_cannot_be_named_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "x").unwrap();
    let job = PushJob::new([dir.path().join("a")], "/r/aux");
    let (client, server) = memory::pair(memory::Conditions::default());
    let store = exported(dir.path());
    let result = std::thread::scope(|scope| {
        scope.spawn(|| serve_store(server, &store, &Silent, &Cancel::new()));
        push_from(client, &Local::own(), &job, &Silent, &Cancel::new())
    });
    assert!(matches!(&result, Err(CopyError::Refused(Stop::Unavailable(_)))), "{result:?}");
}
