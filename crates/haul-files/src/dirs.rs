//! Directories of a tree by their entry ids.
//!
//! A directory is its parent and a name, as in the manifest; it is opened from its parent, one component at a time and never through
//! a symbolic link. So a path has no length limit, and a name given by a peer leads nowhere but into the tree. Open
//! descriptors are kept on a [`Shelf`]; one that has to be opened again must be the same directory, for others may have renamed.
//! Some 60 bytes and the name are remembered of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::PathKey;
use crate::protocol::ROOT;
use crate::store::{At, Identity, Store, StoreError};
use haul_descriptors::Shelf;
use haul_names::{Name, Names};

/// The directories of one tree.
pub(crate) struct Dirs<'a, S: Store> {
    store: &'a S,
    inner: Mutex<Inner<S>>,
    open: Shelf<S::Dir>,
}

struct Inner<S: Store> {
    /// By id, rising.
    nodes: Vec<Node>,
    names: Names,
    /// Those that are not opened from their parents; few.
    anchors: HashMap<u64, (Box<[u8]>, Anchor<S>)>,
}

#[derive(Clone, Copy)]
struct Node {
    id: u64,
    parent: u64,
    key: PathKey,
    name: Name,
    /// Tells the directory from others; [`UNSEEN`] where nobody has looked.
    identity: Identity,
}

const UNSEEN: Identity = Identity { device: 0, inode: 0 };

/// What a directory is opened from.
enum Anchor<S: Store> {
    /// A source as the user spelled it.
    Source(Arc<S::Top>),
    /// Open, and never closed.
    Open(Arc<S::Dir>),
}

impl<'a, S: Store> Dirs<'a, S> {
    /// No directory of this store yet.
    pub(crate) fn new(store: &'a S) -> Self {
        let inner = Inner { nodes: Vec::new(), names: Names::default(), anchors: HashMap::new() };
        Self { store, inner: Mutex::new(inner), open: Shelf::new() }
    }

