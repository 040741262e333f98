//! One tree from the lists of all members.
//!
//! A name below the same directories is one thing. Directories are merged, with the metadata of the first member in the order of the job among those that had said what they have when it was asked for; files of the
//! same size and time of modification are replicas; anything else under one name is a conflict. A file costs about 100 bytes and its name, however many members have it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::PathBuf;

use haul_files::WirePath;
use haul_files::protocol::{Entry, Kind, ROOT, Stamp};

/// No node; and no file of a plan.
pub(super) const NONE: u32 = u32::MAX;
/// Memory for the nodes and their names: some thirty million files.
const MAX_BYTES: usize = 4 << 30;

/// Everything that any member has.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The latest node with such a hash of parent and name; the others are chained.
    by_name: HashMap<u64, u32>,
    hasher: RandomState,
    sets: Sets,
    bytes: usize,
    /// Whether files of one size and different times may have the same content.
    by_hash: bool,
    /// Such files: node, and a member that has it with another time.
    doubts: Vec<(u32, u16)>,
    /// Files, and the set of members that can give them and would fetch them from other machines.
    far: HashMap<u32, u32>,
    /// Names at the top.
    tops: u32,
}

struct Node {
    parent: u32,
    /// Another one with the same hash.
    chained: u32,
    name: Box<[u8]>,
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: Stamp,
    what: What,
    /// Of the members that have it the first: the metadata are its.
    first: u16,
    /// Who has it, if it is a file.
    set: u32,
}

#[derive(PartialEq, Eq)]
enum What {
    Directory,
    Symlink(Box<[u8]>),
    File(u64),
}

/// Why something does not fit in.
pub(super) enum Misfit {
    /// Another thing has its name; who said so.
    Conflict {
        node: u32,
        other: u16,
    },
    TooMany,
}

impl Tree {
    /// An empty tree, in which files of one size and different times are a doubt, and no conflict.
    pub(super) fn by_hash(by_hash: bool) -> Self {
        Self { by_hash, ..Self::default() }
    }

    /// The files that are to be compared, each once, with the members that have them.
    pub(super) fn doubts(&mut self) -> Vec<(u32, Vec<u16>)> {
        let mut doubts = std::mem::take(&mut self.doubts);
        doubts.sort_unstable();
        doubts.dedup();
        let files = doubts.chunk_by(|a, b| a.0 == b.0).filter_map(|of_one| {
            let at = of_one.first()?.0;
            Some((at, self.holders(at).iter().copied().chain(of_one.iter().map(|(_, member)| *member)).collect()))
        });
        files.collect()
    }

    /// It is known who has this file.
    pub(super) fn settle(&mut self, at: u32, members: &[u16]) {
        let set = members.iter().fold(None, |set, member| Some(self.sets.with(set, *member)));
        if let (Some(set), Some(node)) = (set, self.nodes.get_mut(at as usize)) {
            node.set = set;
        }
    }

