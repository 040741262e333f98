//! Replays the corpora: everything that fuzzing found worth keeping.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz_harness::TARGETS;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_input_ever_kept_passes() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let corpus = fuzz_dir().join("corpus").join(target.name);
        let names = names_in(&corpus);
        assert!(!names.is_empty(), "no corpus for {}", target.name);
        for name in names {
            let input = fs::read(corpus.join(&name)).expect("a file of the corpus");
            if std::panic::catch_unwind(|| (target.run)(&input)).is_err() {
                failed.push(format!("fuzz/corpus/{}/{name}", target.name));
            }
        }
    }
    assert!(failed.is_empty(), "haul fails on {failed:#?}");
}

#[test]
fn every_target_is_fuzzed() {
    let mut expected: Vec<String> = TARGETS.iter().map(|target| format!("{}.rs", target.name)).collect();
    expected.sort();
    assert_eq!(names_in(&fuzz_dir().join("fuzz_targets")), expected);
    let mut corpora: Vec<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    corpora.sort();
    assert_eq!(names_in(&fuzz_dir().join("corpus")), corpora);
}
