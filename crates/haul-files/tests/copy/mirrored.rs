//! What the source has not is removed, what is on a list is copied, and links are followed: beside rsync on the same random trees, and against peers that would have more removed, or give more than was asked for.
//!
//! Where they differ:
//! - rsync removes a directory to put a file in its place, and a link to put a directory there; here that is a problem of the one name, with and without `--delete`. The trees have no such names.
//! - With `--max-delete` rsync removes that many and stops; here nothing is removed where there are more.
//! - A file that has vanished while the source was read keeps all at the destination here; rsync removes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_files::protocol::{Entry, Hello, Kind, Message, Request, Term, What};
use haul_files::{
    Access, Cancel, Chosen, CopyError, Delete, Destination, Fault, FileProblem, Filter, Note, Options, PullJob, Report, Silent,
    Why, WirePath, pull, serve,
};
use haul_ramstore::memory::{Conditions, pair};

use crate::fixture::{Places, places, snapshot};
use crate::hostile::{Peer, directory, file, misbehaved};
use crate::rsync::{Chance, Heard, TREES, changes, copy_of, grown, rsync_with};

const MIRROR: Options =
    Options { recursive: true, preserve: true, skip_same: true, delete: Some(Delete { most: None }), ..plain() };

const fn plain() -> Options {
    Options {
        recursive: false,
        preserve: false,
        update: false,
        skip_same: false,
        changed: haul_files::Changed::Take,
        verify: haul_files::Verify::Arrival,
        resume: true,
        same: haul_files::Same::Time,
        follow: false,
        delete: None,
        keep: haul_files::Keep::NONE,
        dry_run: false,
    }
}

fn kinds(root: &Path) -> Vec<(std::path::PathBuf, crate::fixture::Kind)> {
    snapshot(root).into_iter().map(|(path, seen)| (path, seen.kind)).collect()
}

fn filter(lines: &[&str]) -> Filter {
    Filter::new(lines.iter().map(|line| (*line).to_owned())).unwrap()
}

#[test]
fn what_the_source_has_not_goes_as_with_rsync() {
    let mut removed = 0;
    for seed in 0..TREES {
        let lines: &[&str] = if seed % 3 == 0 { &["f2", "d1/"] } else { &[] };
        let excluded: Vec<String> = lines.iter().map(|line| format!("--exclude={line}")).collect();
        let words: Vec<&str> = ["-rlpt", "--delete"].into_iter().chain(excluded.iter().map(String::as_str)).collect();
        let p = grown(seed);
        let Some((said, _)) = rsync_with(&p, &[&words[..], &["-n"]].concat()) else { return };
        let before = snapshot(&p.to);
        let mut said_only: Vec<(std::path::PathBuf, &str)> = Vec::new();
        for pulled in [false, true] {
            let heard = Heard::default();
            let report = copy_of(&p, Options { dry_run: true, ..MIRROR }, &filter(lines), pulled, &heard);
            let (ours, theirs) = (heard.below(&p.to), changes(&said));
            assert!(ours.is_subset(&theirs), "seed {seed}, pulled: {pulled}");
            said_only = theirs.difference(&ours).cloned().collect();
            assert_eq!(report.removed, heard.0.lock().unwrap().iter().filter(|(_, what)| *what == "removed").count() as u64);
        }
        assert_eq!(snapshot(&p.to), before, "seed {seed}");
        let (ours, theirs) = (grown(seed), grown(seed));
        let report = copy_of(&ours, MIRROR, &filter(lines), seed % 2 == 0, &Silent);
        rsync_with(&theirs, &words);
        assert_eq!(kinds(&ours.to), kinds(&theirs.to), "seed {seed}");
        // rsync says in a dry run that it would remove a directory with something in it that is excluded, and then does not.
        for (path, what) in said_only {
            assert!(what == "removed" && theirs.to.join(&path).is_dir() && !lines.is_empty(), "seed {seed}, {path:?}");
        }
        removed += report.removed;
    }
    assert!(removed > TREES, "{removed} removed");
}