    /// Takes what a member has in the directory of this node; the node that it is now. None where nothing can be below it. A file that it has not at hand is asked of others first.
    pub(super) fn add(&mut self, member: u16, parent: Option<u32>, entry: Entry, is_at_hand: bool) -> Result<u32, Misfit> {
        let parent = parent.unwrap_or(NONE);
        let what = match entry.kind {
            Kind::Symlink { target } => What::Symlink(target.0.into()),
            Kind::File { size, .. } => What::File(size),
            // The others are not announced to who orders.
            Kind::Directory | Kind::Stream { .. } | Kind::HardLink { .. } => What::Directory,
        };
        let hash = self.hasher.hash_one((parent, &entry.name.0));
        let Some(at) = self.find(hash, parent, &entry.name.0) else {
            let at = u32::try_from(self.nodes.len()).ok().filter(|at| *at < NONE - 1).ok_or(Misfit::TooMany)?;
            self.bytes += size_of::<Node>() + 24 + entry.name.0.len();
            if self.bytes > MAX_BYTES {
                return Err(Misfit::TooMany);
            }
            let chained = self.by_name.insert(hash, at).unwrap_or(NONE);
            let is_file = matches!(what, What::File(_));
            let set = if is_file && is_at_hand { self.sets.with(None, member) } else { NONE };
            if is_file && !is_at_hand {
                self.far.insert(at, self.sets.with(None, member));
            }
            let Entry { name, mode, uid, gid, mtime, .. } = entry;
            let name = name.0.into_boxed_slice();
            self.tops += u32::from(parent == NONE);
            self.nodes.push(Node { parent, chained, name, mode, uid, gid, mtime, what, first: member, set });
            return Ok(at);
        };
        let node = &mut self.nodes[at as usize];
        let is_file = matches!(what, What::File(_));
        let is_doubtful = is_file && node.mtime != entry.mtime;
        if node.what != what || is_doubtful && !self.by_hash {
            let other = node.first;
            return Err(Misfit::Conflict { node: at, other });
        }
        if member < node.first {
            (node.mode, node.uid, node.gid, node.mtime, node.first) = (entry.mode, entry.uid, entry.gid, entry.mtime, member);
        }
        if is_doubtful {
            self.doubts.push((at, member));
        } else if is_file && is_at_hand {
            node.set = self.sets.with((node.set != NONE).then_some(node.set), member);
        } else if is_file {
            let set = self.sets.with(self.far.get(&at).copied(), member);
            self.far.insert(at, set);
        }
        Ok(at)
    }

    fn find(&self, hash: u64, parent: u32, name: &[u8]) -> Option<u32> {
        let mut at = self.by_name.get(&hash).copied().unwrap_or(NONE);
        while let Some(node) = self.nodes.get(at as usize) {
            if node.parent == parent && *node.name == *name {
                return Some(at);
            }
            at = node.chained;
        }
        None
    }

    /// How many things there are.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// How many names stand at the top.
    pub(super) fn tops(&self) -> u32 {
        self.tops
    }

    /// The size of a file; none for anything else.
    pub(super) fn size(&self, at: u32) -> Option<u64> {
        match self.nodes.get(at as usize)?.what {
            What::File(size) => Some(size),
            What::Directory | What::Symlink(_) => None,
        }
    }

    /// Who can give a file and does not have it at hand, ascending. Once: who asks makes them its holders.
    pub(super) fn take_far(&mut self, at: u32) -> Vec<u16> {
        self.far.remove(&at).and_then(|set| self.sets.list.get(set as usize)).map_or_else(Vec::new, |set| set.to_vec())
    }

    /// The files for which there are such, and nobody has asked for them yet.
    pub(super) fn far(&self) -> Vec<u32> {
        self.far.keys().copied().collect()
    }

    /// Who has a file at hand, ascending.
    pub(super) fn holders(&self, at: u32) -> &[u16] {
        self.nodes.get(at as usize).and_then(|node| self.sets.list.get(node.set as usize)).map_or(&[], |set| set)
    }

    /// The name of a thing below the root of the job.
    pub(super) fn path(&self, at: u32) -> PathBuf {
        let mut names = Vec::new();
        let mut next = self.nodes.get(at as usize);
        while let Some(node) = next {
            names.push(WirePath(node.name.to_vec()).to_path());
            next = self.nodes.get(node.parent as usize);
        }
        names.into_iter().rev().filter(|name| !name.as_os_str().is_empty()).collect()
    }

    /// What a receiver is told of these things: parents before children, ids as [`id`] has them.
    pub(super) fn entries(&self, range: Range<u32>) -> Vec<Entry> {
        let nodes = range.filter_map(|at| Some((at, self.nodes.get(at as usize)?)));
        nodes.map(|(at, node)| node.entry(at)).collect()
    }
}

