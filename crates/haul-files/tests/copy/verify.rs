//! What is verified, and what is said about it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_files::block::{PieceSum, hash};
use haul_files::protocol::{FileEnd, Message, ROOT, Request};
use haul_files::{
    Cancel, Destination, Event, Observer, Options, PushJob, ReadBack, Report, Silent, SourceSpec, StoreError, Verified, Verify,
    Why, push, serve, serve_store,
};
use haul_ramstore::memory::{Conditions, pair};
use haul_ramstore::{Operation, Ram};

use crate::fixture::*;
use crate::hostile::{file, misbehaved, piece, push_request, pusher_to};
use crate::resume::stage;

const LARGE: usize = (3 << 20) + 5;

fn verifying(verify: Verify) -> Options {
    Options { verify, ..recursive() }
}

fn tree(root: &Path) {
    write(root.join("a"), noise(1000, 1));
    write(root.join("large"), noise(LARGE, 2));
    write(root.join("z"), noise(70_000, 3));
    write(root.join("empty"), "");
}

/// Changes a byte of a part file on the disk, between the sync and the reading.
struct Damage<'a> {
    to: &'a Path,
    /// The size of the part file, and where.
    size: usize,
    at: u64,
}

impl Observer for Damage<'_> {
    fn event(&self, event: Event<'_>) {
        let Event::ReadingBack { .. } = event else { return };
        let parts = fs::read_dir(stage(self.to)).unwrap().map(|entry| entry.unwrap().path());
        for path in parts.filter(|path| !path.ends_with("journal")) {
            let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
            if file.metadata().unwrap().len() == self.size as u64 {
                file.write_all_at(b"?", self.at).unwrap();
                file.sync_all().unwrap();
            }
        }
    }
    fn wants_files(&self) -> bool {
        true
    }
}

fn copied(from: &Path, to: &Path, options: Options, server: &dyn Observer) -> Report {
    let (here, there) = pair(Conditions::default());
    let job = PushJob { options, ..PushJob::new([PathBuf::from(from)], to) };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), server, &Cancel::new()).unwrap());
        let client = push(here, &job, &Silent, &Cancel::new()).unwrap();
        let server = server.join().unwrap();
        assert_eq!((client.verified, client.read_back), (server.verified, server.read_back));
        assert_eq!(client.problem_count, server.problem_count);
        client
    })
}

#[test]
fn the_report_says_what_was_verified() {
    for (verify, verified, files) in
        [(Verify::Off, Verified::No, 0), (Verify::Arrival, Verified::OnArrival, 0), (Verify::ReadBack, Verified::ReadBack, 3)]
    {
        let p = places();
        tree(&p.from);
        let report = copied(&p.from, &p.to, verifying(verify), &Silent);
        assert_eq!((report.files, report.verified), (4, Some(verified)));
        // The empty one has nothing to read.
        assert_eq!(report.read_back.direct_files + report.read_back.uncached_files, files);
        assert_same_content(&p.from, &p.to.join("from"));
        assert_nothing_left(&p.to);
    }
}

#[test]
fn nothing_is_verified_where_nothing_came() {
    let p = places();
    tree(&p.from);
    let options = Options { skip_same: true, ..recursive() };
    assert_eq!(copied(&p.from, &p.to, options, &Silent).verified, Some(Verified::OnArrival));
    let again = copied(&p.from, &p.to, options, &Silent);
    assert_eq!((again.files, again.skipped_files, again.verified), (0, 4, None));
    let report = push_paths(&[&p.from.join("missing")], &p.to, recursive(), Conditions::default()).partial();
    assert_eq!((report.problem_count, report.verified), (1, None));
    let report = push_paths(&[&p.from.join("empty")], &p.to, recursive(), Conditions::default()).clean();
    assert_eq!((report.files, report.verified), (1, None));
}

