//! The tree, what fails in it, and what it forgets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use haul_files::StoreError;
use haul_files::store::{At, Attributes, Content, Identity, Metadata, Part, Space};
use haul_units::Bytes;

use crate::kept::Kept;
use crate::node::{Body, Node, lock};

/// What is done to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the calls of the traits")]
pub enum Operation {
    Stat,
    Directory,
    List,
    Open,
    Read,
    ReadLink,
    MakeDirectory,
    SetMode,
    FinishDirectory,
    Stage,
    Append,
    Create,
    Reopen,
    SetSize,
    Write,
    Finish,
    Sync,
    ReadBack,
    Commit,
    Symlink,
    Link,
    SyncNames,
    Remove,
}

/// The store.
#[derive(Clone)]
pub struct Ram(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    root: Arc<Node>,
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    nodes: Vec<Weak<Node>>,
    last_inode: u64,
    ticks: u64,
    /// By the directory they are in, and the job.
    pub(crate) stages: HashMap<(Identity, [u8; 32]), Arc<Kept>>,
    /// Names that were given and not synced, in order.
    pub(crate) unsynced: Vec<Given>,
    room: Option<u64>,
    operations: u64,
    /// How often it has lost its power.
    boots: u64,
    kill_after: Option<u64>,
    faults: Vec<Fault>,
    /// What happens first when the next of these is done.
    before: Vec<(Operation, Box<dyn FnOnce() + Send>)>,
}

/// A name that something got, and what undoes that.
pub(crate) struct Given {
    pub(crate) dir: Arc<Node>,
    name: Vec<u8>,
    before: Option<Arc<Node>>,
    /// The stage and number of the part that it was.
    part: Option<(Arc<Kept>, u64)>,
}

struct Fault {
    operation: Operation,
    /// How many more of them succeed.
    after: u64,
    error: StoreError,
}

/// A directory.
pub struct RamDir(pub(crate) Arc<Node>);

/// A file, or a part of one.
pub struct RamFile {
    pub(crate) ram: Ram,
    pub(crate) node: Arc<Node>,
    /// Opened again by a user whom its mode lets only read.
    pub(crate) read_only: bool,
}

impl RamFile {
    fn begin_writing(&self, operation: Operation) -> Result<(), StoreError> {
        self.ram.begin(operation)?;
        if self.read_only { Err(StoreError::FAILED) } else { Ok(()) }
    }
}

impl Default for Ram {
    fn default() -> Self {
        Self::new()
    }
}

impl Ram {
    /// An empty directory.
    pub fn new() -> Self {
        let mut state = State::default();
        let root = state.node(Body::directory(), 0o755);
        Self(Arc::new(Shared { root, state: Mutex::new(state) }))
    }

