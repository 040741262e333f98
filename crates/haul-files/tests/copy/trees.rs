//! All kinds of files, compared with all their metadata.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use haul_files::{Destination, Fault, Note, Options, PushJob, Why};
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;
use proptest::prelude::*;
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};

use crate::fixture::*;

fn age(path: &Path, secs: u64, nanos: u32) {
    let time = Timespec { tv_sec: secs as i64, tv_nsec: nanos.into() };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// One of everything.
fn everything(root: &Path) {
    write(root.join("empty"), "");
    write(root.join("small"), "x");
    write(root.join("exactly one block"), noise(1 << 20, 1));
    write(root.join("a byte more"), noise((1 << 20) + 1, 2));
    write(root.join("large"), noise(5 << 20, 3));
    for i in 0..300 {
        write(root.join(format!("many/{i}")), noise(i * 37, i as u64));
    }
    write(root.join(OsStr::from_bytes(b"odd/\xff\xfe\n\t\"'*?\\ ")), "odd");
    write(root.join("odd/-rf"), "dash");
    write(root.join("odd/..."), "dots");
    write(root.join(format!("odd/{}", "n".repeat(255))), "long");
    write(root.join("odd/ünïcödé ☃"), "u");
    symlink("small", root.join("link")).unwrap();
    symlink("/nowhere/at/all", root.join("dangling")).unwrap();
    symlink("many", root.join("link to a directory")).unwrap();
    fs::hard_link(root.join("large"), root.join("many/large again")).unwrap();
    fs::hard_link(root.join("small"), root.join("small again")).unwrap();
    fs::hard_link(root.join("empty"), root.join("empty again")).unwrap();
    fs::create_dir(root.join("empty directory")).unwrap();
    let holes = File::create(root.join("holes")).unwrap();
    holes.set_len(20 << 20).unwrap();
    holes.write_all_at(&noise(3000, 4), 7 << 20).unwrap();
    holes.write_all_at(b"end", (19 << 20) + 77).unwrap();
    File::create(root.join("only a hole")).unwrap().set_len(3 << 20).unwrap();
    for (i, name) in ["small", "large", "empty", "odd/-rf", "link", "dangling"].iter().enumerate() {
        age(&root.join(name), 1_000_000_000 + i as u64, 123_456_789);
    }
    age(&root.join("a byte more"), 5, 999_999_999);
    write(root.join("read only/in it"), "r");
    fs::set_permissions(root.join("exactly one block"), Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(root.join("many/7"), Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(root.join("many/8"), Permissions::from_mode(0o666)).unwrap();
    if is_root() {
        std::os::unix::fs::lchown(root.join("many/9"), Some(1234), Some(4321)).unwrap();
        std::os::unix::fs::lchown(root.join("link"), Some(1234), Some(4321)).unwrap();
        std::os::unix::fs::chown(root.join("empty directory"), Some(12), Some(21)).unwrap();
        fs::set_permissions(root.join("many/9"), Permissions::from_mode(0o6711)).unwrap();
    }
    fs::set_permissions(root.join("read only"), Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(root.join("empty directory"), Permissions::from_mode(0o1777)).unwrap();
    for name in ["many", "odd", "read only", "empty directory", ""] {
        age(&root.join(name), 1_111_111_111, 5);
    }
}

#[test]
fn everything_with_all_metadata_both_ways() {
    for seed in 1..4 {
        let p = places();
        let tree = p.from.join("tree");
        everything(&tree);
        let report = push_paths(&[&tree], &p.to, preserving(), shuffled(seed)).clean();
        assert_same(&tree, &p.to.join("tree"));
        assert_eq!(report.hard_links, 3);
        assert_eq!(report.verified, Some(haul_files::Verified::OnArrival));
        let (source, copy) = (fs::metadata(tree.join("holes")).unwrap(), fs::metadata(p.to.join("tree/holes")).unwrap());
        assert!(copy.blocks() <= source.blocks() + 16, "{} blocks of {}", copy.blocks(), source.blocks());
        assert_nothing_left(&p.to);

        let back = p.to.join("back");
        fs::create_dir(&back).unwrap();
        pull_paths(&[&p.to.join("tree")], Destination::Path(back.clone()), preserving(), shuffled(seed)).clean();
        assert_same(&tree, &back.join("tree"));
        assert_nothing_left(&back);
    }
}

#[test]
fn again_over_an_existing_copy() {
    let p = places();
    let tree = p.from.join("tree");
    everything(&tree);
    push_paths(&[&tree], &p.to, preserving(), shuffled(1)).clean();
    write(tree.join("many/3"), "other content");
    write(p.to.join("tree/many/4"), "changed at the destination");
    fs::remove_file(p.to.join("tree/link")).unwrap();
    symlink("elsewhere", p.to.join("tree/link")).unwrap();
    push_paths(&[&tree], &p.to, preserving(), shuffled(2)).clean();
    assert_same(&tree, &p.to.join("tree"));
}

#[test]
fn a_whole_tree_of_a_file_system_of_100_gb_holes_is_quick() {
    let p = places();
    let big = p.from.join("big");
    let file = File::create(&big).unwrap();
    if file.set_len(100 << 30).is_err() {
        return;
    }
    file.write_all_at(b"middle", 50 << 30).unwrap();
    file.write_all_at(b"end", (100 << 30) - 3).unwrap();
    let outcome = push_paths(&[&big], &p.to, preserving(), shuffled(1));
    assert!(outcome.bytes < 1 << 20, "{} bytes sent", outcome.bytes);
    outcome.clean();
    let copy = File::open(p.to.join("big")).unwrap();
    let mut bytes = [0; 6];
    copy.read_exact_at(&mut bytes, 50 << 30).unwrap();
    assert_eq!(&bytes, b"middle");
    copy.read_exact_at(&mut bytes[..3], (100 << 30) - 3).unwrap();
    assert_eq!(&bytes[..3], b"end");
    assert_eq!(copy.metadata().unwrap().len(), 100 << 30);
    assert!(copy.metadata().unwrap().blocks() < 1000);
}

#[test]
fn deeper_than_a_path_can_be_long() {
    const DEPTH: usize = 1500;
    let p = places();
    let open =
        |dir: &std::os::fd::OwnedFd, name: &str| rustix::fs::openat(dir, name, OFlags::DIRECTORY | OFlags::PATH, Mode::empty());
    let top = |path: &Path| rustix::fs::open(path, OFlags::DIRECTORY | OFlags::PATH, Mode::empty()).unwrap();
    let mut dir = top(&p.from);
    for level in 0..DEPTH {
        let name = format!("level{level}");
        rustix::fs::mkdirat(&dir, &*name, Mode::RWXU).unwrap();
        dir = open(&dir, &name).unwrap();
        let file = rustix::fs::openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        rustix::io::write(&file, name.as_bytes()).unwrap();
    }
    let report = push_paths(&[&p.from], &p.to, preserving(), shuffled(1)).clean();
    assert_eq!((report.files, report.directories), (DEPTH as u64, DEPTH as u64 + 1));
    let mut dir = open(&top(&p.to), "from").unwrap();
    for level in 0..DEPTH {
        let name = format!("level{level}");
        dir = open(&dir, &name).unwrap();
        let mut file = File::from(rustix::fs::openat(&dir, "file", OFlags::RDONLY, Mode::empty()).unwrap());
        assert_eq!(std::io::read_to_string(&mut file).unwrap(), name);
    }
}

#[test]
fn a_directory_of_20_000_files() {
    let p = places();
    let wide = p.from.join("wide");
    fs::create_dir(&wide).unwrap();
    for i in 0..20_000 {
        fs::write(wide.join(format!("{i}")), format!("file {i}")).unwrap();
    }
    let outcome = push_paths(&[&wide], &p.to, recursive(), shuffled(1));
    assert!(outcome.blocks < 10_000, "{} blocks", outcome.blocks);
    assert_eq!(outcome.clean().files, 20_000);
    assert_same_content(&wide, &p.to.join("wide"));
}

#[test]
fn special_files_are_skipped_and_what_is_missing_is_named() {
    let p = places();
    let tree = p.from.join("tree");
    write(tree.join("a"), "a");
    write(tree.join("b"), "b");
    rustix::fs::mknodat(rustix::fs::CWD, tree.join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    let report = push_paths(&[&tree, &p.from.join("missing")], &p.to, recursive(), shuffled(1)).partial();
    assert_eq!((report.files, report.problem_count), (2, 1));
    let problem = &report.problems[0];
    assert_eq!((problem.path.to_path(), &problem.why, problem.fault), (p.from.join("missing"), &Why::Os(2), Fault::Source));
    let pipe = Note::Special { path: tree.join("pipe").as_path().into() };
    assert_eq!(report.notes, std::slice::from_ref(&pipe));
    assert_nothing_left(&p.to);
    // As an operand of its own it is all that was wanted.
    let report = push_paths(&[&tree.join("pipe")], &p.to, recursive(), shuffled(2)).partial();
    assert_eq!((report.files, &report.problems[0].why), (0, &Why::Special));
    // The other way round the receiver is the one who asked.
    let outcome = pull_paths(&[&tree], Destination::Path(p.to.join("back")), recursive(), shuffled(3)).clean();
    assert_eq!((outcome.files, outcome.notes), (2, vec![pipe]));
}

#[test]
fn a_file_that_changes_is_read_again_or_reported() {
    struct Meddler(std::path::PathBuf, bool, std::sync::atomic::AtomicU64);
    impl haul_files::Observer for Meddler {
        fn event(&self, event: haul_files::Event<'_>) {
            if let haul_files::Event::FileStarted { path, .. } = event
                && path == self.0
            {
                let turn = self.2.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if turn == 0 || self.1 {
                    let file = File::options().write(true).open(path).unwrap();
                    file.write_all_at(b"changed", 10).unwrap();
                    file.set_modified(UNIX_EPOCH + Duration::from_secs(turn)).unwrap();
                }
            }
        }
        fn wants_files(&self) -> bool {
            true
        }
    }
    for size in [1000, 3 << 20] {
        for always in [false, true] {
            let p = places();
            let file = p.from.join("log");
            write(&file, noise(size, 1));
            write(p.from.join("other"), "other");
            write(p.to.join("log"), "old");
            let options = Options { changed: haul_files::Changed::Retry, ..Options::default() };
            let job = PushJob { options, ..PushJob::new([file.clone(), p.from.join("other")], &p.to) };
            let meddler = Meddler(file.clone(), always, 0.into());
            let report = run_push(&job, &account(), shuffled(1), &meddler, |_| {}).partial();
            assert_eq!(fs::read(p.to.join("other")).unwrap(), b"other");
            if always {
                assert_eq!(report.problems.len(), 1);
                assert_eq!(report.problems[0].why, Why::Changed);
                assert_eq!(fs::read(p.to.join("log")).unwrap(), b"old");
            } else {
                assert_eq!(report.problem_count, 0);
                assert_eq!(fs::read(p.to.join("log")).unwrap(), fs::read(&file).unwrap());
            }
            assert_nothing_left(&p.to);
        }
    }
}

#[test]
fn counts_are_what_was_copied() {
    let p = places();
    write(p.from.join("a"), noise(100, 1));
    write(p.from.join("b"), noise(3 << 20, 2));
    let report = push_paths(&[&p.from], &p.to, recursive(), Conditions::default()).clean();
    assert_eq!((report.files, report.directories, report.bytes), (2, 1, Bytes((3 << 20) + 100)));
    assert_eq!((report.skipped_files, report.resumed), (0, Bytes::ZERO));
}

#[derive(Debug, Clone)]
enum Made {
    File { size: usize, mode: u32, mtime: u32 },
    Sparse { size: u64, at: u64 },
    Symlink(Vec<u8>),
    HardLink(prop::sample::Index),
}

fn made() -> impl Strategy<Value = Made> {
    let file = (prop_oneof![4 => 0usize..2000, 1 => 1_000_000usize..3_000_000], 0u32..0o1000, any::<u32>());
    prop_oneof![
        6 => file.prop_map(|(size, mode, mtime)| Made::File { size, mode: mode | 0o400, mtime }),
        1 => (1u64..50_000_000, any::<prop::sample::Index>())
            .prop_map(|(size, at)| Made::Sparse { size, at: at.index(size as usize) as u64 }),
        1 => prop::collection::vec(1u8..=255, 1..100).prop_map(Made::Symlink),
        1 => any::<prop::sample::Index>().prop_map(Made::HardLink),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_arrives(
        files in prop::collection::vec((prop::collection::vec(0u8..4, 0..5), made()), 1..40),
        seed in any::<u64>(),
        shuffle in 1usize..64,
    ) {
        let p = places();
        let tree = p.from.join("tree");
        fs::create_dir(&tree).unwrap();
        let mut names = Vec::new();
        for (i, (path, made)) in files.iter().enumerate() {
            let dir = path.iter().fold(tree.clone(), |dir, part| dir.join(format!("d{part}")));
            fs::create_dir_all(&dir).unwrap();
            let name = dir.join(format!("f{i}"));
            match made {
                Made::File { size, mode, mtime } => {
                    fs::write(&name, noise(*size, i as u64)).unwrap();
                    fs::set_permissions(&name, Permissions::from_mode(*mode)).unwrap();
                    age(&name, u64::from(*mtime), mtime % 1_000_000_000);
                    names.push(name);
                }
                Made::Sparse { size, at } => {
                    let file = File::create(&name).unwrap();
                    file.set_len(*size).unwrap();
                    file.write_all_at(b"!", *at).unwrap();
                    names.push(name);
                }
                Made::Symlink(target) => symlink(OsStr::from_bytes(target), &name).unwrap(),
                Made::HardLink(to) => if !names.is_empty() { fs::hard_link(to.get(&names), &name).unwrap() },
            }
        }
        push_paths(&[&tree], &p.to, preserving(), Conditions { shuffle, seed, ..Conditions::default() }).clean();
        assert_same(&tree, &p.to.join("tree"));
        assert_nothing_left(&p.to);
    }
}
