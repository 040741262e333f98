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

use haul_files::protocol::{DRY_RUNS, Digest, Hello, Message, SAMENESS, VERSION, Would};
use haul_files::{
    Cancel, Change, CopyError, Destination, Event, Filter, Observer, Options, PullJob, PushJob, Report, Same, Silent, pull, push,
    rules, serve,
};
use haul_ramstore::memory::{Conditions, pair};

use crate::fixture::{Places, account, places, shuffled, snapshot};
use crate::hostile::{Peer, misbehaved};

/// Pairs of trees in each test.
pub const TREES: u64 = 200;

/// Numbers that follow from a seed.
pub struct Chance(blake3::OutputReader);

impl Chance {
    pub fn of(seed: u64) -> Self {
        Self(blake3::Hasher::new().update(b"rsync").update(&seed.to_le_bytes()).finalize_xof())
    }

    pub fn below(&mut self, end: u64) -> u64 {
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

pub fn grown(seed: u64) -> Places {
    let p = places();
    let mut chance = Chance::of(seed);
    grow(&mut chance, &p.from, 2);
    grow(&mut chance, &p.to, 2);
    p
}

/// Hears what would be done.
#[derive(Default)]
pub struct Heard(pub Mutex<BTreeSet<(PathBuf, &'static str)>>);

impl Observer for Heard {
    fn event(&self, event: Event<'_>) {
        if let Event::Would(would) = event {
            let what = match would.change {
                Change::New(_) => "new",
                Change::Replaced(_) => "replaced",
                Change::Directory => "directory",
                Change::Link => "link",
                Change::Removed => "removed",
                Change::Attributes => "attributes",
            };
            assert!(self.0.lock().unwrap().insert((PathBuf::from(String::from_utf8(would.path.0.clone()).unwrap()), what)));
        }
    }
}

impl Heard {
    /// By names below `root`.
    pub fn below(&self, root: &Path) -> BTreeSet<(PathBuf, &'static str)> {
        let heard = self.0.lock().unwrap();
        heard.iter().map(|(path, what)| (path.strip_prefix(root).unwrap().to_owned(), *what)).collect()
    }
}

/// Copies the content of `from` into `to`, the far side being the one or the other.
fn copy(p: &Places, options: Options, pulled: bool, observer: &dyn Observer) -> Report {
    copy_of(p, options, &Filter::default(), pulled, observer)
}

/// As [`copy`], of what the filter leaves.
pub fn copy_of(p: &Places, options: Options, filter: &Filter, pulled: bool, observer: &dyn Observer) -> Report {
    let (here, there) = pair(shuffled(1));
    let transport = here.transport.clone();
    let source = p.from.join(".");
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &account(), &Silent, &Cancel::new()));
        let report = if pulled {
            let destination = Destination::Path(p.to.clone());
            let job = PullJob { sources: vec![source], destination, options, filter: filter.clone() };
            pull(here, &job, observer, &Cancel::new())
        } else {
            let job = PushJob { options, filter: filter.clone(), ..PushJob::new([source], &p.to) };
            push(here, &job, observer, &Cancel::new())
        };
        transport.kill();
        server.join().unwrap().expect("server");
        report.expect("client")
    })
}

/// Lines that rsync says of what it does, from `from` to `to`.
fn rsync(p: &Places, words: &[&str]) -> Option<Vec<String>> {
    rsync_with(p, &[&["-rlpt"], words].concat()).map(|(lines, whole)| {
        assert!(whole);
        lines
    })
}

/// As [`rsync`], with no words of its own; and whether all was copied.
pub fn rsync_with(p: &Places, words: &[&str]) -> Option<(Vec<String>, bool)> {
    let mut command = Command::new("rsync");
    command.arg("--out-format=%i %n").args(words).arg(p.from.join("")).arg(p.to.join(""));
    let Ok(done) = command.output() else {
        skip::skip("rsync is not installed (make setup)");
        return None;
    };
    // 23: some were not there, or lead nowhere.
    assert!(matches!(done.status.code(), Some(0 | 23)), "{}", String::from_utf8_lossy(&done.stderr));
    let lines = String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect();
    Some((lines, done.status.success()))
}