#[test]
fn a_list_of_names_is_copied_as_with_rsync() {
    let mut missed = 0;
    for seed in 0..TREES {
        let mut chance = Chance::of(seed ^ 0x11);
        let mut name = |depth: u64| {
            let dirs: Vec<String> = (0..chance.below(depth + 1)).map(|_| format!("d{}", chance.below(2))).collect();
            let last = ["f0", "f1", "f2", "l", "d0", "d1", "no"][chance.below(7) as usize];
            dirs.into_iter().chain([last.to_owned()]).collect::<Vec<_>>().join("/")
        };
        let list: Vec<String> = (0..6).map(|_| name(2)).collect();
        let recursive = seed % 2 == 0;
        let (ours, theirs) = (grown(seed), grown(seed));
        let path = theirs.to.parent().unwrap().join("list");
        fs::write(&path, list.join("\n")).unwrap();
        let from = format!("--files-from={}", path.display());
        let words: &[&str] = if recursive { &["-rlpt", &from] } else { &["-lpt", &from] };
        let Some((_, whole)) = rsync_with(&theirs, words) else { return };
        let filter = Filter::default().of(Chosen::new(list.iter().map(String::as_bytes)).unwrap());
        let options = Options { recursive, preserve: true, skip_same: true, ..plain() };
        let report = copy_of(&ours, options, &filter, seed % 4 < 2, &Silent);
        assert_eq!(kinds(&ours.to), kinds(&theirs.to), "seed {seed}, {list:?}, recursive: {recursive}");
        assert_eq!(report.problem_count == 0, whole, "seed {seed}, {list:?}: {:?}", report.problems);
        missed += u64::from(!whole);
    }
    assert!(missed > TREES / 4 && missed < TREES, "{missed} lists with names that are not there");
}

#[test]
fn links_are_followed_as_with_rsync() {
    for seed in 0..TREES {
        let (ours, theirs) = (grown(seed), grown(seed));
        for p in [&ours, &theirs] {
            let mut chance = Chance::of(seed ^ 0x22);
            for name in ["g0", "g1", "h0"] {
                symlink(["f0", "f3", "d0", "d1", "d0/d1"][chance.below(5) as usize], p.from.join(name)).unwrap();
            }
        }
        let Some((_, whole)) = rsync_with(&theirs, &["-rLpt"]) else { return };
        let options = Options { recursive: true, preserve: true, skip_same: true, follow: true, ..plain() };
        let report = copy_of(&ours, options, &Filter::default(), seed % 2 == 0, &Silent);
        assert_eq!(kinds(&ours.to), kinds(&theirs.to), "seed {seed}: {:?}", report.problems);
        assert_eq!(report.problem_count == 0, whole, "seed {seed}: {:?}", report.problems);
    }
}

#[test]
fn links_that_lead_back_end() {
    for pulled in [false, true] {
        let p = places();
        fs::create_dir_all(p.from.join("a/b")).unwrap();
        fs::write(p.from.join("a/b/f"), "f").unwrap();
        symlink("../..", p.from.join("a/b/up")).unwrap();
        symlink(".", p.from.join("here")).unwrap();
        symlink("b", p.from.join("a/twice")).unwrap();
        let options = Options { recursive: true, follow: true, ..plain() };
        let report = copy_of(&p, options, &Filter::default(), pulled, &Silent);
        assert_eq!(report.problem_count, 3, "{:?}", report.problems);
        assert!(report.problems.iter().all(|problem| problem.why == Why::from(rustix::io::Errno::LOOP)));
        assert_eq!(fs::read(p.to.join("a/twice/f")).unwrap(), b"f");
    }
}

/// Trees with something in each of the ways.
fn kept(p: &Places) {
    fs::create_dir_all(p.from.join("d")).unwrap();
    fs::create_dir_all(p.to.join("d/old/deep")).unwrap();
    for name in ["d/x", "d/old/deep/y", "z", ".haul-01234567"] {
        fs::write(p.to.join(name), name).unwrap();
    }
    fs::create_dir_all(p.to.parent().unwrap().join("outside")).unwrap();
    fs::write(p.to.parent().unwrap().join("outside/f"), "f").unwrap();
    symlink("../outside", p.to.join("leads_out")).unwrap();
}

