//! What goes wrong is said, counted in the exit status, and leaves the rest alone.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Lab, Random, Running, Tmpfs, eventually, pause};
use rustix::process::Signal;

fn far(path: &Path) -> OsString {
    let mut operand = OsString::from("far:");
    operand.push(path);
    operand
}

#[test]
fn a_full_disk_stops_the_copy_which_goes_on_when_there_is_room() {
    let Some(lab) = Lab::open() else { return };
    let source = lab.place("source");
    let mut random = Random::seeded(70);
    tree::make_many(&source, 100, &mut random);
    tree::write_random(&source.join("large"), 40 << 20, &mut random);
    let disk = Tmpfs::mount(lab.scratch(), "16m");
    let args: [OsString; 3] = ["-r".into(), source.clone().into(), far(disk.path())];
    let finished = lab.run_cp(&args);
    assert!(matches!(finished.code, Some(1 | 2)), "{finished}");
    assert!(finished.stderr.contains("error:") && finished.stderr.to_lowercase().contains("no space left"), "{finished}");
    assert!(!disk.path().join("source/large").exists(), "a truncated file has the final name");

    disk.resize("200m");
    lab.run_cp(&args).expect(0);
    tree::assert_same(&source, &disk.path().join("source"), Exactness::Content);
    assert_eq!(tree::names(disk.path()), ["source"]);
    lab.assert_no_process_left(Duration::from_secs(10));
}

#[test]
fn what_is_no_file_is_named_and_all_else_arrives() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::make_many(&source, 20, &mut Random::seeded(71));
    rustix::fs::mkfifoat(rustix::fs::CWD, source.join("a pipe"), rustix::fs::Mode::from_bits_truncate(0o600)).expect("mkfifo");
    let finished = lab.run_cp(["-r".into(), source.clone().into(), far(&there)]).expect(0);
    assert!(finished.stderr.contains("note: ") && finished.stderr.contains("a pipe: is a device"), "{finished}");
    fs::remove_file(source.join("a pipe")).expect("removing the pipe");
    tree::assert_same(&source, &there.join("source"), Exactness::Content);
}

#[test]
fn one_missing_source_of_two_is_a_partial_copy() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::write_random(&source.join("here"), 1000, &mut Random::seeded(72));
    for missing_first in [true, false] {
        let mut sources: Vec<OsString> = vec![source.join("here").into(), source.join("not here").into()];
        if missing_first {
            sources.reverse();
        }
        sources.push(far(&there));
        let finished = lab.run_cp(&sources).expect(1);
        assert!(finished.stderr.contains("not here"), "{finished}");
        assert_eq!(tree::names(&there), ["here"]);
    }
}

#[test]
fn a_directory_without_r_is_refused() {
    let Some(lab) = Lab::open() else { return };
    let (source, there) = (lab.place("source"), lab.place("there"));
    tree::make_many(&source, 3, &mut Random::seeded(73));
    let finished = lab.run_cp([source.into(), far(&there)]);
    assert!(matches!(finished.code, Some(1 | 2)), "{finished}");
    assert!(finished.stderr.contains("-r"), "{finished}");
    assert!(tree::names(&there).is_empty());
}

#[test]
fn a_source_that_grows_meanwhile_is_taken_as_far_as_it_was_and_named() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("100mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    let path = source.join("log");
    tree::write_random(&path, 30 << 20, &mut Random::seeded(74));
    let mut running = Running::start(lab.cp([path.clone().into(), far(&there)]));
    let mut file = OpenOptions::new().append(true).open(&path).expect("the file above");
    while running.runs() {
        file.write_all(b"one more line\n").expect("appending");
        pause(Duration::from_millis(50));
    }
    let finished = running.wait(Duration::from_secs(60)).expect(0);
    assert!(finished.stderr.contains("log: grew while it was copied"), "{finished}");
    let (taken, all) = (fs::read(there.join("log")).expect("the copy"), fs::read(&path).expect("the source"));
    assert!(
        taken.len() >= 30 << 20 && taken.len() < all.len() && all.starts_with(&taken),
        "{} of {} bytes",
        taken.len(),
        all.len()
    );
}

#[test]
fn an_interrupt_ends_both_sides_and_the_next_run_goes_on() {
    let Some(lab) = Lab::open() else { return };
    lab.limit("100mbit");
    let (source, there) = (lab.place("source"), lab.place("there"));
    let size = 30 << 20;
    tree::write_random(&source.join("file"), size, &mut Random::seeded(75));
    let args: [OsString; 2] = [source.join("file").into(), far(&there)];
    let start = lab.bytes_carried();
    let running = Running::start(lab.cp(&args));
    assert!(eventually(Duration::from_secs(60), || lab.bytes_carried() - start > size / 3), "the copy is not under way");
    running.signal(Signal::INT);
    running.wait(Duration::from_secs(10)).expect(130);
    lab.assert_no_process_left(Duration::from_secs(10));
    assert!(!there.join("file").exists());
    lab.run_cp(&args).expect(0);
    assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
    assert_eq!(tree::names(&there), ["file"]);
}

#[test]
fn wrong_usage_and_unreachable_hosts_fail_with_two() {
    let Some(lab) = Lab::open() else { return };
    let there = lab.place("there");
    let here = lab.place("here");
    for args in [
        vec!["only-one".into()],
        vec!["--no-such-flag".into(), "a".into(), far(&there)],
        vec!["nohost.invalid:x".into(), here.into()],
    ] {
        let finished = lab.run_cp(&args).expect(2);
        assert!(finished.stderr.contains("error"), "{finished}");
    }
}
