//! What the engine does with a stage: makes parts, syncs them, gives them names.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use super::at::{in_the_way, open_to_read};
use super::read_back::ReadBackBuffer;
use super::stage::{Stage, append, part_name, remove_all, remove_parts};
use super::{beside, meta};
use crate::block::Hash;
use crate::journal::Record;
use crate::locks::lock;
use crate::store::{self, Attributes, FEW, Identity, Placed, ReadHow, Spot, StoreError, Written};

impl store::Stage for Stage {
    type Dir = OwnedFd;
    type Part = File;

    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Option<Identity> {
        Some(self.identity)
    }

    fn boot(&self) -> Option<Hash> {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        Some(*blake3::hash(&id).as_bytes())
    }

    fn is_unused(&self) -> bool {
        self.next_part.load(Ordering::Relaxed) == self.first_part
    }

    fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        Ok(self.journal.as_ref().map_or(Ok(()), |journal| append(journal, &mut lock(&self.journal_end), records))?)
    }

    fn create(&self, mode: u32) -> Result<(u64, File), StoreError> {
        Ok(self.create_part(mode)?)
    }

    fn reopen(&self, part: u64) -> Result<File, StoreError> {
        Ok(self.open_part(part, OFlags::RDWR).or_else(|_| self.open_part(part, OFlags::RDONLY))?)
    }

    fn discard(&self, part: u64) {
        let _ = rustix::fs::unlinkat(&self.dir, &*part_name(part), AtFlags::empty());
    }

    fn sync(&self, parts: &[u64]) -> Result<(), StoreError> {
        if parts.len() <= FEW && sync_each(parts.iter().map(|&part| self.open_part(part, OFlags::RDONLY)))? {
            return Ok(());
        }
        rustix::fs::syncfs(&self.dir).map_err(|errno| {
            // Of any of them something may not be on disk, and the next sync would not tell.
            let _ = remove_parts(&self.dir);
            errno.into()
        })
    }

    fn read_back(
        &self,
        what: &Written<'_, OwnedFd>,
        pieces: &[(u64, u32, Hash)],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        ReadBackBuffer(buffer).written(self, what, pieces)
    }

    fn commit(&self, part: u64, to: &Spot<'_, OwnedFd>, attributes: &Attributes) -> Result<Placed, StoreError> {
        let placed = match rustix::fs::renameat(&self.dir, &*part_name(part), &**to.dir, to.name) {
            Err(Errno::XDEV) => beside::copy_over(self, part, to, attributes).map(Placed::Copied),
            result => result.map(|()| Placed::Renamed).map_err(in_the_way),
        };
        match placed {
            Err(error) if [Errno::ACCESS, Errno::PERM].map(StoreError::from).contains(&error) => {
                let written = beside::write_over(self, part, to, attributes).map(Placed::WrittenOver);
                // Where it cannot be written to either, the first reason is the one.
                written.map_err(|own| if matches!(own, StoreError::Full(_) | StoreError::Emptied(_)) { own } else { error })
            }
            placed => placed,
        }
    }

    fn symlink(&self, to: &Spot<'_, OwnedFd>, target: &[u8], attributes: &Attributes) -> Result<(), StoreError> {
        match self.make_and_rename(to, |fresh| make_symlink(target, &self.dir, fresh, attributes))? {
            Some(()) => Ok(()),
            None => beside::make(self, to, |dir, beside| make_symlink(target, dir, beside, attributes)),
        }
    }

    fn link(&self, from: &OwnedFd, at: &[u8], to: &Spot<'_, OwnedFd>) -> Result<(), StoreError> {
        let Ok(existing) = rustix::fs::statat(&**to.dir, to.name, AtFlags::SYMLINK_NOFOLLOW) else {
            return match rustix::fs::linkat(from, at, &**to.dir, to.name, AtFlags::empty()) {
                Err(Errno::XDEV) => beside::link_over(self, from, at, to),
                result => Ok(result?),
            };
        };
        let target = rustix::fs::statat(from, at, AtFlags::SYMLINK_NOFOLLOW)?;
        if meta::identity(&existing) == meta::identity(&target) {
            return Ok(());
        }
        match self.make_and_rename(to, |fresh| rustix::fs::linkat(from, at, &self.dir, fresh, AtFlags::empty()))? {
            Some(()) => Ok(()),
            None => beside::link_over(self, from, at, to),
        }
    }

    fn sync_names(&self, changed: Option<&[Arc<OwnedFd>]>) -> Result<(), StoreError> {
        if let Some(changed) = changed
            && sync_each(changed.iter().map(|dir| open_to_read(dir)))?
        {
            return Ok(());
        }
        rustix::fs::syncfs(&self.dir)?;
        let foreign: Vec<_> = lock(&self.foreign).values().cloned().collect();
        Ok(foreign.into_iter().try_for_each(|dir| rustix::fs::syncfs(open_to_read(&dir)?))?)
    }

    fn remove(&self) -> Result<bool, StoreError> {
        let foreign = remove_all(&self.dir, &self.root, self.name.as_bytes())?;
        // A run that waits for the same job finds that its journal has no name.
        rustix::fs::flock(&self.lock_file, FlockOperation::Unlock)?;
        Ok(foreign)
    }
}