#[test]
fn damage_between_writing_and_reading_back_is_found_and_named() {
    for (name, size, at) in [("a", 1000, 999), ("large", LARGE, 0), ("large", LARGE, LARGE as u64 - 1), ("large", LARGE, 1 << 20)]
    {
        let p = places();
        tree(&p.from);
        write(p.to.join("from").join(name), "old");
        let damage = Damage { to: &p.to, size, at };
        let report = copied(&p.from, &p.to, verifying(Verify::ReadBack), &damage);
        assert_eq!((report.files, report.problem_count), (3, 1), "{name} {at}");
        assert_eq!(report.problems[0].why, Why::ReadBackMismatch);
        assert!(report.problems[0].path.to_path().ends_with(name));
        assert_eq!(fs::read_to_string(p.to.join("from").join(name)).unwrap(), "old");
        assert_nothing_left(&p.to);
        // Without reading back nobody notices: that is what the default does not promise. The next copy repairs it.
        copied(&p.from, &p.to, verifying(Verify::ReadBack), &Silent);
        assert_same_content(&p.from, &p.to.join("from"));
    }
}

#[test]
fn what_an_earlier_run_left_is_read_back_too() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    let options = verifying(Verify::ReadBack);
    let breaking = Conditions { break_after: Some(15), capacity: 8, ..Conditions::default() };
    assert!(push_paths(&[&file], &p.to, options, breaking).client.is_err());
    let damage = Damage { to: &p.to, size: 20 << 20, at: 1 << 20 };
    let report = copied(&file, &p.to, options, &damage);
    assert!(report.resumed.as_u64() > 2 << 20);
    assert_eq!((report.files, &report.problems[0].why), (0, &Why::ReadBackMismatch));
    let report = copied(&file, &p.to, options, &Silent);
    assert_eq!((report.files, report.verified), (1, Some(Verified::ReadBack)));
}

#[test]
fn it_says_how_it_was_read() {
    // Here it is the disk, where there is one; elsewhere it is memory.
    for dir in [tempfile::tempdir().unwrap(), temporary()] {
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&to).unwrap();
        tree(&from);
        let report = copied(&from, &to, verifying(Verify::ReadBack), &Silent);
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT;
        let direct = rustix::fs::open(from.join("large"), flags, rustix::fs::Mode::empty()).is_ok();
        let expected = if direct { (3, 0) } else { (0, 3) };
        let ReadBack { direct_files, uncached_files, .. } = report.read_back;
        assert_eq!((direct_files, uncached_files), expected, "{}", dir.path().display());
    }
}

#[test]
fn a_file_that_its_owner_may_not_read_is_read_back_and_keeps_its_mode() {
    if !is_root() {
        return skip::skip("this test needs root, to send a file that its owner may not read");
    }
    let p = places();
    write(p.from.join("file"), noise(5000, 1));
    let mode: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o200);
    fs::set_permissions(p.from.join("file"), mode).unwrap();
    let options = Options { preserve: true, ..verifying(Verify::ReadBack) };
    let report = copied(&p.from.join("file"), &p.to, options, &Silent);
    assert_eq!((report.files, report.verified), (1, Some(Verified::ReadBack)));
    let seen = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(p.to.join("file")).unwrap().permissions());
    assert_eq!(seen & 0o7777, 0o200);
}

#[test]
fn a_stream_cannot_be_read_back_and_its_file_can() {
    let p = places();
    let sources = [SourceSpec::stream(std::io::Cursor::new(noise(LARGE, 1)))];
    let job = PushJob { options: verifying(Verify::ReadBack), ..PushJob::new(sources, p.to.join("file")) };
    let report = run_push(&job, &account(), Conditions::default(), &Silent, |_| {}).clean();
    assert_eq!(report.verified, Some(Verified::ReadBack));
    let sink = Destination::stream(std::io::sink());
    let report = pull_paths(&[&p.to.join("file")], sink, verifying(Verify::ReadBack), Conditions::default()).clean();
    assert_eq!(report.verified, Some(Verified::OnArrival));
}

