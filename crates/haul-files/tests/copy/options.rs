//! Options, destinations as scp has them, streams, exports.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use haul_files::{
    Access, Cancel, CopyError, Destination, Event, Export, Note, Observer, Options, Ownership, PushJob, Silent, SourceSpec, Stop,
    Why, push, serve,
};
use haul_ramstore::memory::{Conditions, pair};
use haul_units::Bytes;

use crate::fixture::*;

fn one(options: Options, sources: &[&Path], destination: impl AsRef<Path>) -> Outcome {
    push_paths(sources, destination.as_ref(), options, Conditions::default())
}

#[test]
fn destinations_are_scps() {
    let p = places();
    let (file, tree) = (p.from.join("file"), p.from.join("tree"));
    write(&file, "f");
    write(tree.join("in/it"), "i");
    let flat = Options::default();
    one(flat, &[&file], p.to.join("renamed")).clean();
    one(flat, &[&file], &p.to).clean();
    one(recursive(), &[&tree], p.to.join("tree renamed")).clean();
    one(recursive(), &[&tree, &file], p.to.join("tree renamed")).clean();
    for (path, content) in [
        ("renamed", "f"),
        ("file", "f"),
        ("tree renamed/in/it", "i"),
        ("tree renamed/tree/in/it", "i"),
        ("tree renamed/file", "f"),
    ] {
        assert_eq!(fs::read_to_string(p.to.join(path)).unwrap(), content, "{path}");
    }
    // The content of "." goes straight to the destination.
    one(recursive(), &[&tree.join(".")], p.to.join("dot")).clean();
    one(recursive(), &[&p.from.join("tree/in/..")], p.to.join("dot")).clean();
    assert_eq!(fs::read_to_string(p.to.join("dot/in/it")).unwrap(), "i");

    let stop = |outcome: Outcome| match (outcome.client, outcome.server) {
        (Err(CopyError::Refused(stop)), Err(CopyError::Stopped(same))) if stop == same => stop,
        other => panic!("{other:?}"),
    };
    assert!(matches!(stop(one(flat, &[&file, &file], p.to.join("renamed"))), Stop::NeedsDirectory { .. }));
    assert!(matches!(stop(one(flat, &[&file], p.to.join("not/there"))), Stop::Destination { why: Why::Os(2), .. }));
    assert!(matches!(stop(one(flat, &[&file], "/dev/null")), Stop::Destination { why: Why::Special, .. }));
    let report = one(flat, &[&file], p.to.join("not there/")).partial();
    assert_eq!(report.problems[0].why, Why::NeedsDirectory);
    let report = one(flat, &[&tree, &file], &p.to).partial();
    assert_eq!((report.problems[0].why.clone(), report.files), (Why::DirectoryWithoutRecursive, 1));
    let report = one(flat, &[&file], p.to.join("tree renamed/in")).clean();
    assert_eq!(report.files, 1);
    assert_nothing_left(&p.to);
}

#[test]
fn links_named_by_the_user_are_followed() {
    let p = places();
    write(p.from.join("file"), "content");
    symlink("file", p.from.join("link")).unwrap();
    write(p.to.join("real"), "old");
    symlink("real", p.to.join("alias")).unwrap();
    one(Options::default(), &[&p.from.join("link")], p.to.join("alias")).clean();
    assert!(p.to.join("alias").is_symlink());
    assert_eq!(fs::read_to_string(p.to.join("real")).unwrap(), "content");
}

#[test]
fn without_p_the_umask_and_an_existing_mode_count() {
    let p = places();
    write(p.from.join("a"), "a");
    write(p.from.join("b"), "b");
    fs::set_permissions(p.from.join("a"), fs::Permissions::from_mode(0o4777)).unwrap();
    write(p.to.join("b"), "old");
    fs::set_permissions(p.to.join("b"), fs::Permissions::from_mode(0o600)).unwrap();
    one(Options::default(), &[&p.from.join("a"), &p.from.join("b")], &p.to).clean();
    let mode = |name| fs::metadata(p.to.join(name)).unwrap().permissions().mode() & 0o7777;
    let fresh = p.to.join("fresh");
    fs::write(&fresh, "").unwrap();
    let umask = 0o666 & !mode("fresh");
    assert_eq!(mode("a"), 0o777 & !umask);
    assert_eq!(mode("b"), 0o600);
}