    /// What it is a tree of.
    pub(crate) fn store(&self) -> &'a S {
        self.store
    }

    /// Adds a directory that is open already and stays so; `display` is its name in messages.
    pub(crate) fn pin(&self, id: u64, parent: u64, display: &[u8], dir: Arc<S::Dir>) {
        let mut inner = self.lock();
        let key = if id == ROOT { [0; 16] } else { inner.child_key(parent, display) };
        inner.insert(id, parent, key, b"", UNSEEN);
        inner.anchors.insert(id, (display.into(), Anchor::Open(dir)));
    }

    /// Adds a directory that is a source.
    pub(crate) fn add_source(&self, id: u64, spelled: &[u8], top: Arc<S::Top>) {
        let mut inner = self.lock();
        let key = inner.child_key(ROOT, spelled);
        inner.insert(id, ROOT, key, b"", UNSEEN);
        inner.anchors.insert(id, (spelled.into(), Anchor::Source(top)));
    }

    /// Adds the directory `name` in `parent`.
    pub(crate) fn add(&self, id: u64, parent: u64, name: &[u8]) {
        let mut inner = self.lock();
        let key = inner.child_key(parent, name);
        inner.insert(id, parent, key, name, UNSEEN);
    }

    /// Adds the directory `name` in `parent`, which was seen to be the one of `identity`: from here on it is this one or none.
    pub(crate) fn add_seen(&self, id: u64, parent: u64, name: &[u8], identity: Identity) {
        let mut inner = self.lock();
        let key = inner.child_key(parent, name);
        inner.insert(id, parent, key, name, identity);
    }

    /// Adds the directory `name` in `parent`, which is open as `dir`: from here on it is this one or none.
    pub(crate) fn add_open(&self, id: u64, parent: u64, name: &[u8], dir: S::Dir, identity: Identity) {
        self.add_seen(id, parent, name, identity);
        self.keep_open(id, dir);
    }

    /// A directory is open as `dir`.
    pub(crate) fn keep_open(&self, id: u64, dir: S::Dir) {
        self.open.keep(id, Arc::new(dir));
    }

    /// The highest id that was given.
    pub(crate) fn last_id(&self) -> u64 {
        self.lock().nodes.last().map_or(ROOT, |node| node.id)
    }

    /// What names the directory among all of the tree.
    pub(crate) fn key(&self, id: u64) -> PathKey {
        self.lock().find(id).map_or([0; 16], |node| node.key)
    }

    /// What tells the directory from others, where it was looked at.
    pub(crate) fn identity(&self, id: u64) -> Option<Identity> {
        self.lock().find(id).map(|node| node.identity).filter(|identity| *identity != UNSEEN)
    }

    /// Names the file `name` in `parent` for the journal.
    pub(crate) fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        self.lock().child_key(parent, name)
    }

    /// The directory, open; for access below it only.
    pub(crate) fn open(&self, id: u64) -> Result<Arc<S::Dir>, StoreError> {
        let inner = self.lock();
        // From the nearest open ancestor down.
        let mut closed = Vec::new();
        let mut at = id;
        let mut dir = loop {
            match inner.anchors.get(&at) {
                Some((_, Anchor::Open(dir))) => break dir.clone(),
                _ => {
                    if let Some(dir) = self.open.get(at) {
                        break dir;
                    }
                }
            }
            if let Some((_, Anchor::Source(top))) = inner.anchors.get(&at) {
                let dir = Arc::new(self.store.directory(At::Top(&**top), None)?);
                self.open.keep(at, dir.clone());
                break dir;
            }
            let node = *inner.find(at).ok_or(StoreError::Missing)?;
            closed.push(node);
            at = node.parent;
            // A loop cannot be made by `add` (parents are known first), but a bound costs nothing.
            if closed.len() > inner.nodes.len() {
                return Err(StoreError::FAILED);
            }
        };
        for node in closed.into_iter().rev() {
            let identity = (node.identity != UNSEEN).then_some(node.identity);
            dir = Arc::new(self.store.directory(At::In(&*dir, inner.names.get(node.name)), identity)?);
            self.open.keep(node.id, dir.clone());
        }
        Ok(dir)
    }

    /// How a user would name `name` in `parent`.
    pub(crate) fn display(&self, parent: u64, name: &[u8]) -> Vec<u8> {
        let inner = self.lock();
        let mut parts = vec![name];
        let mut at = parent;
        while let Some(node) = inner.find(at) {
            parts.push(inner.name(node));
            if at == node.parent || at == ROOT {
                break;
            }
            at = node.parent;
        }
        let mut path = Vec::new();
        for part in parts.into_iter().rev().filter(|part| !part.is_empty()) {
            if !path.is_empty() && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        path
    }

    /// The path of `name` in `parent`, from the root of the tree.
    pub(crate) fn relative(&self, parent: u64, name: &[u8]) -> Vec<u8> {
        let inner = self.lock();
        let mut parts = vec![name];
        let mut at = parent;
        while let Some(node) = inner.find(at).filter(|_| at != ROOT) {
            parts.push(inner.name(node));
            at = node.parent;
        }
        parts.reverse();
        parts.retain(|part| !part.is_empty());
        parts.join(&b'/')
    }

    /// Bytes in memory, the few that are not opened from their parents left out.
    pub(crate) fn bytes(&self) -> usize {
        let inner = self.lock();
        inner.nodes.capacity() * size_of::<Node>() + inner.names.bytes()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Inner<S> {
    fn insert(&mut self, id: u64, parent: u64, key: PathKey, name: &[u8], identity: Identity) {
        let name = self.names.add(name);
        let node = Node { id, parent, key, name, identity };
        // Ids rise, so this is the end but for a caller that gives one again.
        let at = self.nodes.partition_point(|node| node.id < id);
        match self.nodes.get_mut(at).filter(|there| there.id == id) {
            Some(there) => *there = node,
            None => self.nodes.insert(at, node),
        }
    }

    fn find(&self, id: u64) -> Option<&Node> {
        let at = self.nodes.binary_search_by_key(&id, |node| node.id).ok()?;
        self.nodes.get(at)
    }

    fn name<'n>(&'n self, node: &Node) -> &'n [u8] {
        self.anchors.get(&node.id).map_or_else(|| self.names.get(node.name), |(display, _)| display)
    }

    fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.find(parent).map_or([0; 16], |node| node.key));
        hasher.update(name);
        hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Local;
    use haul_faults::WirePath;

    #[test]
    fn a_directory_costs_little_memory() {
        let store = Local::own();
        let dirs = Dirs::new(&store);
        let count = 100_000;
        for id in 1..=count {
            dirs.add(id, id / 2, format!("directory {id}").as_bytes());
        }
        // The name, the rest, and what a growing vector has in reserve.
        let each = dirs.bytes() / count as usize;
        assert!(each < 150, "{each} bytes each");
        assert_eq!(dirs.relative(5, b"x"), b"directory 1/directory 2/directory 5/x");
    }

    #[test]
    fn another_directory_under_the_name_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, other) = (dir.path().join("d"), dir.path().join("other"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&other).unwrap();
        let store = Local::own();
        let dirs = Dirs::new(&store);
        let root = store.destination(&WirePath::from(dir.path()), false).unwrap().root;
        let held = store.directory(At::In(&*root, b"d"), None).unwrap();
        let identity = store.stat(At::In(&*root, b"d")).unwrap().identity;
        dirs.pin(ROOT, ROOT, b"", root);
        dirs.add_open(1, ROOT, b"d", held, identity);
        dirs.open.forget(1);
        assert!(dirs.open(1).is_ok());
        dirs.open.forget(1);
        std::fs::rename(&inside, dir.path().join("away")).unwrap();
        std::fs::rename(&other, &inside).unwrap();
        assert_eq!(dirs.open(1).unwrap_err(), StoreError::Replaced);
        std::fs::remove_dir(&inside).unwrap();
        std::os::unix::fs::symlink("away", &inside).unwrap();
        assert_eq!(dirs.open(1).unwrap_err(), rustix::io::Errno::NOTDIR.into());
    }
}
