//! Words that rsync has too, beside rsync: on the same random trees the same is done, or what differs is said here.
//!
//! - Without `--force` rsync does not put a file where a directory is, and neither does a copy here; the trees have no such names.
//! - rsync takes times within a second for the same where it lists them to a server that is old; both sides here are one program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use haul_files::protocol::{DRY_RUNS, Hello, Message, VERSION, Would};
use haul_files::{
    Cancel, Change, CopyError, Destination, Event, Filter, Observer, Options, PullJob, PushJob, Report, Silent, pull, push, serve,
};
use haul_ramstore::memory::{Conditions, pair};

use crate::fixture::{Places, account, places, shuffled, snapshot};
use crate::hostile::{Peer, misbehaved};

/// Pairs of trees in each test.
const TREES: u64 = 200;

/// Numbers that follow from a seed.
struct Chance(blake3::OutputReader);

impl Chance {
    fn of(seed: u64) -> Self {
        Self(blake3::Hasher::new().update(b"rsync").update(&seed.to_le_bytes()).finalize_xof())
    }

    fn below(&mut self, end: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % end
    }
}

/// A tree whose names say what they are, so that in two of them a name is the same kind of thing.
fn grow(chance: &mut Chance, dir: &Path, depth: u64) {
    fs::create_dir_all(dir).unwrap();
    for name in 0..4 {
        if chance.below(3) > 0 {
            let size = [0, 1, 700, 700, 5000][chance.below(5) as usize];
            let path = dir.join(format!("f{name}"));
            fs::write(&path, vec![b'a' + chance.below(2) as u8; size]).unwrap();
            dated(&path, 1_000_000 + chance.below(3));
        }
    }
    if chance.below(2) == 0 {
        symlink(format!("to{}", chance.below(2)), dir.join("l")).unwrap();
    }
    for name in 0..2 {
        if depth > 0 && chance.below(3) > 0 {
            grow(chance, &dir.join(format!("d{name}")), depth - 1);
        }
    }
}