#[test]
fn what_is_the_same_is_skipped() {
    for options in [Options { skip_same: true, ..recursive() }, Options { update: true, ..recursive() }] {
        let p = places();
        let tree = p.from.join("tree");
        for i in 0..50 {
            write(tree.join(format!("{i}")), noise(1000 * i, i as u64));
        }
        write(tree.join("large"), noise(3 << 20, 7));
        let first = one(options, &[&tree], &p.to).clean();
        assert_eq!((first.files, first.skipped_files), (51, 0));
        let size = first.bytes;
        let again = one(options, &[&tree], &p.to);
        assert_eq!(again.blocks, 0);
        let again = again.clean();
        assert_eq!((again.files, again.skipped_files, again.skipped, again.bytes), (0, 51, size, Bytes::ZERO));
        assert_eq!(again.newer_files, 0);
        write(tree.join("7"), "changed");
        let third = one(options, &[&tree], &p.to).clean();
        assert_eq!((third.files, third.skipped_files), (1, 50));
        assert_same_content(&tree, &p.to.join("tree"));
    }
}

/// Gives a file this modification time.
fn date(path: &Path, secs: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs)).unwrap();
}

#[test]
fn update_keeps_what_is_newer_and_skip_same_does_not() {
    // Name, its time and content here, those there; what --update leaves, what --skip-same leaves.
    let cases = [
        ("newer-there", (1000, "here"), (2000, "there, longer"), ["there, longer", "here"]),
        ("newer-there-same-size", (1000, "here"), (1001, "HERE"), ["HERE", "here"]),
        ("older-there", (1000, "here"), (999, "there"), ["here", "here"]),
        ("same-time-other-size", (1000, "here"), (1000, "there"), ["here", "here"]),
        ("same", (1000, "here"), (1000, "HERE"), ["HERE", "HERE"]),
        ("empty-here", (1000, ""), (2000, "there"), ["there", ""]),
    ];
    for pulled in [false, true] {
        for (column, update) in [(0, true), (1, false)] {
            let p = places();
            let tree = p.from.join("tree");
            for (name, here, there, _) in cases {
                for (root, (secs, content)) in [(&p.from, here), (&p.to, there)] {
                    let path = root.join("tree").join(name);
                    write(&path, content);
                    date(&path, secs);
                }
            }
            let options = Options { update, skip_same: !update, ..recursive() };
            let report = if pulled {
                pull_paths(&[&tree], Destination::Path(p.to.clone()), options, shuffled(1)).clean()
            } else {
                one(options, &[&tree], &p.to).clean()
            };
            for (name, _, _, left) in cases {
                assert_eq!(fs::read_to_string(p.to.join("tree").join(name)).unwrap(), left[column], "{name}, update: {update}");
            }
            let expected = if update { (2, 4, 3) } else { (5, 1, 0) };
            assert_eq!((report.files, report.skipped_files, report.newer_files), expected);
            assert_nothing_left(&p.to);
        }
    }
}

#[test]
fn update_keeps_a_newer_file_where_a_hard_link_would_go() {
    let p = places();
    let tree = p.from.join("tree");
    write(tree.join("a"), "here");
    fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
    fs::hard_link(tree.join("a"), tree.join("c")).unwrap();
    date(&tree.join("a"), 1000);
    for name in ["a", "b", "c"] {
        write(p.to.join("tree").join(name), "there");
        date(&p.to.join("tree").join(name), 900);
    }
    // Whichever of them the scan meets first is the file, the others are its links: each in turn is the newer one.
    for newer in ["a", "b", "c"] {
        let to = p.to.join(newer);
        let copy = to.join("tree");
        for name in ["a", "b", "c"] {
            write(copy.join(name), "there");
            date(&copy.join(name), if name == newer { 2000 } else { 900 });
        }
        let options = Options { update: true, ..recursive() };
        let report = one(options, &[&tree], &to).clean();
        assert_eq!(fs::read_to_string(copy.join(newer)).unwrap(), "there");
        assert!(report.newer_files >= 1, "{report:?}");
    }
}

