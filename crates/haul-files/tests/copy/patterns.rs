//! Patterns in the sources of a pull: expanded by the server, inside what it exports.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_files::{Access, CopyError, Destination, Export, Options, Stop, Why};
use haul_ramstore::memory::Conditions;

use crate::fixture::*;

fn tree(root: &Path) {
    for name in [
        "logs/a.log",
        "logs/b.log",
        "logs/.hidden.log",
        "logs/c.txt",
        "logs/old/d.log",
        "x1/data",
        "x2/data",
        "x2/more",
        "[a].log",
    ] {
        write(root.join(name), name);
    }
}

fn pull_spelled(sources: &[&str], root: &Path, to: &Path, options: Options) -> Outcome {
    let sources: Vec<_> = sources.iter().map(Path::new).collect();
    let access = Access::Account { home: root.to_owned() };
    run_pull(&sources, Destination::Path(to.to_owned()), options, &access, Conditions::default())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_matches_comes() {
    for (patterns, expected) in [
        (&["logs/*.log"][..], &["a.log", "b.log"][..]),
        (&["logs/?.*"], &["a.log", "b.log", "c.txt"]),
        (&["logs/.*.log"], &[".hidden.log"]),
        (&["l*s/[ab].log", "x2/more"], &["a.log", "b.log", "more"]),
        (&["*/more"], &["more"]),
        (&["~/logs/a*"], &["a.log"]),
        (&["logs/[!a]*.log"], &["b.log"]),
        // A name that is there wins; with a backslash the same.
        (&["[a].log"], &["[a].log"]),
        (&["\\[a\\].log"], &["[a].log"]),
        (&["./logs//*.txt"], &["c.txt"]),
    ] {
        let p = places();
        tree(&p.from);
        let report = pull_spelled(patterns, &p.from, &p.to, Options::default()).clean();
        assert_eq!(names(&p.to), expected, "{patterns:?}");
        assert_eq!(report.files as usize, expected.len());
    }
}

#[test]
fn directories_match_too() {
    let p = places();
    tree(&p.from);
    pull_spelled(&["x?"], &p.from, &p.to, recursive()).clean();
    assert_eq!((names(&p.to), names(&p.to.join("x2"))), (vec!["x1".into(), "x2".into()], vec!["data".into(), "more".into()]));
    let outcome = pull_spelled(&["logs/*"], &p.from, &p.to, Options::default()).partial();
    assert_eq!((outcome.files, &outcome.problems[0].why), (3, &Why::DirectoryWithoutRecursive));
    let only_directories = places();
    pull_spelled(&["logs/*/"], &p.from, &only_directories.to, recursive()).clean();
    assert_eq!(names(&only_directories.to), ["old"]);
}

#[test]
fn no_match_is_a_problem_of_that_source_alone() {
    let p = places();
    tree(&p.from);
    let report = pull_spelled(&["logs/*.none", "nowhere/*", "logs/a.log"], &p.from, &p.to, Options::default()).partial();
    assert_eq!(report.files, 1);
    let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["logs/*.none: no match", "nowhere/*: no match"]);
}

#[test]
fn one_match_may_be_renamed_and_several_need_a_directory() {
    let p = places();
    tree(&p.from);
    pull_spelled(&["logs/*.txt"], &p.from, &p.to.join("new"), Options::default()).clean();
    assert_eq!(fs::read(p.to.join("new")).unwrap(), b"logs/c.txt");
    let outcome = pull_spelled(&["logs/*.log"], &p.from, &p.to.join("other"), Options::default());
    assert!(matches!(outcome.client, Err(CopyError::Stopped(Stop::NeedsDirectory { .. }))), "{:?}", outcome.client);
    assert_eq!(names(&p.to), ["new"]);
}

#[test]
fn into_a_stream_in_the_order_of_the_names() {
    let p = places();
    tree(&p.from);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let access = Access::Account { home: p.from.clone() };
    run_pull(&[Path::new("logs/*.log")], Destination::stream(writer), Options::default(), &access, Conditions::default()).clean();
    let mut content = String::new();
    std::io::Read::read_to_string(&mut reader, &mut content).unwrap();
    assert_eq!(content, "logs/a.loglogs/b.log");
}

#[test]
fn nothing_outside_an_exported_root_matches() {
    let p = places();
    let root = p.from.join("root");
    tree(&root);
    write(p.from.join("secret/data"), "secret");
    symlink("../secret", root.join("x3")).unwrap();
    symlink("..", root.join("up")).unwrap();
    let access = Access::Exports(vec![Export {
        name: "pub".into(),
        path: root,
        writable: false,
        ownership: haul_files::Ownership::default(),
    }]);
    let fetch = |pattern: &str| {
        let q = places();
        let outcome =
            run_pull(&[Path::new(pattern)], Destination::Path(q.to.clone()), recursive(), &access, Conditions::default());
        (outcome, names(&q.to))
    };
    let (outcome, found) = fetch("/pub/logs/*.log");
    outcome.clean();
    assert_eq!(found, ["a.log", "b.log"]);
    for pattern in ["/pub/../s*/data", "/pub/*/../../secret/d*", "/pub/x3/*", "/pub/up/s*/*", "/pub/x3*", "/pub/u*/*/data"] {
        let (outcome, found) = fetch(pattern);
        assert_eq!(outcome.partial().problem_count, 1, "{pattern}");
        assert!(found.is_empty(), "{pattern}: {found:?}");
    }
    // What leads outside is passed over, the rest comes.
    let (outcome, found) = fetch("/pub/*/data");
    assert_eq!((outcome.partial().problem_count, found), (0, vec!["data".into()]));
    let (outcome, _) = fetch("/p*/logs/a.log");
    assert!(matches!(outcome.client, Err(CopyError::Refused(Stop::UnknownRoot { .. }))), "{:?}", outcome.client);
}

#[test]
fn more_matches_than_a_process_may_have_files_open() {
    let p = places();
    for i in 0..3000 {
        fs::create_dir(p.from.join(format!("d{i}"))).unwrap();
    }
    write(p.from.join("d7/file"), "x");
    let access = Access::Exports(vec![Export {
        name: "pub".into(),
        path: p.from.clone(),
        writable: false,
        ownership: haul_files::Ownership::default(),
    }]);
    let outcome = run_pull(&[Path::new("/pub/d*")], Destination::Path(p.to.clone()), recursive(), &access, Conditions::default());
    let report = outcome.clean();
    assert_eq!((report.directories, report.files), (3000, 1));
    assert!(p.to.join("d7/file").exists());
}