fn dated(path: &Path, seconds: u64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn grown(seed: u64) -> Places {
    let p = places();
    let mut chance = Chance::of(seed);
    grow(&mut chance, &p.from, 2);
    grow(&mut chance, &p.to, 2);
    p
}

/// Hears what would be done.
#[derive(Default)]
struct Heard(Mutex<BTreeSet<(PathBuf, &'static str)>>);

impl Observer for Heard {
    fn event(&self, event: Event<'_>) {
        if let Event::Would(would) = event {
            let what = match would.change {
                Change::New(_) => "new",
                Change::Replaced(_) => "replaced",
                Change::Directory => "directory",
                Change::Link => "link",
            };
            assert!(self.0.lock().unwrap().insert((PathBuf::from(String::from_utf8(would.path.0.clone()).unwrap()), what)));
        }
    }
}

impl Heard {
    /// By names below `root`.
    fn below(&self, root: &Path) -> BTreeSet<(PathBuf, &'static str)> {
        let heard = self.0.lock().unwrap();
        heard.iter().map(|(path, what)| (path.strip_prefix(root).unwrap().to_owned(), *what)).collect()
    }
}

/// Copies the content of `from` into `to`, the far side being the one or the other.
fn copy(p: &Places, options: Options, pulled: bool, observer: &dyn Observer) -> Report {
    let (here, there) = pair(shuffled(1));
    let transport = here.transport.clone();
    let source = p.from.join(".");
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let report = if pulled {
            let destination = Destination::Path(p.to.clone());
            let job = PullJob { sources: vec![source], destination, options, filter: Filter::default() };
            pull(here, &job, observer, &Cancel::new())
        } else {
            let sources = vec![source.into()];
            let job = PushJob { sources, destination: p.to.clone(), options, filter: Filter::default() };
            push(here, &job, observer, &Cancel::new())
        };
        transport.kill();
        server.join().unwrap().expect("server");
        report.expect("client")
    })
}

/// Lines that rsync says of what it does, from `from` to `to`.
fn rsync(p: &Places, words: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("rsync");
    command.args(["-rlpt", "--out-format=%i %n"]).args(words).arg(p.from.join("")).arg(p.to.join(""));
    let Ok(done) = command.output() else {
        assert!(std::env::var_os("CI").is_none(), "rsync is not installed (make setup)");
        eprintln!("SKIPPED: rsync is not installed");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// What rsync's lines say of names: changes of times and modes alone are left out.
fn changes(lines: &[String]) -> BTreeSet<(PathBuf, &'static str)> {
    let of = |line: &String| {
        let (how, name) = line.split_once(' ')?;
        let what = match (&how[..2], how.ends_with("++")) {
            (">f", true) => "new",
            (">f", false) => "replaced",
            ("cd", true) => "directory",
            ("cL", _) => "link",
            _ => return None,
        };
        Some((PathBuf::from(name.split(" -> ").next()?.trim_end_matches('/')), what))
    };
    lines.iter().filter_map(of).collect()
}

#[test]
fn a_dry_run_says_what_rsync_s_says_and_writes_nothing() {
    for seed in 0..TREES {
        let p = grown(seed);
        let Some(lines) = rsync(&p, &["-n"]) else { return };
        let before = [snapshot(&p.from), snapshot(&p.to)];
        for pulled in [false, true] {
            let options = Options { recursive: true, preserve: true, skip_same: true, dry_run: true, ..Options::default() };
            let heard = Heard::default();
            let report = copy(&p, options, pulled, &heard);
            let heard = heard.below(&p.to);
            assert_eq!(heard, changes(&lines), "seed {seed}, pulled: {pulled}");
            let count = |kinds: &[&str]| heard.iter().filter(|(_, what)| kinds.contains(what)).count() as u64;
            let said = (report.files, report.directories, report.symlinks, report.verified);
            assert_eq!(said, (count(&["new", "replaced"]), count(&["directory"]), count(&["link"]), None));
        }
        assert_eq!([snapshot(&p.from), snapshot(&p.to)], before, "seed {seed}");
    }
}

#[test]
fn what_a_dry_run_says_is_then_done_as_rsync_does_it() {
    for seed in 0..TREES {
        let p = grown(seed);
        let options = Options { recursive: true, preserve: true, skip_same: true, ..Options::default() };
        let (ours, theirs) = (grown(seed), grown(seed));
        copy(&ours, options, seed % 2 == 0, &Silent);
        if rsync(&theirs, &[]).is_none() {
            return;
        }
        let kinds = |p: &Places| snapshot(&p.to).into_iter().map(|(path, seen)| (path, seen.kind)).collect::<Vec<_>>();
        assert_eq!(kinds(&ours), kinds(&theirs), "seed {seed}");
        let heard = Heard::default();
        let dry = |p: &Places, heard: &Heard| copy(p, Options { dry_run: true, ..options }, true, heard);
        dry(&p, &heard);
        assert!(!heard.0.lock().unwrap().is_empty() || kinds(&p) == kinds(&ours), "seed {seed}");
        let again = Heard::default();
        dry(&ours, &again);
        assert!(again.0.lock().unwrap().is_empty(), "seed {seed}: nothing is left to do");
    }
}

/// Pushes a file to a server with these features, which says then what would become of it.
fn pushed_to(features: u64, options: Options) -> Result<Report, CopyError> {
    let p = places();
    fs::write(p.from.join("f"), "f").unwrap();
    let (here, there) = pair(Conditions::default());
    let job = PushJob { sources: vec![p.from.join("f").into()], destination: p.to.clone(), options, filter: Filter::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello { version: VERSION, features }));
            peer.say(&Message::Start { wants: options.dry_run });
            peer.say(&Message::Would(vec![Would { path: (&*p.to).into(), change: Change::New(1) }]));
            peer.listen();
        });
        push(here, &job, &Silent, &Cancel::new())
    })
}

#[test]
fn a_server_that_would_do_it_is_named_and_one_that_says_what_nobody_asked_is_refused() {
    let dry = Options { dry_run: true, ..Options::default() };
    assert!(matches!(pushed_to(Hello::ours().features & !DRY_RUNS, dry), Err(CopyError::PeerLacks(_))));
    assert_eq!(misbehaved(pushed_to(Hello::ours().features, Options::default())), "a message that no receiver sends");
}