#[test]
fn standard_input_has_no_time_to_compare() {
    let p = places();
    let to = p.to.join("file");
    write(&to, "old");
    let sources = [SourceSpec::stream(std::io::Cursor::new(b"new".to_vec()))];
    let options = Options { update: true, preserve: true, ..Options::default() };
    let job = PushJob { options, ..PushJob::new(sources, &to) };
    run_push(&job, &account(), shuffled(1), &Silent, |_| {}).clean();
    assert_eq!(fs::read_to_string(&to).unwrap(), "new");
    assert!(fs::metadata(&to).unwrap().modified().unwrap() > std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000));
}

#[test]
fn without_verifying_all_arrives_too() {
    let p = places();
    write(p.from.join("a"), noise(3 << 20, 1));
    write(p.from.join("b"), noise(300, 2));
    let report = one(Options { verify: haul_files::Verify::Off, ..recursive() }, &[&p.from], &p.to).clean();
    assert_eq!(report.verified, Some(haul_files::Verified::No));
    assert_same_content(&p.from, &p.to.join("from"));
}

#[test]
fn a_stream_as_source() {
    for length in [0, 1, 1 << 20, (5 << 20) + 77] {
        let p = places();
        let content = noise(length, 1);
        let stream = || SourceSpec::stream(std::io::Cursor::new(content.clone()));
        let job = |to: &Path| PushJob::new([stream()], to);
        let to = p.to.join("file");
        run_push(&job(&to), &account(), shuffled(length as u64), &Silent, |_| {}).clean();
        assert_eq!(fs::read(&to).unwrap(), content);
        let refused = run_push(&job(&p.to), &account(), shuffled(1), &Silent, |_| {});
        assert!(matches!(refused.client, Err(CopyError::Refused(Stop::NeedsFileName { .. }))));
        assert_nothing_left(&p.to);
    }
}

#[test]
fn a_stream_as_destination_is_in_order() {
    let p = places();
    let contents = [noise(5 << 20, 1), Vec::new(), noise(10, 2), noise((1 << 20) + 1, 3)];
    let paths: Vec<_> = (0..contents.len()).map(|i| p.from.join(format!("{i}"))).collect();
    for (path, content) in paths.iter().zip(&contents) {
        write(path, content);
    }
    let holes = p.from.join("holes");
    fs::File::create(&holes).unwrap().set_len(3 << 20).unwrap();
    let mut sources: Vec<&Path> = paths.iter().map(std::path::PathBuf::as_path).collect();
    sources.push(&holes);
    for seed in 1..5 {
        let collected = Collected::default();
        let report = pull_paths(&sources, Destination::stream(collected.clone()), Options::default(), shuffled(seed)).clean();
        assert_eq!(report.files, 5);
        assert!(*collected.0.lock().unwrap() == [contents.concat(), vec![0; 3 << 20]].concat());
    }
    let collected = Collected::default();
    let sources = [paths[0].as_path(), &p.from, &p.from.join("missing"), paths[2].as_path()];
    let report = pull_paths(&sources, Destination::stream(collected.clone()), recursive(), shuffled(1)).partial();
    assert_eq!((report.files, report.problem_count), (2, 2));
    assert!(*collected.0.lock().unwrap() == [&contents[0][..], &contents[2]].concat());
}

fn exports(root: &Path, writable: bool) -> Access {
    Access::Exports(vec![Export { name: "data".into(), path: root.to_owned(), writable, ownership: Ownership::default() }])
}

