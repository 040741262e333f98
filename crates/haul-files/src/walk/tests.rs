use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::*;
use crate::store::Local;

/// What was told, a line each; ends after so many things.
struct Heard {
    lines: Mutex<Vec<String>>,
    enough: u64,
    items: Mutex<u64>,
}

impl Heard {
    fn say(&self, line: String) {
        self.lines.lock().expect("no panic").push(line);
    }
}

impl Found for Heard {
    fn item(&self, item: Item<'_>) -> Option<u64> {
        let mut items = self.items.lock().expect("no panic");
        if *items == self.enough {
            return None;
        }
        *items += 1;
        let target = item.target.map(|target| format!(" -> {}", String::from_utf8_lossy(&target))).unwrap_or_default();
        self.say(format!("{} in {}: {}{target}", *items, item.parent, String::from_utf8_lossy(item.name)));
        Some(*items)
    }

    fn problem(&self, problem: FileProblem) {
        self.say(problem.to_string());
    }

    fn left_out(&self) {
        self.say("left out".to_owned());
    }
}

fn heard(root: &Path, sources: &[&str], recursive: bool, filter: &[&str], enough: u64) -> Vec<String> {
    let named = |source: &&str| (WirePath::from(root.join(source).as_path()), source.as_bytes().to_vec());
    let sources: Vec<_> = sources.iter().map(named).collect();
    let filter = Filter::new(filter.iter().map(|&line| line.to_owned())).expect("a filter");
    let heard = Heard { lines: Mutex::default(), enough, items: Mutex::default() };
    Walk { store: &Local::own(), sources: &sources, recursive, filter: &filter }.tell(&heard);
    let root = format!("{}/", root.display());
    heard.lines.into_inner().expect("no panic").iter().map(|line| line.replace(&root, "")).collect()
}

fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(dir.path().join("tree/sub/deep")).expect("made");
    fs::write(dir.path().join("tree/sub/deep/file"), "content").expect("written");
    symlink("anywhere", dir.path().join("tree/sub/link")).expect("made");
    fs::write(dir.path().join("single"), "content").expect("written");
    dir
}

#[test]
fn all_is_told_each_in_the_directory_that_it_is_in() {
    let dir = tree();
    let mut told = heard(dir.path(), &["tree", "single", "gone"], true, &[], u64::MAX);
    // What is in one directory comes in no order.
    let link = told.iter().position(|line| line.contains("link")).expect("the link is told of");
    let deep = told.iter().position(|line| line.contains("deep")).expect("the directory is told of");
    assert!(told.remove(link).ends_with("in 2: link -> anywhere"));
    let deep = told.remove(if link < deep { deep - 1 } else { deep });
    let number = deep.split(' ').next().expect("a number").to_owned();
    assert!(deep.ends_with("in 2: deep"), "{deep}");
    let expected =
        ["1 in 0: tree", "2 in 1: sub", &format!("5 in {number}: file"), "6 in 0: single", "gone: No such file or directory"];
    assert_eq!(told, expected);
}

#[test]
fn what_is_left_out_is_not_looked_into_and_directories_may_be_no_sources() {
    let dir = tree();
    assert_eq!(
        heard(dir.path(), &["tree"], true, &["deep", "link"], u64::MAX),
        ["1 in 0: tree", "2 in 1: sub", "left out", "left out"]
    );
    let expected = ["tree: is a directory: not copied without -r", "1 in 0: single"];
    assert_eq!(heard(dir.path(), &["tree", "single"], false, &[], u64::MAX), expected);
}

#[test]
fn it_ends_where_nobody_wants_to_hear_more() {
    let dir = tree();
    assert_eq!(heard(dir.path(), &["tree", "single"], true, &[], 2), ["1 in 0: tree", "2 in 1: sub"]);
}

/// Counts what was found, and how many descriptors of the tree are open when the way down is.
struct Counted {
    root: PathBuf,
    items: AtomicU64,
    most_open: AtomicUsize,
}

impl Found for Counted {
    fn item(&self, item: Item<'_>) -> Option<u64> {
        if item.name == b"down" {
            let open = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
            let open = open.filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(&self.root))).count();
            self.most_open.fetch_max(open, Ordering::Relaxed);
        }
        Some(self.items.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn problem(&self, problem: FileProblem) {
        panic!("{problem}");
    }

    fn left_out(&self) {}
}

#[test]
fn however_deep_a_tree_is_no_more_than_a_shelf_of_it_is_open() {
    const DEPTH: usize = 330;
    const BESIDE: usize = 12;
    let dir = tempfile::tempdir().expect("a directory");
    let (root, mut path) = (dir.path().canonicalize().expect("a path"), dir.path().join("tree"));
    for _ in 0..DEPTH {
        // Whoever held a directory that others in it are still to be listed would hold nearly all of them.
        for beside in 0..BESIDE {
            fs::create_dir_all(path.join(beside.to_string())).expect("made");
        }
        path.push("down");
    }
    let counted = Counted { root, items: AtomicU64::default(), most_open: AtomicUsize::default() };
    let sources = [(WirePath::from(dir.path().join("tree").as_path()), b"tree".to_vec())];
    Walk { store: &Local::own(), sources: &sources, recursive: true, filter: &Filter::default() }.tell(&counted);
    assert_eq!(counted.items.into_inner() as usize, DEPTH * (BESIDE + 1));
    let most = counted.most_open.into_inner();
    assert!((2..=260).contains(&most), "{most} were open");
}
