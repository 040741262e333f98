//! Files that are written to while they are copied.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_files::{Cancel, Changed, ChangedFile, Event, Note, Observer, Options, PushJob, Report, Silent, Why, push, serve};
use haul_ramstore::memory::{Conditions, pair};

use crate::fixture::*;

const MIB: usize = 1 << 20;

/// Does something to the source whenever a side starts a file, and watches what is told of the progress.
///
/// The receiver starts a large file when its first block has arrived: then at most [`READ`] blocks of it were read.
struct Meddler<F> {
    meddle: F,
    found: AtomicU64,
    /// The most that had arrived, and the last.
    arrived: Mutex<(u64, u64)>,
}

/// One block in each thread, and one between.
const READ: usize = 2 + 2 + 1;

impl<F: Fn()> Meddler<F> {
    fn new(meddle: F) -> Self {
        Self { meddle, found: AtomicU64::new(0), arrived: Mutex::default() }
    }
}

impl<F: Fn() + Send + Sync> Observer for Meddler<F> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::FileStarted { .. } => (self.meddle)(),
            Event::Found { bytes, .. } => self.found.store(bytes.as_u64(), Ordering::SeqCst),
            Event::Arrived { bytes, .. } => {
                let mut arrived = self.arrived.lock().unwrap();
                *arrived = (arrived.0.max(bytes.as_u64()), bytes.as_u64());
            }
            _ => {}
        }
    }
    fn wants_files(&self) -> bool {
        true
    }
}

fn copy(from: &Path, to: &Path, options: Options, client: &dyn Observer, server: &dyn Observer) -> (Report, u64) {
    let (here, there) = pair(Conditions { capacity: 1, ..Conditions::default() });
    let transport = here.transport.clone();
    let job = PushJob { options, ..PushJob::new([PathBuf::from(from)], to) };
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), server, &Cancel::new()).unwrap());
        let client = push(here, &job, client, &Cancel::new()).unwrap();
        (client, server.join().unwrap())
    });
    assert_eq!((client.files, client.bytes, client.changed_files), (server.files, server.bytes, server.changed_files));
    assert_eq!((client.notes.len(), client.problem_count), (server.notes.len(), server.problem_count));
    (client, transport.sent().1)
}

/// The changes that a report names.
fn changes(report: &Report) -> Vec<ChangedFile> {
    let changes = report.notes.iter().filter_map(|note| if let Note::Changed(file) = note { Some(file.clone()) } else { None });
    changes.collect()
}

fn append(path: &Path, content: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(content).unwrap();
}

fn overwrite(path: &Path, content: &[u8], offset: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(content, offset).unwrap();
}

fn changed(changed: Changed) -> Options {
    Options { changed, ..recursive() }
}

#[test]
fn a_log_that_grows_is_copied_up_to_its_length_at_the_start_and_once() {
    let p = places();
    let log = p.from.join("log");
    let content = noise(20 * MIB + 7, 1);
    write(&log, &content);
    // A line is written whenever a block has gone, and one before.
    let meddler = Meddler::new(|| append(&log, b"one more line\n"));
    let (report, sent) = copy(&log, &p.to, Options::default(), &Silent, &meddler);
    assert!(fs::read(p.to.join("log")).unwrap() == content);
    assert_eq!((report.files, report.problem_count, report.changed_files), (1, 0, 1));
    let (path, size) = (log.as_path().into(), content.len() as u64);
    assert_eq!(changes(&report), [ChangedFile { path, taken: size, now: size + 14, rewritten: Some(vec![]) }]);
    assert!(sent < size + 100_000, "{sent} bytes sent for {size}");
    assert_eq!(report.verified, Some(haul_files::Verified::OnArrival));
    assert_nothing_left(&p.to);
}

