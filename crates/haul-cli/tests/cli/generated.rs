//! What is generated from the command line's definition and kept in the repository must be what the program prints.
//!
//! To renew: `haul man man`, and `haul completions SHELL --name NAME` for each file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Bench;

fn kept(dir: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(dir)
}

fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())).collect()
}

#[test]
fn the_manual_pages_are_up_to_date() {
    let bench = Bench::new();
    let fresh = bench.path("man");
    fs::create_dir(&fresh).unwrap();
    bench.haul(["man".as_ref(), fresh.as_os_str()]).expect(0);
    let (fresh, kept) = (files(&fresh), files(&kept("man")));
    assert_eq!(fresh.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
    for (name, page) in &fresh {
        assert!(kept[name] == *page, "man/{name} is not what `haul man man` writes");
    }
    assert!(fresh["haul-cp.1"].contains("remote\\-haul") && fresh["hcp.1"].contains("haul-cp.1"));
}

#[test]
fn the_completions_are_up_to_date() {
    let bench = Bench::new();
    let kept = files(&kept("completions"));
    let mut seen = 0;
    for name in ["haul", "hcp", "hperf"] {
        for (shell, file) in [("bash", format!("{name}.bash")), ("zsh", format!("_{name}")), ("fish", format!("{name}.fish"))] {
            let script = bench.haul(["completions", shell, "--name", name]).expect(0).text();
            assert!(
                kept.get(&file) == Some(&script),
                "completions/{file} is not what `haul completions {shell} --name {name}` prints"
            );
            seen += 1;
        }
    }
    assert_eq!(kept.len(), seen, "a file in completions/ that nothing makes");
}