/// A copy remembers 2^20 pieces until their files end; with one more, what has come of a file of many is read back at once.
#[test]
fn more_pieces_than_are_remembered_are_read_back_before_the_end_of_their_file() {
    const BLOCK: u64 = 1 << 10;
    let pushed = |blocks: u64| {
        let ram = Ram::new();
        ram.fail(Operation::ReadBack, 0, StoreError::Damaged);
        let request = Request { options: verifying(Verify::ReadBack), ..push_request(Path::new("to"), false) };
        let serve = |there| serve_store(there, &ram, &Silent, &Cancel::new());
        let (result, _) = pusher_to(serve, request, |peer| {
            peer.say(&Message::Entries(vec![file(1, ROOT, b"many", 1 << 30)]));
            for block in 0..blocks {
                let piece = |at| piece(1, block * BLOCK + at, b"x", false);
                peer.block(&(0..BLOCK).map(piece).collect::<Vec<_>>(), &[b'x'; BLOCK as usize]);
            }
            peer.finish();
        });
        result
    };
    assert_eq!(misbehaved(pushed(BLOCK)), "files without an end");
    let problems = pushed(BLOCK + 1).unwrap().problems;
    assert_eq!(problems.iter().map(|problem| &problem.why).collect::<Vec<_>>(), [&Why::ReadBackMismatch]);
}

/// Says how much has arrived, at the server.
#[derive(Default)]
struct Arrived(AtomicU64);

impl Observer for Arrived {
    fn event(&self, event: Event<'_>) {
        if let Event::Arrived { bytes, .. } = event {
            self.0.store(bytes.as_u64(), Ordering::SeqCst);
        }
    }
}

/// What is read back before the end of a file takes its time, and the rest of the file comes meanwhile: the file has no name before that was right.
#[test]
fn a_file_does_not_end_while_some_of_it_is_read_back() {
    const MANY: u64 = 1 << 20;
    let (ram, arrived) = (Ram::new(), Arrived::default());
    let store = ram.clone();
    let (reads, read) = std::sync::mpsc::channel();
    ram.before(Operation::ReadBack, move || {
        reads.send(()).unwrap();
        // It must not get its name: nothing says so sooner than that nothing happens.
        for _ in 0..300 {
            if store.get("to").is_some() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        store.fail(Operation::ReadBack, 0, StoreError::Damaged);
    });
    let request = Request { options: verifying(Verify::ReadBack), ..push_request(Path::new("to"), false) };
    let serve = |there| serve_store(there, &ram, &arrived, &Cancel::new());
    let mut sum = PieceSum::default();
    (0..MANY + 2).for_each(|at| sum.add(at, 1, &hash(b"x", true)));
    let (result, _) = pusher_to(serve, request, |peer| {
        peer.say(&Message::Entries(vec![file(1, ROOT, b"many", MANY + 2)]));
        for block in (0..MANY).step_by(1 << 10) {
            let pieces: Vec<_> = (0..1 << 10).map(|at| piece(1, block + at, b"x", false)).collect();
            peer.block(&pieces, &[b'x'; 1 << 10]);
        }
        wait_until(|| arrived.0.load(Ordering::SeqCst) == MANY);
        // One more than is remembered, and then the last one, which the other writer takes.
        peer.block(&[piece(1, MANY, b"x", false)], b"x");
        read.recv().unwrap();
        peer.block(&[piece(1, MANY + 1, b"x", false)], b"x");
        peer.say(&Message::FileEnd(FileEnd::Sent { id: 1, size: MANY + 2, bytes: MANY + 2, sum: sum.to_bytes() }));
        peer.finish();
    });
    let report = result.unwrap();
    assert_eq!(report.problems.iter().map(|problem| &problem.why).collect::<Vec<_>>(), [&Why::ReadBackMismatch]);
    assert_eq!((report.files, ram.get("to")), (0, None));
}
