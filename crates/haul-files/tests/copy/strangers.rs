//! Other users who may write in the destination, and what they put there: nothing of theirs is used, and nothing of theirs is removed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_files::journal::{Record, VERSION, encode};
use haul_files::{CopyError, Event, Note, Observer, Options, PushJob, Stop, Why};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::fixture::*;
use crate::hostile::{file, piece, push_request, pusher_asking};
use crate::resume::stage;

/// Pushes one file to `to`, as the job whose stage is `.haul-07070707` there.
fn push_one(to: &Path) -> Result<haul_files::Report, CopyError> {
    let (result, _) = pusher_asking(push_request(to, false), |peer| {
        peer.block(&[piece(1, 0, b"content", true)], b"content");
        peer.say(&haul_files::protocol::Message::Entries(vec![file(1, haul_files::protocol::ROOT, b"file", 7)]));
        peer.finish();
    });
    result
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A journal of the job of [`push_one`].
fn journal() -> Vec<u8> {
    let mut journal = Vec::new();
    encode(&Record::Job { version: VERSION, job: [7; 32] }, &mut journal);
    journal
}

#[test]
fn a_prepared_stage_is_neither_used_nor_touched() {
    type Prepare = fn(&Path, &Path);
    let ways: [(&str, Prepare); 7] = [
        ("writable for others", |stage, _| {
            fs::create_dir(stage).unwrap();
            write(stage.join("journal"), journal());
            write(stage.join("p1"), "theirs");
            mode(stage, 0o777);
        }),
        ("a link to a directory of the user's", |stage, outside| symlink(outside, stage).unwrap()),
        ("a file", |stage, _| write(stage, "x")),
        ("a directory of the user's, renamed", |stage, _| {
            fs::create_dir(stage).unwrap();
            for name in ["p1", "n2", "photos", "notes"] {
                write(stage.join(name), "precious");
            }
            mode(stage, 0o700);
        }),
        ("its journal is a link", |stage, outside| {
            fs::create_dir(stage).unwrap();
            mode(stage, 0o700);
            symlink(outside.join("sentinel"), stage.join("journal")).unwrap();
        }),
        ("its journal is another name of a file", |stage, outside| {
            fs::create_dir(stage).unwrap();
            mode(stage, 0o700);
            fs::hard_link(outside.join("sentinel"), stage.join("journal")).unwrap();
        }),
        ("another user's", |stage, _| {
            fs::create_dir(stage).unwrap();
            write(stage.join("journal"), journal());
            mode(stage, 0o700);
            if is_root() {
                chown(stage, Some(12345), None).unwrap();
            } else {
                mode(stage, 0o777);
            }
        }),
    ];
    for (way, prepare) in ways {
        let p = places();
        write(p.from.join("sentinel"), "safe");
        let prepared = p.to.join(".haul-07070707");
        prepare(&prepared, &p.from);
        let before = (snapshot(&p.to), snapshot(&p.from));
        let report = push_one(&p.to).unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!((report.files, report.problem_count), (1, 0), "{way}");
        let mut after = (snapshot(&p.to), snapshot(&p.from));
        assert!(after.0.remove(Path::new("file")).is_some());
        let mut before = before;
        // The destination's own time.
        assert!(before.0.remove(Path::new("")).is_some() && after.0.remove(Path::new("")).is_some());
        assert_eq!(before, after, "{way}");
    }
}

#[test]
fn where_every_name_is_taken_it_says_so() {
    let p = places();
    for taken in 0..20 {
        match push_one(&p.to) {
            Ok(_) => take_next_name(&p.to),
            Err(CopyError::Stopped(Stop::Destination { path, why: Why::ForeignStage })) => {
                assert!(path.to_string().ends_with("/.haul-07070707"), "{path}");
                assert!(taken >= 4, "after {taken}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("there is always another name");
}

/// Takes the name that the next run would.
fn take_next_name(to: &Path) {
    let (result, _) = pusher_asking(push_request(to, false), |peer| {
        // Gone before it has sent anything that lasts: a file that began leaves the stage.
        peer.say(&haul_files::protocol::Message::Entries(vec![file(1, haul_files::protocol::ROOT, b"half", 2)]));
        peer.block(&[piece(1, 0, b"h", false)], b"h");
        wait_until(|| fs::read_dir(to).unwrap().any(|entry| entry.unwrap().path().join("p1").exists()));
        peer.link.transport.kill();
    });
    assert!(result.is_err());
    let made = fs::read_dir(to).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.join("journal").exists());
    let made = made.expect("a stage");
    fs::remove_dir_all(&made).unwrap();
    fs::write(&made, "taken").unwrap();
}

/// Puts something into the stage as soon as there is one.
struct Litter<'a> {
    to: &'a Path,
    done: Mutex<Option<PathBuf>>,
}

impl Observer for Litter<'_> {
    fn event(&self, event: Event<'_>) {
        let mut done = self.done.lock().unwrap();
        if matches!(event, Event::FileStarted { .. }) && done.is_none() {
            let there = || fs::read_dir(self.to).unwrap().any(|entry| entry.unwrap().path().join("journal").exists());
            wait_until(there);
            let stage = stage(self.to);
            write(stage.join("theirs"), "x");
            write(stage.join("p7/inside"), "x");
            write(stage.join("photos"), "x");
            *done = Some(stage);
        }
    }
    fn wants_files(&self) -> bool {
        true
    }
}

#[test]
fn what_others_put_into_the_stage_stays_and_is_told() {
    let p = places();
    for i in 0..30 {
        write(p.from.join(format!("tree/{i}")), noise(200_000, i));
    }
    let job = PushJob::new([p.from.join("tree")], &p.to);
    let litter = Litter { to: &p.to, done: Mutex::default() };
    let report = run_push(&job, &account(), shuffled(1), &litter, |_| {}).clean();
    let stage = litter.done.into_inner().unwrap().unwrap();
    let [Note::StageNotEmpty { path }] = &report.notes[..] else { panic!("{:?}", report.notes) };
    assert_eq!(path.to_path(), stage);
    assert_same_content(&p.from.join("tree"), &p.to.join("tree"));
    let left: Vec<PathBuf> = snapshot(&stage).into_keys().collect();
    assert_eq!(left, ["", "p7", "p7/inside", "photos", "theirs"].map(PathBuf::from));
    // And the same copy again is not kept from its work.
    let report = run_push(&job, &account(), shuffled(2), &haul_files::Silent, |_| {}).clean();
    assert_eq!((report.files, report.notes.len()), (30, 0));
    assert_eq!(snapshot(&stage).len(), 5);
}

/// Not a test by itself: what [`a_directory_that_turns_into_a_link_leads_nowhere`] runs as a user that is not root.
#[test]
fn copies_over_what_is_exchanged() {
    let Ok(places) = std::env::var("HAUL_TEST_EXCHANGED") else { return };
    let places = Path::new(&places);
    let (source, to) = (places.join("from/d"), places.join("to"));
    let over = AtomicBool::new(false);
    let (mut as_directory, mut as_link, mut else_ways) = (0, 0, Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, to.join("d"), CWD, to.join("link"), RenameFlags::EXCHANGE).unwrap();
            }
        });
        for seed in 0..1500 {
            // Met as a directory it is opened up, met as a link it is a problem. A round meets either by chance, so there are more where one has not been met.
            match push_paths(&[&source], &to, Options { ..recursive() }, shuffled(seed)).client {
                Ok(report) if report.files == 1 => as_directory += 1,
                Ok(report) if report.problems.iter().any(|problem| problem.why == Why::LinkNotFollowed) => as_link += 1,
                other => else_ways.push(format!("{other:?}")),
            }
            if seed >= 149 && as_directory > 0 && as_link > 0 {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(as_directory > 0 && as_link > 0, "{as_directory} as a directory, {as_link} as a link, {:?}", else_ways.last());
}

/// A directory that may not be written to is opened up for the copy; meanwhile another user exchanges it for a link to one of the user's own.
#[test]
fn a_directory_that_turns_into_a_link_leads_nowhere() {
    if !is_root() {
        return skip::skip("this test needs root, to be another user");
    }
    let p = places();
    let base = p.from.parent().unwrap();
    let sentinel = base.join("sentinel");
    fs::create_dir(&sentinel).unwrap();
    write(p.from.join("d/file"), "x");
    fs::create_dir(p.to.join("d")).unwrap();
    symlink(&sentinel, p.to.join("link")).unwrap();
    mode(&p.to.join("d"), 0o500);
    mode(&sentinel, 0o500);
    // The build directory need not be open to all.
    let program = base.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(base, 0o755);
    let nobody = 65534;
    for path in snapshot(base).into_keys() {
        std::os::unix::fs::lchown(base.join(path), Some(nobody), Some(nobody)).unwrap();
    }
    let output = Command::new(&program)
        .args(["--exact", "strangers::copies_over_what_is_exchanged", "--nocapture"])
        .env("HAUL_TEST_EXCHANGED", base)
        .current_dir(base)
        .uid(nobody)
        .gid(nobody)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::metadata(&sentinel).unwrap().mode() & 0o777, 0o500, "the sentinel was opened up");
    assert_eq!(fs::read_dir(&sentinel).unwrap().count(), 0);
}