#[test]
fn a_log_that_grows_all_the_time_is_copied() {
    for size in [0, 1, 1000, MIB, MIB + 1, 5 * MIB] {
        let p = places();
        let log = p.from.join("log");
        let content = noise(size, 1);
        write(&log, &content);
        // Both sides: before it is opened, and again and again. What it had when it was announced for the last time is taken.
        let (ours, theirs) = (Meddler::new(|| append(&log, b"+")), Meddler::new(|| append(&log, b"+")));
        let (report, _) = copy(&log, &p.to, Options::default(), &ours, &theirs);
        assert_eq!((report.files, report.problem_count), (1, 0), "{size}: {:?}", report.problems);
        let copied = fs::read(p.to.join("log")).unwrap();
        assert!(fs::read(&log).unwrap().starts_with(&copied) && copied.starts_with(&content), "{size}");
        assert_nothing_left(&p.to);
    }
}

#[test]
fn a_block_that_is_rewritten_after_it_was_read_is_named() {
    let p = places();
    let file = p.from.join("file");
    let content = noise(20 * MIB, 1);
    write(&file, &content);
    // Either of the first two blocks is the first to arrive; the other one may be read after it. The first one is shorter where it was read before the
    // receiver had said that it wants the file.
    let (soon, late) = ([5, (256 << 10) + 5, MIB + 5], (READ + 1) << 20);
    let meddler = Meddler::new(|| {
        for at in soon.into_iter().chain([late]) {
            overwrite(&file, &[!content[at]], at as u64);
        }
    });
    let (report, sent) = copy(&file, &p.to, Options::default(), &Silent, &meddler);
    let changes = changes(&report);
    let [ChangedFile { path, taken, now, rewritten: Some(rewritten) }] = &*changes else { panic!("{changes:?}") };
    let size = content.len() as u64;
    assert_eq!((path, *taken, *now), (&file.as_path().into(), size, size));
    assert!(!rewritten.is_empty() && rewritten.iter().all(|&(_, to)| to <= 2 * MIB as u64), "{changes:?}");
    assert_eq!((report.files, report.problem_count, report.changed_files, report.discarded.as_u64()), (1, 0, 1, 0));
    assert!(sent < size + 100_000);
    // What arrived is what was read: from after where the block is not named; one that is may have been read between two of the changes.
    let is_named = |at: usize| rewritten.iter().any(|&(from, to)| (from..to).contains(&(at as u64)));
    assert!(!is_named(late), "{changes:?}");
    let copied = fs::read(p.to.join("file")).unwrap();
    let mut read = content.clone();
    for at in soon.into_iter().chain([late]) {
        let before = is_named(at) && copied[at] == content[at];
        read[at] = if before { content[at] } else { !content[at] };
    }
    assert!(copied == read, "{changes:?}");
    assert!(meddler.arrived.lock().unwrap().0 <= meddler.found.load(Ordering::SeqCst));
}

#[test]
fn without_hashes_the_file_is_named_and_its_blocks_are_not() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(9 * MIB, 1));
    let meddler = Meddler::new(|| overwrite(&file, b"x", 5));
    let options = Options { verify: haul_files::Verify::Off, ..Options::default() };
    let (report, _) = copy(&file, &p.to, options, &Silent, &meddler);
    assert!(matches!(&*changes(&report), [ChangedFile { rewritten: None, .. }]), "{:?}", report.notes);
}

#[test]
fn new_metadata_are_no_change_of_the_content() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(9 * MIB, 1));
    let link = AtomicU64::new(0);
    let meddler = Meddler::new(|| {
        let name = p.from.join(format!("link{}", link.fetch_add(1, Ordering::SeqCst)));
        fs::hard_link(&file, name).unwrap();
    });
    let (report, sent) = copy(&file, &p.to, Options::default(), &Silent, &meddler);
    assert_eq!((report.files, report.notes.len(), report.changed_files, report.problem_count), (1, 0, 0, 0));
    assert!(sent < 9 * MIB as u64 + 100_000);
}

#[test]
fn one_that_is_cut_short_is_read_again() {
    let p = places();
    let file = p.from.join("file");
    let content = noise(20 * MIB, 1);
    write(&file, &content);
    let meddler = Meddler::new(|| fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(10 * MIB as u64 + 3).unwrap());
    let (report, _) = copy(&file, &p.to, Options::default(), &Silent, &meddler);
    assert_eq!((report.files, report.problem_count), (1, 0));
    assert!(fs::read(p.to.join("file")).unwrap() == content[..10 * MIB + 3]);
    assert_eq!(report.bytes.as_u64(), 10 * MIB as u64 + 3);
    assert!(report.discarded.as_u64() > 0);
    assert_nothing_left(&p.to);
}