/// What rsync's lines say of names: changes of times and modes alone are left out.
pub fn changes(lines: &[String]) -> BTreeSet<(PathBuf, &'static str)> {
    let of = |line: &String| {
        if let Some(name) = line.strip_prefix("*deleting") {
            return Some((PathBuf::from(name.trim().trim_end_matches('/')), "removed"));
        }
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
    let job = PushJob { options, ..PushJob::new([p.from.join("f")], &p.to) };
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
    for same in [Same::Size, Same::Content] {
        let options = Options { same, ..Options::default() };
        assert!(matches!(pushed_to(Hello::ours().features & !SAMENESS, options), Err(CopyError::PeerLacks(_))), "{same:?}");
    }
    assert_eq!(misbehaved(pushed_to(Hello::ours().features, Options::default())), "a message that no receiver sends");
}

/// Sizes and contents alone: by `--size-only` and `--checksum` the same files come over as with rsync. One that is the same keeps its time here, where rsync's `-t` sets it.
#[test]
fn size_or_content_decide_as_with_rsync() {
    for (word, same) in [("--size-only", Same::Size), ("--checksum", Same::Content)] {
        let (mut kept, mut sent) = (0, 0);
        for seed in 0..TREES {
            let p = grown(seed);
            let Some(lines) = rsync(&p, &["-n", word]) else { return };
            // Lines of files that only get another time are no transfers.
            let expected = changes(&lines);
            let options = Options { recursive: true, preserve: true, same, ..Options::default() };
            let pulled = seed % 2 == 0;
            for pulled in [false, true] {
                let heard = Heard::default();
                copy(&p, Options { dry_run: true, ..options }, pulled, &heard);
                assert_eq!(heard.below(&p.to), expected, "{word}, seed {seed}, pulled: {pulled}");
            }
            let theirs = grown(seed);
            let report = copy(&p, options, pulled, &Silent);
            rsync(&theirs, &[word]);
            let kinds = |p: &Places| snapshot(&p.to).into_iter().map(|(path, seen)| (path, seen.kind)).collect::<Vec<_>>();
            assert_eq!(kinds(&p), kinds(&theirs), "{word}, seed {seed}");
            (kept, sent) = (kept + report.skipped_files, sent + report.files);
        }
        assert!(kept > TREES / 2 && sent > TREES, "{word}: {kept} kept, {sent} sent");
    }
}

/// `-u`, and patterns that both read alike: there the first one that matches decides, here the last.
#[test]
fn newer_files_and_excluded_names_as_with_rsync() {
    let filter = |lines: &[&str]| Filter::new(lines.iter().map(|&line| line.to_owned())).unwrap();
    for (words, filter, update) in [
        (&["-u"][..], Filter::default(), true),
        (&["--exclude=f1", "--exclude=d0/"], filter(&["f1", "d0/"]), false),
        (&["--include=*/", "--include=f1", "--include=l", "--exclude=*"], filter(&["*", "!*/", "!f1", "!l"]), false),
    ] {
        for seed in 0..TREES {
            let (ours, theirs) = (grown(seed), grown(seed));
            let options = Options { recursive: true, preserve: true, update, skip_same: true, ..Options::default() };
            copy_of(&ours, options, &filter, seed % 2 == 0, &Silent);
            if rsync(&theirs, words).is_none() {
                return;
            }
            let kinds = |p: &Places| snapshot(&p.to).into_iter().map(|(path, seen)| (path, seen.kind)).collect::<Vec<_>>();
            assert_eq!(kinds(&ours), kinds(&theirs), "{words:?}, seed {seed}");
        }
    }
}

/// Rules of a merge file, drawn by chance from all that a line can say.
#[test]
fn rules_of_a_file_as_with_rsync() {
    const PATTERNS: [&str; 16] = [
        "f0",
        "f[12]",
        "f?",
        "*",
        "*/",
        "l",
        "/f1",
        "/d0/",
        "d0/f1",
        "/d1/d0/f*",
        "d1/**",
        "d0/***",
        "/d1/***",
        "**/d1/f0",
        "d?/d1/",
        "/*/f3",
    ];
    let (mut left_out, mut kept) = (0, 0);
    for seed in 0..TREES {
        let mut chance = Chance::of(seed ^ 0x5eed);
        let mut text = "# rules\n\n".to_owned();
        for _ in 0..=chance.below(6) {
            let sign = ["-", "+", "- ", "exclude", "include"][chance.below(5) as usize].trim();
            text.extend([sign, " ", PATTERNS[chance.below(16) as usize], "\n"]);
        }
        let (ours, theirs) = (grown(seed), grown(seed));
        let file = ours.from.parent().unwrap().join("rules");
        fs::write(&file, &text).unwrap();
        let options = Options { recursive: true, preserve: true, skip_same: true, ..Options::default() };
        let filter = Filter::new(rules(&text).unwrap()).unwrap();
        let report = copy_of(&ours, options, &filter, seed % 2 == 0, &Silent);
        if rsync(&theirs, &[&format!("--filter=. {}", file.display())]).is_none() {
            return;
        }
        let kinds = |p: &Places| snapshot(&p.to).into_iter().map(|(path, seen)| (path, seen.kind)).collect::<Vec<_>>();
        assert_eq!(kinds(&ours), kinds(&theirs), "seed {seed}: {text}");
        (left_out, kept) = (left_out + report.left_out, kept + report.files);
    }
    assert!(left_out > TREES && kept > TREES, "{left_out} left out, {kept} copied");
}

/// A hash that is not that of the file costs a copy of it, or keeps what is there: it writes nothing else. More of them than can be remembered are refused.
#[test]
fn hashes_that_lead_nowhere_are_refused() {
    let p = places();
    fs::write(p.to.join("f"), "there").unwrap();
    let (here, there) = pair(Conditions::default());
    let options = Options { same: Same::Content, ..Options::default() };
    let job =
        PullJob { sources: vec!["f".into()], destination: Destination::Path(p.to.clone()), options, filter: Filter::default() };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello::ours()));
            for batch in 0..17 {
                let digests = (0..4096).map(|n| Digest { file: 1 + batch * 4096 + n, hash: Some([1; 32]) });
                peer.say(&Message::Digests(digests.collect()));
            }
            peer.listen();
        });
        pull(here, &job, &Silent, &Cancel::new())
    });
    assert_eq!(misbehaved(result), "more hashes than can be remembered");
    assert_eq!(fs::read(p.to.join("f")).unwrap(), b"there");
}