impl Node {
    fn entry(&self, at: u32) -> Entry {
        let kind = match &self.what {
            What::Directory => Kind::Directory,
            What::Symlink(target) => Kind::Symlink { target: WirePath(target.to_vec()) },
            // The members' versions differ, and a later run may ask others: a file is known by its size and time.
            What::File(size) => Kind::File { size: *size, data: *size, version: 0, linked: false, replaces: None },
        };
        let parent = if self.parent == NONE { ROOT } else { id(self.parent) };
        let (name, mode, mtime) = (WirePath(self.name.to_vec()), self.mode, self.mtime);
        Entry { id: id(at), parent, name, mode, mtime, uid: self.uid, gid: self.gid, kind }
    }
}

/// The id under which the receiver knows a node.
pub(super) fn id(at: u32) -> u64 {
    u64::from(at) + 1
}

/// The node of an id.
pub(super) fn node(id: u64) -> Option<u32> {
    u32::try_from(id.checked_sub(1)?).ok()
}

/// Sets of members, each of them once.
#[derive(Default)]
struct Sets {
    list: Vec<Box<[u16]>>,
    known: HashMap<Box<[u16]>, u32>,
    /// The set that one with another member makes.
    grown: HashMap<(u32, u16), u32>,
}

impl Sets {
    fn with(&mut self, set: Option<u32>, member: u16) -> u32 {
        let key = (set.unwrap_or(NONE), member);
        if let Some(&grown) = self.grown.get(&key) {
            return grown;
        }
        let mut members = set.and_then(|set| self.list.get(set as usize)).map_or_else(Vec::new, |members| members.to_vec());
        if let Err(place) = members.binary_search(&member) {
            members.insert(place, member);
        }
        let members = members.into_boxed_slice();
        let next = self.list.len() as u32;
        let list = &mut self.list;
        let grown = *self.known.entry(members).or_insert_with_key(|members| {
            list.push(members.clone());
            next
        });
        self.grown.insert(key, grown);
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, size: u64, secs: i64) -> Entry {
        let kind = Kind::File { size, data: size, version: 7, linked: false, replaces: None };
        let mtime = Stamp { secs, nanos: 1 };
        Entry { id: 9, parent: 0, name: WirePath(name.into()), mode: 0o644, mtime, uid: 1, gid: 1, kind }
    }

    fn directory(name: &str, mode: u32) -> Entry {
        Entry { kind: Kind::Directory, mode, ..file(name, 0, 5) }
    }

    fn added(tree: &mut Tree, member: u16, parent: Option<u32>, entry: Entry) -> u32 {
        tree.add(member, parent, entry, true).unwrap_or_else(|_| panic!("fits"))
    }

    #[test]
    fn replicas_are_one_file_and_directories_are_the_first_members() {
        let mut tree = Tree::default();
        let late = added(&mut tree, 2, None, directory("d", 0o700));
        let early = added(&mut tree, 0, None, directory("d", 0o755));
        assert_eq!(late, early);
        let one = added(&mut tree, 2, Some(late), file("f", 10, 3));
        assert_eq!(added(&mut tree, 0, Some(early), file("f", 10, 3)), one);
        // The same name elsewhere is another file.
        let other = added(&mut tree, 1, None, file("f", 11, 3));
        assert_eq!((tree.holders(one), tree.holders(other)), (&[0, 2][..], &[1][..]));
        assert_eq!((tree.path(one), tree.tops(), tree.len()), (PathBuf::from("d/f"), 2, 3));
        let entries = tree.entries(0..3);
        assert_eq!(entries.iter().map(|entry| (entry.id, entry.parent)).collect::<Vec<_>>(), [(1, ROOT), (2, 1), (3, ROOT)]);
        assert_eq!(entries[0].mode, 0o755);
        assert_eq!(node(entries[1].id), Some(one));
    }

    #[test]
    fn different_things_of_one_name_are_named_with_both_members() {
        let conflicting = [file("f", 11, 3), file("f", 10, 4), directory("f", 0o644)];
        for entry in conflicting {
            let mut tree = Tree::default();
            added(&mut tree, 3, None, file("f", 10, 3));
            let result = tree.add(1, None, entry, true);
            assert!(matches!(result, Err(Misfit::Conflict { node, other: 3 }) if tree.path(node).as_os_str() == "f"));
        }
    }
}
