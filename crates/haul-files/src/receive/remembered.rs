//! What the receiver remembers to the end of a copy: directories that get their modes and times last, hard links, and where their files are.
//!
//! A peer decides how much that is, so it is kept small (24 to 40 bytes and a name) and counted in bytes.

use std::collections::{HashMap, HashSet};

use crate::journal::PathKey;
use crate::stamp::Stamp;
use haul_names::{Name, Names};
use haul_pieces::Packed;
pub(super) use haul_pieces::{DirInfo, Finish};

/// A directory and a name in it.
pub(super) type Location<'a> = (u64, &'a [u8]);

#[derive(Default)]
pub(super) struct Remembered {
    /// By id, rising.
    infos: Vec<Packed>,
    links: Vec<Link>,
    /// Where files are that other entries may be links to.
    named: Vec<Named>,
    /// Files that changed while they were read, and the later entry of each.
    replaced: Vec<(u64, u64)>,
    names: Names,
}

#[derive(Clone, Copy)]
struct Link {
    to: u64,
    parent: u64,
    name: Name,
    mtime: Stamp,
}

#[derive(Clone, Copy)]
struct Named {
    id: u64,
    parent: u64,
    name: Name,
}

impl Remembered {
    /// Remembers a directory; ids rise.
    pub(super) fn directory(&mut self, id: u64, info: DirInfo) {
        let packed = Packed::new(id, info);
        match self.infos.binary_search_by_key(&id, Packed::id) {
            Ok(at) => self.infos.splice(at..=at, [packed]).for_each(drop),
            Err(at) => self.infos.insert(at, packed),
        }
    }

    pub(super) fn info(&self, id: u64) -> Option<DirInfo> {
        let at = self.infos.binary_search_by_key(&id, Packed::id).ok()?;
        self.infos.get(at).map(Packed::unpack)
    }

    /// The directories, the latest first.
    pub(super) fn directories(&self) -> impl Iterator<Item = (u64, DirInfo)> {
        self.infos.iter().rev().map(|info| (info.id(), info.unpack()))
    }

    /// A hard link to the file `to`.
    pub(super) fn link(&mut self, (parent, name): Location<'_>, mtime: Stamp, to: u64) {
        let name = self.names.add(name);
        self.links.push(Link { to, parent, name, mtime });
    }

    /// A file that others may be links to has its name.
    pub(super) fn named(&mut self, id: u64, parent: u64, name: &[u8]) {
        let name = self.names.add(name);
        self.named.push(Named { id, parent, name });
    }

    /// `later` is announced in the place of `earlier`.
    pub(super) fn replaced(&mut self, earlier: u64, later: u64) {
        self.replaced.push((earlier, later));
    }

    /// The hard links, taken out: their places, and where their files are.
    pub(super) fn take_links(&mut self) -> Links {
        let infos = std::mem::take(&mut self.infos);
        let mut links = Links(std::mem::take(self));
        self.infos = infos;
        links.0.named.sort_unstable_by_key(|named| named.id);
        let replaced = &mut links.0.replaced;
        replaced.sort_unstable();
        // From the last down, so that each leads to the end of its chain at once, however many links look for it.
        for at in (0..replaced.len()).rev() {
            let (upto, later) = replaced.split_at_mut(at + 1);
            if let Some((_, to)) = upto.last_mut() {
                *to = successor(later, *to);
            }
        }
        links
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.infos.capacity() * size_of::<Packed>()
            + self.links.capacity() * size_of::<Link>()
            + self.named.capacity() * size_of::<Named>()
            + self.replaced.capacity() * size_of::<(u64, u64)>()
            + self.names.bytes()
    }
}

/// Names that were announced, by their paths' keys: two that fall together, which never happens, keep a file.
#[derive(Default)]
pub(super) struct Announced {
    names: HashSet<PathKey>,
    /// How many in each directory.
    counts: HashMap<PathKey, u64>,
}

impl Announced {
    pub(super) fn add(&mut self, dir: PathKey, name: PathKey) {
        if self.names.insert(name) {
            *self.counts.entry(dir).or_default() += 1;
        }
    }

    pub(super) fn has(&self, name: &PathKey) -> bool {
        self.names.contains(name)
    }

