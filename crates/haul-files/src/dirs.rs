//! Directories of a tree by their entry ids.
//!
//! A directory is its parent and a name, as in the manifest; it is opened from its parent, one component at a time and never through
//! a symbolic link. So a path has no length limit, and a name given by a peer leads nowhere but into the tree. Open
//! descriptors are kept on a [`Shelf`]; one that has to be opened again must be the same directory, for others may have renamed.
//! Some 60 bytes and the name are remembered of each.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::descriptors::{Shelf, open_at};
use crate::journal::PathKey;
use crate::names::{Name, Names};
use crate::protocol::ROOT;
use crate::resolve::Top;

/// File systems that make up inode numbers as they go, so that a directory may come back with another one: FUSE, CIFS, SMB.
const NUMBERS_AT_WILL: [i64; 3] = [0x6573_5546, 0xff53_4d42, 0xfe53_4d42];

/// The directories of one tree.
pub(crate) struct Dirs {
    inner: Mutex<Inner>,
    open: Shelf,
}

#[derive(Default)]
struct Inner {
    /// By id, rising.
    nodes: Vec<Node>,
    names: Names,
    /// Those that are not opened from their parents; few.
    anchors: HashMap<u64, (Box<[u8]>, Anchor)>,
}

#[derive(Clone, Copy)]
struct Node {
    id: u64,
    parent: u64,
    key: PathKey,
    name: Name,
    /// Tells the directory from others, see [`identity`]; zero where nobody has looked.
    identity: u64,
}

/// What a directory is opened from.
enum Anchor {
    /// A source as the user spelled it.
    Source(Top),
    /// Open, and never closed.
    Open(Arc<OwnedFd>),
}

impl Dirs {
    /// No directory yet.
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default(), open: Shelf::new() }
    }

    /// Adds a directory that is open already and stays so; `display` is its name in messages.
    pub(crate) fn pin(&self, id: u64, parent: u64, display: &[u8], fd: Arc<OwnedFd>) {
        let mut inner = self.lock();
        let key = if id == ROOT { [0; 16] } else { inner.child_key(parent, display) };
        inner.insert(id, parent, key, b"", 0);
        inner.anchors.insert(id, (display.into(), Anchor::Open(fd)));
    }

    /// Adds a directory that is a source.
    pub(crate) fn add_source(&self, id: u64, top: &Top) {
        let mut inner = self.lock();
        let name = &*top.spelled.0;
        let key = inner.child_key(ROOT, name);
        inner.insert(id, ROOT, key, b"", 0);
        inner.anchors.insert(id, (name.into(), Anchor::Source(top.clone())));
    }

    /// Adds the directory `name` in `parent`.
    pub(crate) fn add(&self, id: u64, parent: u64, name: &[u8]) {
        let mut inner = self.lock();
        let key = inner.child_key(parent, name);
        inner.insert(id, parent, key, name, 0);
    }

    /// Adds the directory `name` in `parent`, which is open as `fd`: from here on it is this one or none.
    pub(crate) fn add_open(&self, id: u64, parent: u64, name: &[u8], fd: OwnedFd, stat: &Stat) {
        let mut inner = self.lock();
        let key = inner.child_key(parent, name);
        inner.insert(id, parent, key, name, identity(stat));
        drop(inner);
        self.open.keep(id, Arc::new(fd));
    }

    /// Names the file `name` in `parent` for the journal.
    pub(crate) fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        self.lock().child_key(parent, name)
    }

    /// The directory, open; for access below it only (`O_PATH`).
    pub(crate) fn open(&self, id: u64) -> Result<Arc<OwnedFd>, Errno> {
        let inner = self.lock();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        // From the nearest open ancestor down.
        let mut closed = Vec::new();
        let mut at = id;
        let mut fd = loop {
            match inner.anchors.get(&at) {
                Some((_, Anchor::Open(fd))) => break fd.clone(),
                _ => {
                    if let Some(fd) = self.open.get(at) {
                        break fd;
                    }
                }
            }
            if let Some((_, Anchor::Source(top))) = inner.anchors.get(&at) {
                let fd = Arc::new(top.open(flags).map_err(|why| why.errno())?);
                self.open.keep(at, fd.clone());
                break fd;
            }
            let node = *inner.find(at).ok_or(Errno::NOENT)?;
            closed.push(node);
            at = node.parent;
            // A loop cannot be made by `add` (parents are known first), but a bound costs nothing.
            if closed.len() > inner.nodes.len() {
                return Err(Errno::LOOP);
            }
        };
        for node in closed.into_iter().rev() {
            let opened = open_at(&*fd, inner.names.get(node.name), flags | OFlags::NOFOLLOW, Mode::empty())?;
            if node.identity != 0 && node.identity != identity(&rustix::fs::fstat(&opened)?) && !numbers_at_will(&opened) {
                return Err(Errno::STALE);
            }
            fd = Arc::new(opened);
            self.open.keep(node.id, fd.clone());
        }
        Ok(fd)
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn insert(&mut self, id: u64, parent: u64, key: PathKey, name: &[u8], identity: u64) {
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

    fn name<'a>(&'a self, node: &Node) -> &'a [u8] {
        self.anchors.get(&node.id).map_or_else(|| self.names.get(node.name), |(display, _)| display)
    }

    fn child_key(&self, parent: u64, name: &[u8]) -> PathKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.find(parent).map_or([0; 16], |node| node.key));
        hasher.update(name);
        hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()
    }
}

/// Device and inode in one number. Who wants another directory with the same one must choose both.
fn identity(stat: &Stat) -> u64 {
    (stat.st_ino ^ stat.st_dev.rotate_left(40)).max(1)
}

fn numbers_at_will(fd: &OwnedFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|stat| NUMBERS_AT_WILL.contains(&stat.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn a_directory_costs_little_memory() {
        let dirs = Dirs::new();
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
        let dirs = Dirs::new();
        dirs.pin(ROOT, ROOT, b"", Arc::new(open(dir.path())));
        let fd = open(&inside);
        let stat = rustix::fs::fstat(&fd).unwrap();
        dirs.add_open(1, ROOT, b"d", fd, &stat);
        dirs.open.forget(1);
        assert!(dirs.open(1).is_ok());
        dirs.open.forget(1);
        std::fs::rename(&inside, dir.path().join("away")).unwrap();
        std::fs::rename(&other, &inside).unwrap();
        assert_eq!(dirs.open(1).unwrap_err(), Errno::STALE);
        std::fs::remove_dir(&inside).unwrap();
        std::os::unix::fs::symlink("away", &inside).unwrap();
        assert_eq!(dirs.open(1).unwrap_err(), Errno::NOTDIR);
    }
}
