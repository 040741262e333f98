//! Files, directories and links in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_files::StoreError;
use haul_files::protocol::Stamp;
use haul_files::store::{Attributes, FileKind, Identity, Metadata};

/// Locks; another thread's panic has failed the test already.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest file, in bytes: what a test can have meant.
const MAX_SIZE: u64 = 1 << 30;

pub(crate) struct Node {
    inode: u64,
    pub(crate) inside: Mutex<Inside>,
}

pub(crate) struct Inside {
    pub(crate) body: Body,
    pub(crate) mode: u32,
    owner: (u32, u32),
    mtime: Stamp,
    changed: u64,
    /// Directory entries that are this.
    names: u64,
    /// Bytes that were written to it.
    written: u64,
    synced: bool,
}

pub(crate) enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, Arc<Node>>),
    Symlink(Vec<u8>),
}

impl Body {
    pub(crate) fn directory() -> Self {
        Self::Directory(BTreeMap::new())
    }
}

impl Node {
    pub(crate) fn new(inode: u64, body: Body, mode: u32, now: u64) -> Self {
        let mtime = Stamp { secs: now as i64, nanos: 0 };
        let inside = Inside { body, mode, owner: (0, 0), mtime, changed: now, names: 0, written: 0, synced: false };
        Self { inode, inside: Mutex::new(inside) }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { device: 1, inode: self.inode }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(lock(&self.inside).body, Body::Directory(_))
    }

    pub(crate) fn metadata(&self) -> Metadata {
        let inside = lock(&self.inside);
        let (kind, size) = match &inside.body {
            Body::File(content) => (FileKind::File, content.len() as u64),
            Body::Directory(_) => (FileKind::Directory, 0),
            Body::Symlink(target) => (FileKind::Symlink, target.len() as u64),
        };
        Metadata {
            kind,
            size,
            data: size,
            mode: inside.mode,
            uid: inside.owner.0,
            gid: inside.owner.1,
            mtime: inside.mtime,
            changed: (inside.changed as i64, 0),
            names: inside.names,
            identity: self.identity(),
        }
    }

    pub(crate) fn child(&self, name: &[u8]) -> Result<Arc<Self>, StoreError> {
        match &lock(&self.inside).body {
            Body::Directory(entries) => entries.get(name).cloned().ok_or(StoreError::Missing),
            _ => Err(StoreError::InTheWay),
        }
    }

    pub(crate) fn children(&self) -> Vec<(Vec<u8>, Arc<Self>)> {
        match &lock(&self.inside).body {
            Body::Directory(entries) => entries.iter().map(|(name, node)| (name.clone(), node.clone())).collect(),
            _ => Vec::new(),
        }
    }

    /// Sets what a name in this directory is.
    pub(crate) fn set(&self, name: &[u8], node: Option<Arc<Self>>) {
        if let Some(node) = &node {
            lock(&node.inside).names += 1;
        }
        let before = match &mut lock(&self.inside).body {
            Body::Directory(entries) => match node {
                Some(node) => entries.insert(name.to_vec(), node),
                None => entries.remove(name),
            },
            _ => None,
        };
        if let Some(before) = before {
            lock(&before.inside).names -= 1;
        }
    }

    pub(crate) fn read(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> usize {
        let inside = lock(&self.inside);
        let Body::File(content) = &inside.body else { return 0 };
        let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..)).unwrap_or_default();
        let read = rest.get(..length).unwrap_or(rest);
        buffer.extend_from_slice(read);
        read.len()
    }

    pub(crate) fn set_size(&self, size: u64, now: u64) -> Result<(), StoreError> {
        let mut inside = lock(&self.inside);
        let Some(content) = inside.writable(now) else { return Err(StoreError::FAILED) };
        if size > MAX_SIZE {
            return Err(StoreError::FULL);
        }
        content.resize(size as usize, 0);
        Ok(())
    }

    pub(crate) fn write(&self, new: &[u8], offset: u64, now: u64) -> Result<(), StoreError> {
        let mut inside = lock(&self.inside);
        let end = offset.saturating_add(new.len() as u64);
        if end > MAX_SIZE {
            return Err(StoreError::FULL);
        }
        let Some(content) = inside.writable(now) else { return Err(StoreError::FAILED) };
        if content.len() < end as usize {
            content.resize(end as usize, 0);
        }
        if let Some(place) = content.get_mut(offset as usize..end as usize) {
            place.copy_from_slice(new);
        }
        inside.written += new.len() as u64;
        Ok(())
    }

    pub(crate) fn apply(&self, attributes: &Attributes, mode: Option<u32>, now: u64) {
        let mut inside = lock(&self.inside);
        inside.owner = attributes.owner.unwrap_or(inside.owner);
        inside.mode = mode.unwrap_or(inside.mode);
        inside.mtime = attributes.mtime.unwrap_or(inside.mtime);
        inside.changed = now;
    }

    pub(crate) fn written(&self) -> u64 {
        lock(&self.inside).written
    }

    /// Makes the content durable.
    pub(crate) fn sync(&self) {
        lock(&self.inside).synced = true;
    }

    /// Content that is not durable becomes zeros: its length was.
    pub(crate) fn forget_unsynced(&self) {
        let mut inside = lock(&self.inside);
        if let (false, Body::File(content)) = (inside.synced, &mut inside.body) {
            content.fill(0);
        }
    }
}

impl Inside {
    fn writable(&mut self, now: u64) -> Option<&mut Vec<u8>> {
        (self.changed, self.synced, self.mtime) = (now, false, Stamp { secs: now as i64, nanos: 0 });
        match &mut self.body {
            Body::File(content) => Some(content),
            _ => None,
        }
    }
}