#[test]
fn one_that_is_cut_short_each_time_is_a_problem() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 * MIB, 1));
    let shorter = || {
        let open = fs::OpenOptions::new().write(true).open(&file).unwrap();
        open.set_len(open.metadata().unwrap().len() - 5 * MIB as u64).unwrap();
    };
    let meddler = Meddler::new(shorter);
    let (report, _) = copy(&file, &p.to, Options::default(), &Silent, &meddler);
    assert_eq!((report.files, &report.problems[0].why), (0, &Why::Changed));
    assert_eq!(report.bytes.as_u64(), 0);
    assert!(!p.to.join("file").exists());
    assert_nothing_left(&p.to);
}

#[test]
fn fail_does_not_copy_it() {
    for size in [9 * MIB, 20 * MIB + 1] {
        let p = places();
        let file = p.from.join("file");
        write(&file, noise(size, 1));
        write(p.to.join("file"), "old");
        let meddler = Meddler::new(|| overwrite(&file, b"x", 5));
        let (report, sent) = copy(&file, &p.to, changed(Changed::Fail), &Silent, &meddler);
        assert_eq!((report.files, report.problem_count, report.changed_files), (0, 1, 0));
        assert_eq!(report.problems[0].why, Why::Changed);
        // What was still under way is dropped unwritten.
        assert_eq!(report.bytes.as_u64(), 0);
        assert!((1..=size as u64).contains(&report.discarded.as_u64()));
        assert!(sent < size as u64 + 100_000);
        assert_eq!(fs::read_to_string(p.to.join("file")).unwrap(), "old");
        assert_nothing_left(&p.to);
    }
}

#[test]
fn retry_reads_it_again_once_and_counts_it_once() {
    for times in [1, 2] {
        let p = places();
        let file = p.from.join("file");
        let content = noise(20 * MIB, 1);
        write(&file, &content);
        let left = AtomicU64::new(times);
        let meddler = Meddler::new(|| {
            if left.load(Ordering::SeqCst) > 0 {
                left.fetch_sub(1, Ordering::SeqCst);
                overwrite(&file, &[b'0' + times as u8], 5);
            }
        });
        let (report, sent) = copy(&file, &p.to, changed(Changed::Retry), &Silent, &meddler);
        assert!(sent > 2 * content.len() as u64);
        if times == 1 {
            assert_eq!((report.files, report.problem_count, report.notes.len()), (1, 0, 0));
            assert_eq!(report.bytes.as_u64(), content.len() as u64);
            assert!((1..=content.len() as u64).contains(&report.discarded.as_u64()));
            assert!(fs::read(p.to.join("file")).unwrap() == fs::read(&file).unwrap());
        } else {
            assert_eq!((report.files, &report.problems[0].why), (0, &Why::Changed));
        }
        let found = meddler.found.load(Ordering::SeqCst);
        let arrived = *meddler.arrived.lock().unwrap();
        assert!(arrived.0 <= found, "{arrived:?} of {found}");
        assert_nothing_left(&p.to);
    }
}

#[test]
fn a_file_that_changed_before_it_was_opened_is_sent_as_it_is_then() {
    for (policy, size) in
        [Changed::Take, Changed::Fail, Changed::Retry].into_iter().flat_map(|policy| [(policy, 1000), (policy, 5 * MIB)])
    {
        let p = places();
        let file = p.from.join("file");
        write(&file, noise(size, 1));
        let once = std::sync::Once::new();
        // The sender starts a file before it opens it.
        let meddler = Meddler::new(|| once.call_once(|| write(&file, noise(size + 11, 2))));
        let (report, sent) = copy(&file, &p.to, changed(policy), &meddler, &Silent);
        assert_eq!((report.files, report.problem_count, report.notes.len()), (1, 0, 0), "{policy:?} {size}");
        assert!(fs::read(p.to.join("file")).unwrap() == noise(size + 11, 2));
        assert!(sent < size as u64 + 100_000);
        assert_nothing_left(&p.to);
    }
}