    /// Puts a file there, and the directories above it: durable at once.
    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some(name) = parts.pop() else { return };
        let mut state = lock(&self.0.state);
        let mut at = self.0.root.clone();
        for part in parts {
            let there = at.child(part.as_bytes());
            at = there.unwrap_or_else(|_| {
                let next = state.node(Body::directory(), 0o755);
                at.set(part.as_bytes(), Some(next.clone()));
                next
            });
        }
        let file = state.node(Body::File(content.into()), 0o644);
        file.sync();
        at.set(name.as_bytes(), Some(file));
    }

    /// The content of a file, if there is one.
    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        match &lock(&self.find(path.as_bytes()).ok()?.inside).body {
            Body::File(content) => Some(content.clone()),
            _ => None,
        }
    }

    /// What has this path, without counting as an operation.
    pub fn peek(&self, path: &str) -> Option<Metadata> {
        Some(self.find(path.as_bytes()).ok()?.metadata())
    }

    /// How many stages there are, of copies that have not ended.
    pub fn stages(&self) -> usize {
        lock(&self.0.state).stages.len()
    }

    /// How many parts there are in them that have no name yet.
    pub fn parts(&self) -> usize {
        let stages: Vec<_> = lock(&self.0.state).stages.values().cloned().collect();
        stages.iter().map(|stage| stage.parts()).sum()
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        lock(&self.0.state).operations
    }

    /// Operations of this kind fail after the next `after` of them, until [`heal`](Self::heal).
    pub fn fail(&self, operation: Operation, after: u64, error: StoreError) {
        lock(&self.0.state).faults.push(Fault { operation, after, error });
    }

    /// After so many more operations every one fails and changes nothing, as if the process were gone.
    pub fn kill_after(&self, operations: u64) {
        let mut state = lock(&self.0.state);
        state.kill_after = Some(state.operations + operations);
    }

    /// Does this before the next operation of this kind, which waits for it.
    pub fn before(&self, operation: Operation, meanwhile: impl FnOnce() + Send + 'static) {
        lock(&self.0.state).before.push((operation, Box::new(meanwhile)));
    }

    /// Room for so many bytes of content; none: any number.
    pub fn limit(&self, bytes: Option<u64>) {
        lock(&self.0.state).room = bytes;
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        let mut state = lock(&self.0.state);
        (state.kill_after, state.faults) = (None, Vec::new());
    }

    /// What was not synced is gone, as much of it as `seed` says. Nobody may be at work.
    pub fn lose_power(&self, seed: u64) {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: usize| {
            // xorshift64: any spread of choices will do.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % (bound as u64 + 1)) as usize
        };
        let mut state = lock(&self.0.state);
        state.boots += 1;
        let keep = below(state.unsynced.len());
        let undone = state.unsynced.split_off(keep);
        state.unsynced.clear();
        for given in undone.into_iter().rev() {
            if let Some((stage, number)) = given.part
                && let Ok(node) = given.dir.child(&given.name)
            {
                stage.put_back(number, node);
            }
            given.dir.set(&given.name, given.before);
        }
        for node in state.nodes.iter().filter_map(Weak::upgrade) {
            node.forget_unsynced();
        }
        for stage in state.stages.values() {
            stage.cut_journal(&mut below);
        }
    }

    /// Counts an operation; an error where it is to fail.
    pub(crate) fn begin(&self, operation: Operation) -> Result<(), StoreError> {
        let mut state = lock(&self.0.state);
        if let Some(first) = state.before.iter().position(|(kind, _)| *kind == operation) {
            let (_, meanwhile) = state.before.swap_remove(first);
            drop(state);
            meanwhile();
            state = lock(&self.0.state);
        }
        state.operations += 1;
        if state.kill_after.is_some_and(|after| state.operations > after) {
            return Err(StoreError::FAILED);
        }
        for fault in state.faults.iter_mut().filter(|fault| fault.operation == operation) {
            if fault.after == 0 {
                return Err(fault.error);
            }
            fault.after -= 1;
        }
        Ok(())
    }

    pub(crate) fn is_killed(&self) -> bool {
        let state = lock(&self.0.state);
        state.kill_after.is_some_and(|after| state.operations >= after)
    }

    pub(crate) fn boots(&self) -> u64 {
        lock(&self.0.state).boots
    }

    pub(crate) fn find(&self, path: &[u8]) -> Result<Arc<Node>, StoreError> {
        let mut at = self.0.root.clone();
        for part in components(path)? {
            at = at.child(part)?;
        }
        Ok(at)
    }

    pub(crate) fn at(&self, at: At<'_, Self>) -> Result<Arc<Node>, StoreError> {
        match at {
            At::Top(path) => self.find(&path.0),
            At::In(dir, name) => dir.0.child(name),
        }
    }

    /// Gives something a name: durable with the next sync.
    pub(crate) fn give(
        &self,
        dir: &RamDir,
        name: &[u8],
        node: Arc<Node>,
        part: Option<(Arc<Kept>, u64)>,
    ) -> Result<(), StoreError> {
        let before = match dir.0.child(name) {
            Ok(there) if there.is_directory() => return Err(StoreError::InTheWay),
            Ok(there) => Some(there),
            Err(_) => None,
        };
        dir.0.set(name, Some(node));
        let dir = dir.0.clone();
        lock(&self.0.state).unsynced.push(Given { dir, name: name.to_vec(), before, part });
        Ok(())
    }

    pub(crate) fn make(&self, body: Body, mode: u32) -> Arc<Node> {
        lock(&self.0.state).node(body, mode)
    }

    pub(crate) fn tick(&self) -> u64 {
        lock(&self.0.state).tick()
    }

    pub(crate) fn space_now(&self) -> Space {
        let state = lock(&self.0.state);
        let used = state.nodes.iter().filter_map(Weak::upgrade).map(|node| node.written()).sum();
        let total = state.room.unwrap_or(u64::MAX);
        Space { free: Bytes(total.saturating_sub(used)), total: Bytes(total) }
    }
}

impl State {
    fn node(&mut self, body: Body, mode: u32) -> Arc<Node> {
        self.last_inode += 1;
        let node = Arc::new(Node::new(self.last_inode, body, mode, self.tick()));
        self.nodes.retain(|node| node.strong_count() > 0);
        self.nodes.push(Arc::downgrade(&node));
        node
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

impl Content for RamFile {
    fn metadata(&self) -> Result<Metadata, StoreError> {
        self.ram.begin(Operation::Stat)?;
        Ok(self.node.metadata())
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        self.ram.begin(Operation::Read)?;
        Ok(self.node.read(buffer, offset, length))
    }
}

impl Part for RamFile {
    fn set_size(&self, size: u64) -> Result<(), StoreError> {
        self.begin_writing(Operation::SetSize)?;
        self.node.set_size(size, self.ram.tick())
    }

    fn write_at(&self, content: &[u8], offset: u64) -> Result<(), StoreError> {
        self.begin_writing(Operation::Write)?;
        if self.ram.space_now().free < Bytes(content.len() as u64) {
            return Err(StoreError::FULL);
        }
        self.node.write(content, offset, self.ram.tick())
    }

    fn finish(&self, attributes: &Attributes, mode: Option<u32>) -> Result<Metadata, StoreError> {
        self.ram.begin(Operation::Finish)?;
        self.node.apply(attributes, mode, self.ram.tick());
        Ok(self.node.metadata())
    }
}

pub(crate) fn components(path: &[u8]) -> Result<Vec<&[u8]>, StoreError> {
    let parts: Vec<&[u8]> = path.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) { Err(StoreError::OutsideRoot) } else { Ok(parts) }
}