impl Stage {
    /// Makes something in the stage and renames it to its place; what has failed is removed. None where that is on another file system.
    fn make_and_rename(
        &self,
        to: &Spot<'_, OwnedFd>,
        make: impl FnOnce(&str) -> Result<(), Errno>,
    ) -> Result<Option<()>, StoreError> {
        let fresh = self.fresh_name();
        let result = make(&fresh).and_then(|()| rustix::fs::renameat(&self.dir, &*fresh, &**to.dir, to.name));
        if result.is_err() {
            let _ = rustix::fs::unlinkat(&self.dir, &*fresh, AtFlags::empty());
        }
        match result {
            Err(Errno::XDEV) => Ok(None),
            result => result.map(Some).map_err(in_the_way),
        }
    }
}

/// Syncs each of these; false where one cannot be opened, because its user may not read it or it is gone: then all of the file system is to be synced.
fn sync_each<F: AsFd>(opened: impl Iterator<Item = Result<F, Errno>>) -> Result<bool, Errno> {
    for file in opened {
        match file {
            Err(Errno::ACCESS | Errno::NOENT) => return Ok(false),
            file => rustix::fs::fsync(file?)?,
        }
    }
    Ok(true)
}

fn make_symlink(target: &[u8], dir: &OwnedFd, name: &str, attributes: &Attributes) -> Result<(), Errno> {
    rustix::fs::symlinkat(target, dir, name)?;
    if let Some((uid, gid)) = attributes.owner {
        let (uid, gid) = meta::owner(uid, gid);
        rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if let Some(mtime) = attributes.mtime {
        rustix::fs::utimensat(dir, name, &meta::timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Local, Stage as _, Store};
    use haul_units::Cancel;
    use rustix::fs::{FileType, Mode};

    #[test]
    fn a_sync_that_fails_is_told_though_that_of_the_file_system_would_not() {
        let dir = tempfile::tempdir().unwrap();
        let place = Local::own().destination(&dir.path().into(), false).unwrap();
        let (stage, _) = Local::own().stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        let (part, _) = stage.create(0o600).unwrap();
        assert_eq!(stage.sync(&[part]), Ok(()));
        assert_eq!(stage.sync(&[part, 77]), Ok(()), "one that is gone: its rename says so");
        // A pipe can be opened and not be synced, as a file on a disk that fails.
        rustix::fs::mknodat(&stage.dir, &*part_name(77), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _held = stage.open_part(77, OFlags::RDWR).unwrap();
        assert_eq!(stage.sync(&[part, 77]), Err(Errno::INVAL.into()));
        // One that cannot be opened, for whatever reason but that its owner may not read it.
        rustix::fs::symlinkat("journal", &stage.dir, &*part_name(78)).unwrap();
        assert_eq!(stage.sync(&[part, 78]), Err(Errno::LOOP.into()));
    }

    #[test]
    fn after_a_sync_of_all_that_fails_no_part_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let place = Local::own().destination(&dir.path().into(), false).unwrap();
        let (mut stage, _) = Local::own().stage(&place, &[7; 32], true, &Cancel::new()).unwrap();
        let (part, other) = (stage.create(0o600).unwrap().0, stage.create(0o600).unwrap().0);
        // By such a descriptor names can be used, and nothing can be synced.
        stage.dir = haul_descriptors::open_at(&stage.dir, ".", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        assert_eq!(stage.sync(&[part]), Ok(()));
        assert!(stage.reopen(other).is_ok());
        assert_eq!(stage.sync(&[part, 77]), Err(Errno::BADF.into()));
        assert!([part, other].into_iter().all(|part| stage.reopen(part).is_err()));
        assert!(rustix::fs::statat(&stage.dir, "journal", AtFlags::empty()).is_ok());
    }
}
