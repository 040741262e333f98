//! Copies between two ends in this process, and trees that can be compared.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haul_files::{
    Access, Cancel, CopyError, Destination, Filter, Observer, Options, PullJob, PushJob, Report, Silent, pull, push, serve,
};
use haul_ramstore::memory::{Conditions, Memory, pair};

/// A stream as destination that keeps what it gets.
#[derive(Clone, Default)]
pub struct Collected(pub Arc<Mutex<Vec<u8>>>);

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How both sides ended, and the blocks and bytes that were sent.
pub struct Outcome {
    pub client: Result<Report, CopyError>,
    pub server: Result<Report, CopyError>,
    pub blocks: u64,
    pub bytes: u64,
}

impl Outcome {
    /// The client's report of a copy without problems, which must be the server's too.
    pub fn clean(self) -> Report {
        let report = self.partial();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
        report
    }

    /// The client's report of a copy that came to its end.
    pub fn partial(self) -> Report {
        let (client, server) = (self.client.expect("client"), self.server.expect("server"));
        assert_eq!((client.files, client.bytes), (server.files, server.bytes));
        assert_eq!(client.problem_count, server.problem_count);
        client
    }
}

pub fn recursive() -> Options {
    Options { recursive: true, ..Options::default() }
}

pub fn preserving() -> Options {
    Options { recursive: true, preserve: true, ..Options::default() }
}

/// Any order within 16 blocks.
pub fn shuffled(seed: u64) -> Conditions {
    Conditions { shuffle: 16, seed, ..Conditions::default() }
}

pub fn account() -> Access {
    Access::Account { home: "/".into() }
}

pub fn push_paths(sources: &[&Path], destination: &Path, options: Options, conditions: Conditions) -> Outcome {
    let job = PushJob { options, ..PushJob::new(sources.iter().map(|path| path.to_path_buf()), destination) };
    run_push(&job, &account(), conditions, &Silent, |_| {})
}

pub fn run_push(
    job: &PushJob,
    access: &Access,
    conditions: Conditions,
    observer: &dyn Observer,
    with: impl FnOnce(&Arc<Memory>),
) -> Outcome {
    let (here, there) = pair(conditions);
    let transport = here.transport.clone();
    with(&transport);
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, access, &Silent, &Cancel::new()));
        let client = push(here, job, observer, &Cancel::new());
        // As a process that ends: its connection goes with it.
        transport.kill();
        (client, server.join().unwrap())
    });
    let (blocks, bytes) = transport.sent();
    Outcome { client, server, blocks, bytes }
}

pub fn pull_paths(sources: &[&Path], destination: Destination, options: Options, conditions: Conditions) -> Outcome {
    run_pull(sources, destination, options, &account(), conditions)
}

pub fn run_pull(
    sources: &[&Path],
    destination: Destination,
    options: Options,
    access: &Access,
    conditions: Conditions,
) -> Outcome {
    let job = PullJob {
        sources: sources.iter().map(|path| path.to_path_buf()).collect(),
        destination,
        options,
        filter: Filter::default(),
    };
    let (here, there) = pair(conditions);
    let transport = here.transport.clone();
    let (client, server) = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, access, &Silent, &Cancel::new()));
        let client = pull(here, &job, &Silent, &Cancel::new());
        transport.kill();
        (client, server.join().unwrap())
    });
    let (blocks, bytes) = transport.sent();
    Outcome { client, server, blocks, bytes }
}

/// What can be compared of one thing in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub kind: Kind,
    pub mode: u32,
    pub owner: (u32, u32),
    /// Of a directory too.
    pub mtime: (i64, i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File { size: u64, hash: [u8; 32], first_name: PathBuf },
    Directory,
    Symlink(PathBuf),
    Other,
}

/// A tree below `root`, by relative path.
pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    let mut stack = vec![PathBuf::new()];
    while let Some(relative) = stack.pop() {
        let path = root.join(&relative);
        let stat = path.symlink_metadata().unwrap();
        let kind = if stat.is_dir() {
            let mut names: Vec<OsString> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            stack.extend(names.iter().rev().map(|name| relative.join(name)));
            Kind::Directory
        } else if stat.is_symlink() {
            Kind::Symlink(fs::read_link(&path).unwrap())
        } else if stat.is_file() {
            let first_name = inodes.entry((stat.dev(), stat.ino())).or_insert(relative.clone()).clone();
            Kind::File { size: stat.len(), hash: *blake3::hash(&fs::read(&path).unwrap()).as_bytes(), first_name }
        } else {
            Kind::Other
        };
        let (mode, owner) = (stat.mode() & 0o7777, (stat.uid(), stat.gid()));
        seen.insert(relative, Seen { kind, mode, owner, mtime: (stat.mtime(), stat.mtime_nsec()) });
    }
    seen
}

/// Equal in all that `-p` keeps.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (snapshot(a), snapshot(b));
    let names = |tree: &BTreeMap<PathBuf, Seen>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    for (path, seen) in &a {
        assert_eq!(Some(seen), b.get(path), "{}", path.display());
    }
}

/// Equal in content, kinds and names.
pub fn assert_same_content(a: &Path, b: &Path) {
    let kinds = |root: &Path| snapshot(root).into_iter().map(|(path, seen)| (path, seen.kind)).collect::<Vec<_>>();
    assert_eq!(kinds(a), kinds(b));
}

/// No stage is left in `directory`.
pub fn assert_nothing_left(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.as_encoded_bytes().starts_with(b".haul-"), "{} is left", name.display());
    }
}

/// Bytes that no two places share.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// An empty source and an empty destination.
pub struct Places {
    pub _dir: tempfile::TempDir,
    pub from: PathBuf,
    pub to: PathBuf,
}

pub fn places() -> Places {
    let dir = temporary();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    Places { _dir: dir, from, to }
}

/// Waits for what another thread is about to do.
pub fn wait_until(mut done: impl FnMut() -> bool) {
    let turns = 10_000;
    for _ in 0..turns {
        if done() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    panic!("it did not happen");
}

/// In memory where that is possible: a copy ends with a sync, and a sync of a busy disk takes seconds.
pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A file system in memory, until dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// None, and a word on it, where this user may not mount.
    pub fn tmpfs(at: &Path, options: &str) -> Option<Self> {
        let mounted = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(at).output();
        let mounted = mounted.is_ok_and(|output| output.status.success());
        if !mounted {
            skip::skip("this test needs a mount, and this user may not mount");
        }
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}