#[test]
fn one_root_is_home_and_everything() {
    let p = places();
    let root = p.from.join("root");
    write(p.from.join("secret"), "secret");
    write(root.join("dir/file"), "public");
    symlink("..", root.join("up")).unwrap();
    let root_of =
        |writable| Access::Root(Export { name: "/".into(), path: root.clone(), writable, ownership: Ownership::default() });
    let get = |path: &str| {
        run_pull(&[Path::new(path)], Destination::Path(p.to.clone()), recursive(), &root_of(false), Conditions::default())
    };
    for path in ["dir/file", "/dir/file", "~/dir/file", "d*/f*", "~/d*/f*"] {
        get(path).clean();
        assert_eq!(fs::read_to_string(p.to.join("file")).unwrap(), "public", "{path}");
        fs::remove_file(p.to.join("file")).unwrap();
    }
    get("~").clean();
    assert_eq!(fs::read_to_string(p.to.join("~/dir/file")).unwrap(), "public");
    fs::remove_dir_all(p.to.join("~")).unwrap();
    for path in ["", "/", "."] {
        get(path).clean();
        assert_eq!(fs::read_to_string(p.to.join("dir/file")).unwrap(), "public", "`{path}`: its content");
        fs::remove_dir_all(p.to.join("dir")).unwrap();
        fs::remove_file(p.to.join("up")).unwrap();
    }
    for path in ["../secret", "~/../secret", "/../secret", "up/secret"] {
        let report = get(path).partial();
        assert_eq!((report.files, &report.problems[0].why), (0, &Why::OutsideRoot), "{path}");
    }
    get(p.from.join("secret").to_str().unwrap()).partial();
    let put = |path: &str, writable| {
        let job = PushJob::new([p.from.join("secret")], path);
        run_push(&job, &root_of(writable), Conditions::default(), &Silent, |_| {})
    };
    assert!(matches!(put("x", false).client, Err(CopyError::Refused(Stop::ReadOnlyRoot { .. }))));
    put("~/dir/put", true).clean();
    assert_eq!(fs::read_to_string(root.join("dir/put")).unwrap(), "secret");
    put("", true).clean();
    assert!(root.join("secret").exists());
    assert!(put("../put", true).client.is_err() && !p.from.join("put").exists());
}

#[test]
fn exports_are_jails() {
    let p = places();
    let root = p.from.join("root");
    write(p.from.join("secret"), "secret");
    write(root.join("file"), "public");
    write(root.join("dir/inner"), "inner");
    symlink("../secret", root.join("leak")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(&p.from, root.join("dir/out")).unwrap();
    let get = |path: &str, access: &Access| {
        run_pull(&[Path::new(path)], Destination::Path(p.to.clone()), recursive(), access, Conditions::default())
    };
    let access = exports(&root, false);
    get("/data/file", &access).clean();
    get("data/dir", &access).clean();
    assert_eq!(fs::read_to_string(p.to.join("file")).unwrap(), "public");
    assert_eq!(fs::read_link(p.to.join("dir/out")).unwrap(), p.from);
    for path in ["/data/leak", "/data/up/secret", "/data/../secret", "/data/dir/out/secret", "/data/dir/../../secret"] {
        let report = get(path, &access).partial();
        assert_eq!((report.files, &report.problems[0].why), (0, &Why::OutsideRoot), "{path}");
    }
    assert!(matches!(get("/other/file", &access).client, Err(CopyError::Refused(Stop::UnknownRoot { .. }))));
    assert!(matches!(get("/etc/passwd", &access).client, Err(CopyError::Refused(Stop::UnknownRoot { .. }))));

    let put = |path: &str, access: &Access| {
        let job = PushJob::new([p.from.join("secret")], path);
        run_push(&job, access, Conditions::default(), &Silent, |_| {})
    };
    assert!(matches!(put("/data/x", &access).client, Err(CopyError::Refused(Stop::ReadOnlyRoot { .. }))));
    let access = exports(&root, true);
    put("/data/new", &access).clean();
    put("data", &access).clean();
    assert_eq!(fs::read_to_string(root.join("new")).unwrap(), "secret");
    assert!(root.join("secret").exists());
    for path in ["/data/up/x", "/data/up", "/data/../x", "/data/dir/out/x", "/data/leak"] {
        let refused = put(path, &access).client;
        assert!(
            matches!(refused, Err(CopyError::Refused(Stop::Destination { why: Why::OutsideRoot, .. }))),
            "{path}: {refused:?}"
        );
    }
    assert!(!p.from.join("x").exists());
    assert_eq!(fs::read_to_string(p.from.join("secret")).unwrap(), "secret");
    assert_nothing_left(&root);
}

/// A job that pushes `file`.
fn push_of_file(p: &Places) -> PushJob {
    PushJob::new([p.from.join("file")], &p.to)
}

#[test]
fn a_cancelled_copy_stops_both_sides() {
    let p = places();
    write(p.from.join("file"), noise(1000, 1));
    let (here, there) = pair(Conditions::default());
    let cancel = Cancel::new();
    cancel.cancel();
    let job = push_of_file(&p);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let result = push(here, &job, &Silent, &cancel);
        assert!(matches!(result, Err(CopyError::Cancelled)), "{result:?}");
        let server = server.join().unwrap();
        assert!(matches!(server, Err(CopyError::Refused(Stop::Interrupted) | CopyError::Connection(_))), "{server:?}");
    });
}

