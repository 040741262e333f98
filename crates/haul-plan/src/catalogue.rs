//! Which files there are, how large, and which servers hold them.
//!
//! A file is its size and the number of a *set* of servers; files with the same holders share the set. So a file costs twelve bytes, and a
//! million of them can be planned for at once.

use std::collections::HashMap;
use std::ops::Range;

use haul_units::Bytes;
use thiserror::Error;

/// A server, by the order in which it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub(crate) u16);

/// A file, by the order in which it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A set of servers that hold the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SetId(pub(crate) u32);

/// Why something could not be put into a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// Nobody has the file.
    #[error("no server holds the file")]
    NoHolder,
    /// A holder that the catalogue does not know.
    #[error("server {0} is not in the catalogue")]
    UnknownServer(usize),
    /// Ranges that are not in the file, or not in order.
    #[error("ranges that are not in the file")]
    NotInFile,
    /// More files than a catalogue can number.
    #[error("a catalogue holds at most {} files", u32::MAX)]
    Full,
}

/// Files and the servers that hold them.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    servers: u16,
    sizes: Vec<u64>,
    sets: Vec<SetId>,
    /// What is needed of the files of which not all is: ascending, apart.
    parts: HashMap<FileId, Box<[Range<u64>]>>,
    /// Bytes that are needed of all.
    needed: u64,
    holders: Vec<Box<[ServerId]>>,
    known: HashMap<Box<[ServerId]>, SetId>,
}

impl ServerId {
    /// The one that was added as this, counted from 0. A catalogue that has none of that number panics where it is used.
    pub fn new(number: u16) -> Self {
        Self(number)
    }

    /// Counted from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl FileId {
    /// The one that was added as this, counted from 0. A catalogue that has none of that number panics where it is used.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// Counted from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Catalogue {
    /// Without servers and files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server.
    ///
    /// # Panics
    ///
    /// At the 65,536th.
    pub fn add_server(&mut self) -> ServerId {
        let id = ServerId(self.servers);
        self.servers = self.servers.checked_add(1).expect("fewer servers than 65,536");
        id
    }

    /// Adds a file that these servers hold, in any order; one that is named twice counts once.
    pub fn add_file(&mut self, size: Bytes, holders: &[ServerId]) -> Result<FileId, CatalogueError> {
        if let Some(stranger) = holders.iter().find(|holder| holder.0 >= self.servers) {
            return Err(CatalogueError::UnknownServer(stranger.index()));
        }
        if holders.is_empty() {
            return Err(CatalogueError::NoHolder);
        }
        let id = u32::try_from(self.sizes.len()).ok().filter(|id| *id < u32::MAX).ok_or(CatalogueError::Full)?;
        let set = self.set_of(holders.to_vec());
        self.sizes.push(size.as_u64());
        self.sets.push(set);
        self.needed = self.needed.saturating_add(size.as_u64());
        Ok(FileId(id))
    }

    /// As [`add_file`](Self::add_file), of which only these ranges are needed: ascending, apart, none of them empty.
    pub fn add_part(&mut self, size: Bytes, needed: &[Range<u64>], holders: &[ServerId]) -> Result<FileId, CatalogueError> {
        let mut at = 0;
        for range in needed {
            if range.start < at || range.is_empty() || range.end > size.as_u64() {
                return Err(CatalogueError::NotInFile);
            }
            at = range.end;
        }
        if needed.is_empty() {
            return Err(CatalogueError::NotInFile);
        }
        let file = self.add_file(size, holders)?;
        self.parts.insert(file, needed.into());
        let rest = size.as_u64() - needed.iter().map(|range| range.end - range.start).sum::<u64>();
        self.needed = self.needed.saturating_sub(rest);
        Ok(file)
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.servers.into()
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.sizes.len() as u32).map(FileId)
    }

    /// The length of a file.
    pub fn size(&self, file: FileId) -> Bytes {
        Bytes(self.sizes[file.index()])
    }

    /// Who holds a file; nobody, once all have been found not to.
    pub fn holders(&self, file: FileId) -> &[ServerId] {
        self.members(self.set(file))
    }

    /// What is needed of a file, ascending; all of an empty file is one empty range.
    pub(crate) fn needed(&self, file: FileId) -> Vec<Range<u64>> {
        self.parts.get(&file).map_or_else(|| std::iter::once(0..self.size(file).as_u64()).collect(), |ranges| ranges.to_vec())
    }

    /// The sum of what is needed of a file.
    pub(crate) fn needed_bytes(&self, file: FileId) -> u64 {
        let parts = self.parts.get(&file);
        parts.map_or_else(|| self.size(file).as_u64(), |ranges| ranges.iter().map(|range| range.end - range.start).sum())
    }

    /// The sum of what is needed of all files.
    pub fn total(&self) -> Bytes {
        Bytes(self.needed)
    }

    /// This server turns out to hold a file too; false if that was known.
    pub(crate) fn add_holder(&mut self, file: FileId, server: ServerId) -> bool {
        let known = self.holders(file);
        if known.contains(&server) {
            return false;
        }
        let all = known.iter().copied().chain([server]).collect();
        self.sets[file.index()] = self.set_of(all);
        true
    }

    /// This server turns out not to hold a file.
    pub(crate) fn remove_holder(&mut self, file: FileId, server: ServerId) {
        let rest = self.holders(file).iter().copied().filter(|holder| *holder != server).collect();
        self.sets[file.index()] = self.set_of(rest);
    }

    pub(crate) fn set(&self, file: FileId) -> SetId {
        self.sets[file.index()]
    }

    pub(crate) fn set_count(&self) -> usize {
        self.holders.len()
    }

    pub(crate) fn members(&self, set: SetId) -> &[ServerId] {
        &self.holders[set.0 as usize]
    }

    fn set_of(&mut self, mut holders: Vec<ServerId>) -> SetId {
        holders.sort_unstable();
        holders.dedup();
        let holders = holders.into_boxed_slice();
        let next = SetId(self.holders.len() as u32);
        *self.known.entry(holders).or_insert_with_key(|holders| {
            self.holders.push(holders.clone());
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_the_same_holders_share_a_set() {
        let mut catalogue = Catalogue::new();
        let (a, b) = (catalogue.add_server(), catalogue.add_server());
        let one = catalogue.add_file(Bytes(1), &[a, b]).expect("known");
        let two = catalogue.add_file(Bytes(2), &[b, a, b]).expect("known");
        assert_eq!(catalogue.set(one), catalogue.set(two));
        catalogue.remove_holder(two, a);
        assert_eq!((catalogue.holders(one), catalogue.holders(two)), (&[a, b][..], &[b][..]));
        catalogue.remove_holder(two, b);
        assert!(catalogue.holders(two).is_empty());
        assert_eq!(catalogue.total(), Bytes(3));
    }

    #[test]
    fn what_cannot_be_fetched_is_refused() {
        let mut catalogue = Catalogue::new();
        assert_eq!(catalogue.add_file(Bytes(1), &[]), Err(CatalogueError::NoHolder));
        assert_eq!(catalogue.add_file(Bytes(1), &[ServerId(0)]), Err(CatalogueError::UnknownServer(0)));
    }
}
