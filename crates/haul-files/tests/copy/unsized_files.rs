//! Files that are longer or shorter than they say: those of procfs say 0, those of sysfs a page.

use std::fs;
use std::path::{Path, PathBuf};

use haul_files::{Destination, Options, Why};
use haul_ramstore::memory::Conditions;

use crate::fixture::*;

/// Says 0 and has a few bytes, which do not change.
const SHORT: &str = "/proc/version";
/// Says 0 and has megabytes.
const LONG: &str = "/proc/kallsyms";
/// Says a page and has a line.
const PADDED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Those of the files that this system has with the length that is not theirs.
fn present() -> Vec<(PathBuf, Vec<u8>)> {
    let candidates = [SHORT, LONG, PADDED].map(PathBuf::from);
    let found: Vec<_> = candidates
        .into_iter()
        .filter_map(|path| {
            let content = fs::read(&path).ok()?;
            let says = fs::metadata(&path).ok()?.len();
            (!content.is_empty() && says != content.len() as u64).then_some((path, content))
        })
        .collect();
    assert!(found.iter().any(|(path, _)| path == Path::new(SHORT)), "{SHORT} is not what this test is about");
    found
}

#[test]
fn their_content_arrives() {
    for (path, content) in present() {
        for (pulled, options) in [(false, Options::default()), (true, Options::default()), (true, preserving())] {
            let p = places();
            let outcome = if pulled {
                pull_paths(&[&path], Destination::Path(p.to.clone()), options, shuffled(1))
            } else {
                push_paths(&[&path], &p.to.join("renamed"), options, shuffled(1))
            };
            let report = outcome.clean();
            assert_eq!((report.files, report.bytes.as_u64()), (1, content.len() as u64), "{}", path.display());
            let copy = if pulled { p.to.join(path.file_name().unwrap()) } else { p.to.join("renamed") };
            assert!(fs::read(copy).unwrap() == content, "{}", path.display());
            assert_nothing_left(&p.to);
        }
    }
}

#[test]
fn a_directory_of_them() {
    let p = places();
    let source = Path::new("/proc/sys/fs/inotify");
    let outcome = push_paths(&[source], &p.to, recursive(), Conditions::default());
    let report = outcome.clean();
    let mut files = 0;
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let copy = p.to.join("inotify").join(path.file_name().unwrap());
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap());
        assert!(!fs::read(copy).unwrap().is_empty());
        files += 1;
    }
    assert!(files > 0 && report.files == files);
    assert_nothing_left(&p.to);
}

#[test]
fn to_a_stream_they_come_in_their_order() {
    let p = places();
    write(p.from.join("last"), "last");
    let last = p.from.join("last");
    let present = present();
    let sources: Vec<&Path> = present.iter().map(|(path, _)| &**path).chain([&*last]).collect();
    let collected = Collected::default();
    let report = pull_paths(&sources, Destination::stream(collected.clone()), Options::default(), shuffled(1)).clean();
    assert_eq!(report.files, sources.len() as u64);
    let contents: Vec<_> = present.iter().map(|(_, content)| &content[..]).chain([&b"last"[..]]).collect();
    assert!(*collected.0.lock().unwrap() == contents.concat());
}

#[test]
fn one_that_says_nothing_and_may_not_be_read_is_named() {
    if is_root() {
        // Root reads everything; what procfs refuses to it too is refused with an error of its own.
        let p = places();
        let source = Path::new("/proc/sys/net/ipv6/conf/lo/stable_secret");
        if fs::read(source).is_ok() || !source.exists() {
            return skip::skip(format_args!("{} is not there, or can be read", source.display()));
        }
        let report = push_paths(&[source], &p.to, Options::default(), Conditions::default()).partial();
        assert_eq!((report.files, report.problem_count), (0, 1));
        assert!(matches!(report.problems[0].why, Why::Os(_)), "{:?}", report.problems);
        assert_nothing_left(&p.to);
        return;
    }
    let p = places();
    write(p.from.join("empty"), "");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    fs::set_permissions(p.from.join("empty"), closed).unwrap();
    let report = push_paths(&[&p.from.join("empty")], &p.to, Options::default(), Conditions::default()).partial();
    assert_eq!((report.files, &report.problems[0].why), (0, &Why::Os(13)));
}