/// Interrupts a copy when the receiver has told that the file has its name.
struct TooLate(Cancel);

impl Observer for TooLate {
    fn event(&self, event: Event<'_>) {
        if matches!(event, Event::Arrived { files: 1, .. }) {
            self.0.cancel();
        }
    }
}

#[test]
fn an_interrupt_after_all_is_in_place_interrupts_nothing() {
    let p = places();
    write(p.from.join("file"), noise(1000, 1));
    let (here, there) = pair(Conditions::default());
    let late = TooLate(Cancel::new());
    let job = push_of_file(&p);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let report = push(here, &job, &late, &late.0).unwrap();
        assert!(late.0.is_cancelled());
        assert_eq!((report.files, report.problem_count), (1, 0));
        drop(server.join().unwrap());
    });
    assert_same_content(&p.from, &p.to);
}

/// A tree whose files would run as their owner, and as somebody else.
fn set_id_tree(root: &Path) {
    write(root.join("program"), "x");
    write(root.join("group"), "x");
    write(root.join("large"), noise(3 << 20, 1));
    fs::create_dir(root.join("dir")).unwrap();
    symlink("program", root.join("link")).unwrap();
    if is_root() {
        for name in ["program", "large", "dir", "link"] {
            std::os::unix::fs::lchown(root.join(name), Some(12345), Some(54321)).unwrap();
        }
    }
    for (name, mode) in [("program", 0o5755), ("group", 0o2750), ("large", 0o6711), ("dir", 0o3775)] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn a_client_of_an_export_chooses_no_owner_and_no_set_id_bit() {
    use std::os::unix::fs::MetadataExt;
    let p = places();
    let tree = p.from.join("tree");
    set_id_tree(&tree);
    let job = |to: &str| PushJob { options: preserving(), ..PushJob::new([tree.clone()], to) };
    let outcome = run_push(&job("/data"), &exports(&p.to, true), shuffled(1), &Silent, |_| {});
    assert_eq!(outcome.server.as_ref().unwrap().notes, [Note::OwnersNotKept]);
    let report = outcome.clean();
    assert_eq!(report.notes, [Note::OwnersNotKept], "the client is told, once");
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let seen = snapshot(&p.to.join("tree"));
    for (path, seen) in seen.iter().filter(|(_, seen)| !matches!(seen.kind, Kind::Symlink(_))) {
        assert_eq!(seen.mode & 0o6000, 0, "{}", path.display());
        assert_eq!(seen.owner, own, "{}", path.display());
    }
    let mode = |name: &str| seen[Path::new(name)].mode;
    assert_eq!((mode("program"), mode("group"), mode("large"), mode("dir")), (0o755, 0o750, 0o711, 0o1775));
    assert_eq!(fs::symlink_metadata(p.to.join("tree/link")).unwrap().uid(), own.0);

    // The server's owner may allow it.
    let Access::Exports(mut allowed) = exports(&p.to, true) else { unreachable!() };
    allowed[0].ownership = Ownership::Allow;
    let report = run_push(&job("/data"), &Access::Exports(allowed), shuffled(1), &Silent, |_| {}).clean();
    assert!(report.notes.is_empty());
    assert_same(&tree, &p.to.join("tree"));

    // Nothing lost, nothing said.
    write(p.from.join("plain"), "x");
    let plain = PushJob { options: preserving(), ..PushJob::new([p.from.join("plain")], "/data") };
    assert!(run_push(&plain, &exports(&p.to, true), shuffled(1), &Silent, |_| {}).clean().notes.is_empty());
}
