//! A sender that is told, while it goes, what to send.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use haul_files::store::{At, Local, Store};
use haul_files::{Cancel, Fed, Feed, Options, PushJob, Silent, Thing, push_fed, serve, serve_store};
use haul_ramstore::memory::{Conditions, pair};
use haul_ramstore::{Operation, Ram};

use crate::fixture::*;

/// Says what was written down, and what it makes of answers.
#[derive(Default)]
struct Script {
    steps: Mutex<VecDeque<Fed>>,
    answers: Mutex<Vec<(u64, u64)>>,
    answering: Mutex<Option<bool>>,
    /// Files that are sent if something of them is missing; others are dropped.
    wanted: Vec<u64>,
    offered: usize,
}

impl Feed for Script {
    fn ready(&self, answers: bool) {
        assert!(self.answering.lock().unwrap().replace(answers).is_none(), "said twice");
    }

    fn next(&self) -> Fed {
        assert!(self.answering.lock().unwrap().is_some(), "asked before it was ready");
        if let Some(step) = self.steps.lock().unwrap().pop_front() {
            return step;
        }
        if self.answers.lock().unwrap().len() < self.offered { Fed::Later } else { Fed::End }
    }

    fn wait(&self) {
        std::thread::yield_now();
    }

    fn answer(&self, number: u64, missing: u64) {
        if missing > 0 {
            let step = if self.wanted.contains(&number) { Fed::Send(number) } else { Fed::Drop(number) };
            self.steps.lock().unwrap().push_back(step);
        }
        self.answers.lock().unwrap().push((number, missing));
    }
}

fn thing(root: &Path, number: u64, parent: u64, source: Option<usize>, path: &str) -> Thing {
    let store = Local::own();
    let path = root.join(path);
    let dir = store.source(&path.parent().unwrap().into()).unwrap();
    let dir = store.directory(At::Top(&dir), None).unwrap();
    let name = path.file_name().unwrap().as_encoded_bytes().to_vec();
    let metadata = store.stat(At::In(&dir, &name)).unwrap();
    Thing { number, parent, source, name, metadata }
}

fn run(from: &Path, to: &Path, sources: &[&str], options: Options, script: Script) -> (Arc<Script>, haul_files::Report) {
    let script = Arc::new(script);
    let sources = sources.iter().map(|source| from.join(source));
    let job = PushJob { options, ..PushJob::new(sources, to) };
    let (here, there) = pair(Conditions::default());
    let transport = here.transport.clone();
    let report = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let client = push_fed(here, &Local::own(), &job, script.clone(), &Silent, &Cancel::new());
        transport.kill();
        server.join().unwrap().expect("server");
        client.expect("client")
    });
    (script, report)
}

fn tree() -> tempfile::TempDir {
    let from = tempfile::tempdir().unwrap();
    fs::create_dir_all(from.path().join("tree/d")).unwrap();
    fs::write(from.path().join("tree/a"), noise(3000, 1)).unwrap();
    fs::write(from.path().join("tree/b"), noise(3 << 20, 2)).unwrap();
    fs::write(from.path().join("tree/d/c"), noise(70_000, 3)).unwrap();
    fs::write(from.path().join("tree/d/empty"), "").unwrap();
    fs::write(from.path().join("single"), "single").unwrap();
    from
}

#[test]
fn what_is_said_is_sent_and_nothing_else() {
    let (from, to) = (tree(), tempfile::tempdir().unwrap());
    let at = |number, parent, source, path: &str| thing(from.path(), number, parent, source, path);
    let steps = [
        Fed::Directory(at(1, 0, Some(0), "tree")),
        Fed::Later,
        Fed::Directory(at(2, 1, None, "tree/d")),
        Fed::File(at(3, 2, None, "tree/d/c")),
        Fed::Symlink(Thing { name: b"link".to_vec(), ..at(4, 1, None, "tree/a") }, b"a".to_vec()),
        Fed::File(at(5, 0, Some(1), "single")),
        Fed::File(at(6, 2, None, "tree/d/empty")),
        Fed::File(at(7, 1, None, "tree/b")),
    ];
    let destination = to.path().join("made");
    let script = Script { steps: Mutex::new(steps.into()), ..Script::default() };
    let (script, report) = run(from.path(), &destination, &["tree", "single"], recursive(), script);
    assert_eq!(*script.answering.lock().unwrap(), Some(false));
    assert_eq!((report.files, report.symlinks, report.problem_count), (4, 1, 0));
    for name in ["tree/b", "tree/d/c", "tree/d/empty", "single"] {
        assert_eq!(fs::read(destination.join(name)).unwrap(), fs::read(from.path().join(name)).unwrap(), "{name}");
    }
    assert!(!destination.join("tree/a").exists() && fs::read_link(destination.join("tree/link")).is_ok());
}