#[test]
fn nothing_goes_beyond_the_limit_or_outside() {
    for pulled in [false, true] {
        let p = places();
        kept(&p);
        let before = snapshot(&p.to);
        // d/x, d/old, d/old/deep, d/old/deep/y, z, leads_out.
        let limited = |most| Options { delete: Some(Delete { most: Some(most) }), ..MIRROR };
        for options in [limited(5), limited(0), Options { dry_run: true, ..limited(5) }] {
            let report = copy_of(&p, options, &Filter::default(), pulled, &Silent);
            let most = options.delete.unwrap().most.unwrap();
            assert_eq!((report.removed, report.problem_count), (0, 1), "{:?}", report.problems);
            assert_eq!(report.problems[0].why, Why::TooMuchToDelete { most });
            assert_eq!(kinds_of(&before), kinds(&p.to));
        }
        let report = copy_of(&p, limited(6), &Filter::default(), pulled, &Silent);
        assert_eq!((report.removed, report.problem_count), (6, 0), "{:?}", report.problems);
        assert_eq!(fs::read_dir(&p.to).unwrap().count(), 2, "the directory, and what may be a stage");
        assert_eq!(fs::read(p.to.parent().unwrap().join("outside/f")).unwrap(), b"f");
    }
}

fn kinds_of(
    seen: &std::collections::BTreeMap<std::path::PathBuf, crate::fixture::Seen>,
) -> Vec<(std::path::PathBuf, crate::fixture::Kind)> {
    seen.iter().map(|(path, seen)| (path.clone(), seen.kind.clone())).collect()
}

/// What a server says to a client that pulls the content of a directory into `to`.
fn pulled_from(to: &Path, options: Options, filter: &Filter, says: &[Message]) -> Result<Report, CopyError> {
    pulled_from_source("src/.", to, options, filter, says)
}

/// As [`pulled_from`], to one that pulls this.
fn pulled_from_source(source: &str, to: &Path, options: Options, filter: &Filter, says: &[Message]) -> Result<Report, CopyError> {
    let (here, there) = pair(Conditions::default());
    let destination = Destination::Path(to.to_owned());
    let job = PullJob { sources: vec![source.into()], destination, options, filter: filter.clone() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut peer = Peer { link: there };
            peer.say(&Message::Hello(Hello::ours()));
            for message in says {
                peer.say(message);
            }
            peer.finish();
            peer.listen();
        });
        pull(here, &job, &Silent, &Cancel::new())
    })
}

#[test]
fn a_source_that_was_not_read_whole_removes_nothing() {
    let problem = Message::Problem(FileProblem {
        path: WirePath(b"src/d".to_vec()),
        fault: Fault::Source,
        why: Why::from(rustix::io::Errno::ACCESS),
    });
    let tops = Message::Entries(vec![directory(1, 0, b"")]);
    for says in [vec![tops.clone(), problem, Message::ScanDone], vec![tops.clone()]] {
        let p = places();
        kept(&p);
        let before = kinds(&p.to);
        let report = pulled_from(&p.to, MIRROR, &Filter::default(), &says).unwrap();
        assert_eq!((report.removed, kinds(&p.to)), (0, before));
        assert!(matches!(report.notes[..], [Note::NothingDeleted { .. }]), "{:?}", report.notes);
    }
    let p = places();
    kept(&p);
    let report = pulled_from(&p.to, MIRROR, &Filter::default(), &[tops, Message::ScanDone]).unwrap();
    // And the directory that the other has.
    assert_eq!(report.removed, 7);
}

/// Directories that are removed are not synced: with many others they have been closed by then, and cannot be opened again.
#[test]
fn what_is_removed_is_not_opened_again() {
    let p = places();
    let name = |id: u64| format!("d{id}");
    for id in 2..=301 {
        fs::create_dir(p.to.join(name(id))).unwrap();
    }
    fs::create_dir(p.to.join("d301/old")).unwrap();
    fs::write(p.to.join("d301/old/f"), "f").unwrap();
    let entries = (2..=301).map(|id| directory(id, 1, name(id).as_bytes()));
    let entries = Message::Entries([directory(1, 0, b"")].into_iter().chain(entries).collect());
    let report = pulled_from(&p.to, MIRROR, &Filter::default(), &[entries, Message::ScanDone]).unwrap();
    assert_eq!((report.removed, report.problem_count), (2, 0), "{:?}", report.problems);
    assert!(!p.to.join("d301/old").exists() && p.to.join("d301").exists());
}

