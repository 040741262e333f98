//! Servers of copies on loopback, and what they have.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use haul::Fingerprint;
use haul_fleet::Member;
use tempfile::TempDir;

use crate::loopback::{member, serve};

/// Servers, each with a home; they end with the test's process.
pub struct Servers {
    pub homes: Vec<TempDir>,
    at: Vec<(SocketAddr, Fingerprint)>,
}

impl Servers {
    pub fn start(servers: usize) -> Self {
        let homes: Vec<TempDir> = (0..servers).map(|_| tempfile::tempdir().unwrap()).collect();
        let at = homes.iter().map(|home| serve(home.path())).collect();
        Self { homes, at }
    }

    /// A new connection to each.
    pub fn members(&self) -> Vec<Member> {
        self.at.iter().enumerate().map(|(number, (address, print))| member(number, *address, *print)).collect()
    }
}

/// Content that is the same for the same seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Regular files below a directory, by their paths in it.
pub fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![dir.to_owned()];
    while let Some(at) = stack.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                stack.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(dir).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// The members that have each file of the tree; `dead` ones left out.
pub fn placed(fleet: &Servers, dead: &[usize]) -> BTreeMap<String, Vec<usize>> {
    let mut placed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, home) in fleet.homes.iter().enumerate().filter(|(at, _)| !dead.contains(at)) {
        for path in files(&home.path().join("data/tree")) {
            placed.entry(path).or_default().push(at);
        }
    }
    placed
}

/// Each file of `from` is on exactly so many members that are not dead, with its content; and no stage is left there.
pub fn assert_placed(fleet: &Servers, from: &TempDir, replicas: usize, dead: &[usize]) {
    let placed = placed(fleet, dead);
    let tree = from.path().join("tree");
    assert_eq!(placed.keys().cloned().collect::<Vec<_>>(), files(&tree));
    for (path, on) in &placed {
        assert_eq!(on.len(), replicas, "{path} is on {on:?}");
        for at in on {
            let there = fs::read(fleet.homes[*at].path().join("data/tree").join(path)).unwrap();
            assert!(there == fs::read(tree.join(path)).unwrap(), "{path} on {at}");
        }
    }
    for (_, home) in fleet.homes.iter().enumerate().filter(|(at, _)| !dead.contains(at)) {
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["data"], "something is left");
    }
}
