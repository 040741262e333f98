//! Directories of a tree by their entry ids.
//!
//! A directory is its parent and a name, as in the manifest; it is opened from its parent, one component at a time and never through
//! a symbolic link. So a path has no length limit, and a name given by a peer leads nowhere but into the tree. Open
//! descriptors are kept, [`MAX_OPEN`] at most.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::journal::PathKey;
use crate::protocol::ROOT;
use crate::resolve::Top;

/// Descriptors kept open; beyond it the least recently used half is closed. Well below the usual limit of 1024 a process.
const MAX_OPEN: usize = 256;

/// The directories of one tree.
pub(crate) struct Dirs {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    nodes: HashMap<u64, Node>,
    open: HashMap<u64, (Arc<OwnedFd>, u64)>,
    uses: u64,
}

struct Node {
    parent: u64,
    name: Box<[u8]>,
    key: PathKey,
    anchor: Anchor,
}

/// What a directory is opened from.
enum Anchor {
    /// Its parent and its name.
    Parent,
    /// A source as the user spelled it.
    Source(Top),
    /// Open, and never closed.
    Open(Arc<OwnedFd>),
}

impl Dirs {
    /// No directory yet.
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default() }
    }

    /// Adds a directory that is open already and stays so; `display` is its name in messages.
    pub(crate) fn pin(&self, id: u64, parent: u64, display: &[u8], fd: Arc<OwnedFd>) {
        let mut inner = self.lock();
        let key = if id == ROOT { [0; 16] } else { inner.child_key(parent, display) };
        inner.nodes.insert(id, Node { parent, name: display.into(), key, anchor: Anchor::Open(fd) });
    }

    /// Adds a directory that is a source.
    pub(crate) fn add_source(&self, id: u64, top: &Top) {
        let mut inner = self.lock();
        let name = &*top.spelled.0;
        let key = inner.child_key(ROOT, name);
        inner.nodes.insert(id, Node { parent: ROOT, name: name.into(), key, anchor: Anchor::Source(top.clone()) });
    }

    /// Adds the directory `name` in `parent`.
    pub(crate) fn add(&self, id: u64, parent: u64, name: &[u8]) {
        let mut inner = self.lock();
        let key = inner.child_key(parent, name);
        inner.nodes.insert(id, Node { parent, name: name.into(), key, anchor: Anchor::Parent });
    }

    /// Names the file `name` in `parent` for the journal.
    pub(crate) fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        self.lock().child_key(parent, name)
    }

    /// The directory, open; for access below it only (`O_PATH`).
    pub(crate) fn open(&self, id: u64) -> Result<Arc<OwnedFd>, Errno> {
        let mut inner = self.lock();
        // From the nearest open ancestor down.
        let mut closed = Vec::new();
        let mut at = id;
        let mut fd = loop {
            if let Some(fd) = inner.get(at) {
                break fd;
            }
            let node = inner.nodes.get(&at).ok_or(Errno::NOENT)?;
            if let Anchor::Source(top) = &node.anchor {
                let fd = Arc::new(top.open(OFlags::PATH | OFlags::DIRECTORY).map_err(|why| why.errno())?);
                inner.keep(at, fd.clone());
                break fd;
            }
            closed.push(at);
            at = node.parent;
            // A loop cannot be made by `add` (parents are known first), but a bound costs nothing.
            if closed.len() > inner.nodes.len() {
                return Err(Errno::LOOP);
            }
        };
        for id in closed.into_iter().rev() {
            let name = &*inner.nodes.get(&id).ok_or(Errno::NOENT)?.name;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            fd = Arc::new(rustix::fs::openat(&*fd, name, flags, Mode::empty())?);
            inner.keep(id, fd.clone());
        }
        Ok(fd)
    }

    /// How a user would name `name` in `parent`.
    pub(crate) fn display(&self, parent: u64, name: &[u8]) -> Vec<u8> {
        let inner = self.lock();
        let mut parts = vec![name];
        let mut at = parent;
        while let Some(node) = inner.nodes.get(&at) {
            parts.push(&node.name);
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
        while let Some(node) = inner.nodes.get(&at).filter(|_| at != ROOT) {
            parts.push(&node.name);
            at = node.parent;
        }
        parts.reverse();
        parts.retain(|part| !part.is_empty());
        parts.join(&b'/')
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get(&mut self, id: u64) -> Option<Arc<OwnedFd>> {
        if let Some(Node { anchor: Anchor::Open(fd), .. }) = self.nodes.get(&id) {
            return Some(fd.clone());
        }
        self.uses += 1;
        let (fd, last) = self.open.get_mut(&id)?;
        *last = self.uses;
        Some(fd.clone())
    }

    fn keep(&mut self, id: u64, fd: Arc<OwnedFd>) {
        if self.open.len() >= MAX_OPEN {
            let mut uses: Vec<u64> = self.open.values().map(|(_, last)| *last).collect();
            let (_, median, _) = uses.select_nth_unstable(MAX_OPEN / 2);
            let median = *median;
            self.open.retain(|_, (_, last)| *last > median);
        }
        self.uses += 1;
        self.open.insert(id, (fd, self.uses));
    }

    fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.nodes.get(&parent).map_or([0; 16], |node| node.key));
        hasher.update(name);
        hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()
    }
}