#[test]
fn who_gives_a_tree_where_files_were_asked_for_is_refused() {
    let link = Entry { kind: Kind::Symlink { target: WirePath(b"/".to_vec()) }, ..directory(1, 0, b"src") };
    for (source, entry) in [("src/.", directory(1, 0, b"")), ("src", directory(1, 0, b"src")), ("src", link)] {
        let p = places();
        let says = [Message::Entries(vec![entry])];
        let result = pulled_from_source(source, &p.to, plain(), &Filter::default(), &says);
        assert_eq!(misbehaved(result), "a directory or link, where only files were asked for");
        assert_eq!(fs::read_dir(&p.to).unwrap().count(), 0);
    }
}

#[test]
fn who_gives_what_is_not_on_the_list_is_refused() {
    let filter = Filter::default().of(Chosen::new([&b"a/b"[..]]).unwrap());
    let options = Options { recursive: true, ..plain() };
    for entries in [vec![file(2, 1, b"c", 0)], vec![directory(2, 1, b"a"), file(3, 2, b"c", 0)], vec![file(2, 1, b"b", 0)]] {
        let p = places();
        let says = Message::Entries([vec![directory(1, 0, b"")], entries].concat());
        let result = pulled_from(&p.to, options, &filter, &[says, Message::ScanDone]);
        assert_eq!(misbehaved(result), "what is not on the list of names");
        assert!(!p.to.join("c").exists() && !p.to.join("b").exists());
    }
}

/// What a server makes of words before a request to receive.
fn asked(words: &[Message]) -> Result<Report, CopyError> {
    let p = places();
    let (here, there) = pair(Conditions::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(there, &Access::Account { home: "/".into() }, &Silent, &Cancel::new()));
        let mut peer = Peer { link: here };
        peer.say(&Message::Hello(Hello::ours()));
        for message in words {
            peer.say(message);
        }
        let what = What::Pull { sources: vec![(&*p.from.join(".")).into()], in_order: false };
        peer.say(&Message::Request(Request { what, options: plain(), job: [7; 32] }));
        peer.listen();
        peer.link.transport.kill();
        server.join().unwrap()
    })
}

#[test]
fn a_server_takes_no_list_that_leads_elsewhere_and_none_without_an_end() {
    for path in [&b"../x"[..], b"a/../../x", b"a\0b", &[b'x'; 300]] {
        let list = Message::Choose(vec![WirePath(path.to_vec())]);
        assert_eq!(misbehaved(asked(&[list])), "a list with names that lead elsewhere");
    }
    let many = Message::Choose(vec![WirePath(b"a".to_vec()); 1 << 17]);
    assert_eq!(misbehaved(asked(&vec![many; 9])), "more names than can be remembered");
    let term = Message::Terms(vec![Term::Follow]);
    assert_eq!(misbehaved(asked(&[term.clone(), term])), "no request");
}

#[test]
fn who_sends_is_told_what_went() {
    let p = places();
    kept(&p);
    let heard = Removals::default();
    let report = copy_of(&p, MIRROR, &filter(&["z"]), false, &heard);
    assert_eq!(report.removed, 5);
    let mut removed = heard.0.into_inner().unwrap();
    removed.sort();
    let names = ["d/old", "d/old/deep", "d/old/deep/y", "d/x", "leads_out"];
    assert_eq!(removed.len(), 5, "{removed:?}");
    assert!(removed.iter().zip(names).all(|(path, name)| path.ends_with(name)), "{removed:?}");
    assert!(p.to.join("z").exists(), "excluded");
}

#[derive(Default)]
struct Removals(std::sync::Mutex<Vec<String>>);

impl haul_files::Observer for Removals {
    fn event(&self, event: haul_files::Event<'_>) {
        if let haul_files::Event::Removed(path) = event {
            self.0.lock().unwrap().push(path.to_string());
        }
    }
}