    pub(super) fn count(&self, dir: &PathKey) -> u64 {
        self.counts.get(dir).copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.capacity() * (size_of::<PathKey>() + 1) + self.counts.capacity() * (size_of::<(PathKey, u64)>() + 1)
    }
}

/// Hard links that are to be made.
pub(super) struct Links(Remembered);

impl Links {
    /// Where each link goes, its time, and where its file is, if that is there.
    pub(super) fn each(&self) -> impl Iterator<Item = (Location<'_>, Stamp, Option<Location<'_>>)> {
        let Remembered { links, names, .. } = &self.0;
        links.iter().map(move |link| ((link.parent, names.get(link.name)), link.mtime, self.find(link.to)))
    }

    fn find(&self, to: u64) -> Option<Location<'_>> {
        let Remembered { named, replaced, names, .. } = &self.0;
        let to = successor(replaced, to);
        let at = named.binary_search_by_key(&to, |named| named.id).ok()?;
        named.get(at).map(|named| (named.parent, names.get(named.name)))
    }
}

/// What is announced in the place of a file, or itself. Ids only rise; of several successors the last one counts.
fn successor(replaced: &[(u64, u64)], to: u64) -> u64 {
    let last = replaced.partition_point(|&(earlier, _)| earlier <= to).checked_sub(1).and_then(|at| replaced.get(at));
    last.filter(|(earlier, later)| *earlier == to && *later > to).map_or(to, |(_, later)| *later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_back_as_they_were() {
        let mut remembered = Remembered::default();
        let stamp = Stamp { secs: -7, nanos: 999_999_999 };
        let infos = [
            DirInfo { created: true, usable: true, opened: true, finish: Finish::default() },
            DirInfo { created: false, usable: false, opened: false, finish: Finish { mode: Some(0o7777), ..Finish::default() } },
            DirInfo {
                created: false,
                usable: true,
                opened: false,
                finish: Finish { mode: Some(0), mtime: Some(stamp), owner: Some((u32::MAX, 0)) },
            },
        ];
        for (id, info) in infos.iter().enumerate() {
            remembered.directory(id as u64 * 10, *info);
        }
        assert_eq!(remembered.info(10), Some(infos[1]));
        assert_eq!(remembered.info(11), None);
        let back: Vec<DirInfo> = remembered.directories().map(|(_, info)| info).collect();
        assert_eq!(back, [infos[2], infos[1], infos[0]]);
    }

    #[test]
    fn links_find_their_files_through_those_that_changed() {
        let mut remembered = Remembered::default();
        for (to, name) in [(1, b"a"), (2, b"b"), (9, b"c")] {
            remembered.link((0, name), Stamp::default(), to);
        }
        remembered.replaced(1, 3);
        remembered.replaced(3, 4);
        // No way back.
        remembered.replaced(2, 1);
        remembered.named(4, 0, b"four");
        remembered.named(2, 7, b"two");
        let links = remembered.take_links();
        assert_eq!(links.0.replaced, [(1, 4), (2, 1), (3, 4)], "each leads to its end at once");
        let found: Vec<_> = links.each().map(|(_, _, at)| at).collect();
        assert_eq!(found, [Some((0, &b"four"[..])), Some((7, &b"two"[..])), None]);
        assert_eq!(remembered.take_links().each().count(), 0);
    }

    /// All that a peer can make it remember is counted, and little.
    #[test]
    fn every_entry_is_counted() {
        let count = 10_000;
        type Add = fn(&mut Remembered, u64);
        let ways: [Add; 4] = [
            |all, id| all.directory(id, DirInfo { created: true, usable: true, opened: false, finish: Finish::default() }),
            |all, id| all.link((id, b"12345678"), Stamp::default(), id),
            |all, id| all.named(id, id, b"12345678"),
            |all, id| all.replaced(id, id + 1),
        ];
        for (way, add) in ways.iter().enumerate() {
            let mut remembered = Remembered::default();
            (1..=count).for_each(|id| add(&mut remembered, id));
            let each = remembered.bytes() / count as usize;
            assert!((16..=80).contains(&each), "{each} bytes each, way {way}");
        }
    }
}
