//! Which names are in place, as long as somebody may still say that they are not what they should be.
//!
//! A name costs eight bytes: its hash by a key of this run, so that nobody can choose names that look alike.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Placed {
    /// Nothing once nobody will ask.
    names: Mutex<Option<HashSet<u64>>>,
    hasher: RandomState,
}

impl Placed {
    /// From here on it may be asked.
    pub(super) fn begin(&self) {
        *self.lock() = Some(HashSet::new());
    }

    /// This is in place, below the destination; empty for the destination itself.
    pub(super) fn add(&self, path: &Path) {
        let hash = self.hasher.hash_one(path);
        if let Some(names) = self.lock().as_mut() {
            names.insert(hash);
        }
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        let hash = self.hasher.hash_one(path);
        self.lock().as_ref().is_some_and(|names| names.contains(&hash))
    }

    /// Nobody will ask.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashSet<u64>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_until_nobody_asks() {
        let placed = Placed::default();
        placed.add(Path::new("too/early"));
        placed.begin();
        placed.add(Path::new("a/b"));
        assert_eq!(
            (placed.has(Path::new("a/b")), placed.has(Path::new("a")), placed.has(Path::new("too/early"))),
            (true, false, false)
        );
        placed.end();
        assert!(!placed.has(Path::new("a/b")));
    }
}
