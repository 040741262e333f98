//! Interrupted copies: found again however the command is spelled, told of, listed, discarded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use haul_files::{Destination, Discarded, Interrupted, Local, Note, Options, Stop, WirePath};
use haul_ramstore::memory::Conditions;
use haul_units::Bytes;

use crate::fixture::*;
use crate::resume::stage;

fn breaking() -> Conditions {
    Conditions { break_after: Some(15), shuffle: 8, seed: 1, capacity: 8, ..Conditions::default() }
}

fn interrupted(directory: &Path) -> Vec<Interrupted> {
    Local::own().interrupted_in(&directory.into()).unwrap()
}

fn discard(directory: &Path) -> Vec<Discarded> {
    Local::own().discard_in(&directory.into()).unwrap().into_iter().map(|(_, became)| became).collect()
}

/// A copy of 20 MiB into `to` that breaks off.
fn interrupt(file: &Path, to: &Path) {
    write(file, noise(20 << 20, 1));
    assert!(push_paths(&[file], to, Options::default(), breaking()).client.is_err());
}

#[test]
fn another_spelling_goes_on() {
    for pulled in [false, true] {
        let p = places();
        let (a, b) = (p.from.join("a"), p.from.join("b"));
        write(&a, noise(20 << 20, 1));
        write(&b, "b");
        let copy = |sources: &[&Path], to: &Path, options, conditions| {
            if pulled {
                pull_paths(sources, Destination::Path(to.to_owned()), options, conditions)
            } else {
                push_paths(sources, to, options, conditions)
            }
        };
        assert!(copy(&[&a, &b], &p.to, Options::default(), breaking()).client.is_err());
        // Another order, another spelling of both sides, another option.
        let spelled = Path::new(&p.from).join("./").join("a");
        let to = p.to.join("./");
        let report = copy(&[&b, &spelled], &to, preserving(), shuffled(1)).clean();
        assert!(report.resumed > Bytes::mib(3), "{:?} resumed, pulled: {pulled}", report.resumed);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
        assert_nothing_left(&p.to);
    }
}

#[test]
fn a_copy_under_a_new_name_is_another_copy() {
    let p = places();
    let file = p.from.join("file");
    write(&file, noise(20 << 20, 1));
    assert!(push_paths(&[&file], &p.to.join("one"), Options::default(), breaking()).client.is_err());
    let report = push_paths(&[&file], &p.to.join("two"), Options::default(), shuffled(1)).clean();
    assert_eq!(report.resumed, Bytes::ZERO);
    let report = push_paths(&[&file], &p.to.join("one"), Options::default(), shuffled(1)).clean();
    assert!(report.resumed > Bytes::ZERO);
    assert_nothing_left(&p.to);
}

#[test]
fn what_is_kept_is_told_and_listed_and_discarded() {
    let p = places();
    interrupt(&p.from.join("given up"), &p.to);
    let left = stage(&p.to);
    write(p.from.join("other"), "x");
    let other = || push_paths(&[&p.from.join("other")], &p.to, Options::default(), shuffled(1)).clean().notes;
    let told = other();
    let [note @ Note::InterruptedHere { name, count: 1, bytes, days: 0, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((name, *bytes > 3 << 20), (&WirePath(b"given up".to_vec()), true));
    let words = note.to_string();
    assert!(words.contains("of given up") && words.contains("--list-interrupted") && !words.contains("--discard"), "{words}");

    let journal = fs::File::options().write(true).open(left.join("journal")).unwrap();
    let written = journal.metadata().unwrap().modified().unwrap();
    journal.set_modified(written - Duration::from_secs(8 * 24 * 3600)).unwrap();
    let words = other()[0].to_string();
    assert!(words.contains("--discard") && words.contains("8 days"), "{words}");
    // Nobody is told of other people's: a client of a daemon cannot do anything about them.
    let found = interrupted(&p.to);
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].path, found[0].running), (&left, false));
    assert_eq!(found[0].names, [WirePath(b"given up".to_vec())]);

    assert_eq!(discard(&left), [Discarded::Removed]);
    assert!(interrupted(&p.to).is_empty() && other().is_empty());
    assert_nothing_left(&p.to);
    assert_eq!(fs::read(p.to.join("other")).unwrap(), b"x");
}

#[test]
fn what_is_not_a_stage_of_this_user_is_neither_listed_nor_discarded() {
    let p = places();
    interrupt(&p.from.join("file"), &p.to);
    let one = interrupted(&p.to).remove(0);
    for name in [".haul-12345678", ".haul-1234", "haul-12345678", ".haul-1234567g"] {
        write(p.to.join(name).join("p1"), "precious");
    }
    write(p.to.join(".haul-abcdefab"), "precious");
    write(one.path.join("photos"), "precious");
    let paths: Vec<_> = interrupted(&p.to).into_iter().map(|one| one.path).collect();
    assert_eq!(paths, std::slice::from_ref(&one.path));
    assert_eq!(discard(&p.to), [Discarded::Foreign], "something of the user's is in it");
    assert_eq!(fs::read(one.path.join("photos")).unwrap(), b"precious");
    assert_eq!(fs::read(p.to.join(".haul-12345678/p1")).unwrap(), b"precious");
    assert!(discard(&p.to.join(".haul-12345678")).is_empty());
    assert!(p.to.join(".haul-12345678/p1").exists());
    let nowhere = Local::own().discard_in(&p.to.join("nowhere").as_path().into());
    assert!(matches!(nowhere, Err(Stop::Destination { .. })), "{nowhere:?}");
}