/// With `skip_same` the receiver answers: what it has is not sent, what was dropped is not there, and the attributes of the destination itself stay.
#[test]
fn files_are_offered_and_the_answer_decides() {
    use std::os::unix::fs::PermissionsExt;
    let (from, to) = (tree(), tempfile::tempdir().unwrap());
    fs::set_permissions(to.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(to.path().join("tree")).unwrap();
    fs::copy(from.path().join("tree/a"), to.path().join("tree/a")).unwrap();
    let time = fs::metadata(from.path().join("tree/a")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(to.path().join("tree/a")).unwrap().set_modified(time).unwrap();
    let at = |number, parent, source, path: &str| thing(from.path(), number, parent, source, path);
    let steps = [
        Fed::Directory(at(1, 0, Some(0), "tree")),
        Fed::Offer(at(2, 1, None, "tree/a")),
        Fed::Offer(at(3, 1, None, "tree/b")),
        Fed::Directory(at(4, 1, None, "tree/d")),
        Fed::Offer(at(5, 4, None, "tree/d/c")),
        Fed::File(at(6, 0, Some(1), "single")),
    ];
    let options = Options { recursive: true, preserve: true, skip_same: true, ..Options::default() };
    let script = Script { steps: Mutex::new(steps.into()), wanted: vec![3], offered: 3, ..Script::default() };
    let (script, report) = run(from.path(), to.path(), &["tree", "single"], options, script);
    assert_eq!(*script.answering.lock().unwrap(), Some(true));
    let mut answers = script.answers.lock().unwrap().clone();
    answers.sort_unstable();
    assert_eq!(answers, [(2, 0), (3, 3 << 20), (5, 70_000)]);
    assert_eq!((report.files, report.skipped_files, report.problem_count), (2, 1, 0));
    assert_eq!(fs::read(to.path().join("tree/b")).unwrap(), noise(3 << 20, 2));
    assert!(to.path().join("single").exists() && !to.path().join("tree/d/c").exists());
    assert_eq!(fs::metadata(to.path()).unwrap().permissions().mode() & 0o7777, 0o700);
}

/// The content of a source without a name goes straight to the destination.
#[test]
fn a_source_without_a_name_is_the_destination() {
    let (from, to) = (tree(), tempfile::tempdir().unwrap());
    let top = Thing { name: Vec::new(), ..thing(from.path(), 1, 0, Some(0), "tree") };
    let at = |number, parent, path: &str| thing(from.path(), number, parent, None, path);
    let steps =
        [Fed::Directory(top), Fed::Directory(at(2, 1, "tree/d")), Fed::File(at(3, 2, "tree/d/c")), Fed::File(at(4, 1, "tree/a"))];
    let script = Script { steps: Mutex::new(steps.into()), ..Script::default() };
    let (_, report) = run(from.path(), to.path(), &["tree/."], recursive(), script);
    assert_eq!((report.files, report.problem_count), (2, 0));
    assert_eq!(fs::read(to.path().join("d/c")).unwrap(), noise(70_000, 3));
    assert_eq!(fs::read(to.path().join("a")).unwrap(), noise(3000, 1));
}

/// A file that there is no room for is a problem of its own where others may take it: the rest stays.
#[test]
fn what_fits_is_kept_where_a_file_does_not() {
    let from = tree();
    let at = |number, parent, source, path: &str| thing(from.path(), number, parent, source, path);
    let steps = [
        Fed::Directory(at(1, 0, Some(0), "tree")),
        Fed::File(at(2, 1, None, "tree/a")),
        Fed::File(at(3, 1, None, "tree/b")),
        Fed::Directory(at(4, 1, None, "tree/d")),
        Fed::File(at(5, 4, None, "tree/d/c")),
    ];
    // Only files of several pieces are given a size before they are written.
    let ram = Ram::new();
    ram.fail(Operation::SetSize, 0, rustix::io::Errno::NOSPC.into());
    let job = PushJob::new([from.path().join("tree")], "made");
    let script = Arc::new(Script { steps: Mutex::new(steps.into()), ..Script::default() });
    let (here, there) = pair(Conditions::default());
    let transport = here.transport.clone();
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_store(there, &ram, &Silent, &Cancel::new()));
        let client = push_fed(here, &Local::own(), &job, script, &Silent, &Cancel::new());
        transport.kill();
        (client.expect("client"), server.join().unwrap().expect("server"))
    });
    assert_eq!((client.files, client.problem_count, server.problem_count), (2, 1, 1), "{client:?}");
    assert_eq!(client.problems[0].why, rustix::io::Errno::NOSPC.into());
    assert_eq!(ram.get("made/tree/d/c").unwrap(), noise(70_000, 3));
    assert!(ram.get("made/tree/a").is_some() && ram.get("made/tree/b").is_none());
}
