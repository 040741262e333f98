//! Stages in memory: they stay when a copy is gone.

use std::sync::Arc;

use haul_files::StoreError;
use haul_files::block::Hash;
use haul_files::journal::{self, Record};
use haul_files::store::{Attributes, Identity, Placed, ReadHow, Spot, Stage, Written};

use crate::kept::Kept;
use crate::node::{Body, Node, lock};
use crate::ram::{Operation, Ram, RamDir, RamFile};

/// The stage of one copy.
pub struct RamStage {
    ram: Ram,
    kept: Arc<Kept>,
    key: (Identity, [u8; 32]),
    resume: bool,
    first_part: u64,
}

impl RamStage {
    /// None where another copy has it.
    pub(crate) fn take(ram: &Ram, kept: Arc<Kept>, key: (Identity, [u8; 32]), resume: bool) -> Option<(Self, Vec<Record>)> {
        let head = Record::Job { version: journal::VERSION, job: key.1 };
        let mut inside = lock(&kept.0);
        if inside.held {
            return None;
        }
        inside.held = true;
        if !resume || inside.journal.first() != Some(&head) {
            inside.journal = vec![head];
            inside.parts.clear();
        }
        let (journal, first_part) = (inside.journal.clone(), inside.last_part + 1);
        drop(inside);
        Some((Self { ram: ram.clone(), kept, key, resume, first_part }, journal))
    }

    fn find(&self, part: u64) -> Result<Arc<Node>, StoreError> {
        lock(&self.kept.0).parts.get(&part).cloned().ok_or(StoreError::Missing)
    }
}

impl Drop for RamStage {
    fn drop(&mut self) {
        lock(&self.kept.0).held = false;
    }
}

impl Stage for RamStage {
    type Dir = RamDir;
    type Part = RamFile;

    fn name(&self) -> &'static str {
        "stage"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn boot(&self) -> Option<Hash> {
        Some(*blake3::hash(&self.ram.boots().to_le_bytes()).as_bytes())
    }

    fn is_unused(&self) -> bool {
        lock(&self.kept.0).last_part < self.first_part
    }

    fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        self.ram.begin(Operation::Append)?;
        if self.resume {
            lock(&self.kept.0).journal.extend_from_slice(records);
        }
        Ok(())
    }

    fn create(&self, mode: u32) -> Result<(u64, RamFile), StoreError> {
        self.ram.begin(Operation::Create)?;
        let node = self.ram.make(Body::File(Vec::new()), mode);
        let mut inside = lock(&self.kept.0);
        inside.last_part += 1;
        let number = inside.last_part;
        inside.parts.insert(number, node.clone());
        Ok((number, RamFile { ram: self.ram.clone(), node, read_only: false }))
    }

    fn reopen(&self, part: u64) -> Result<RamFile, StoreError> {
        self.ram.begin(Operation::Reopen)?;
        let node = self.find(part)?;
        let read_only = lock(&node.inside).mode & 0o200 == 0;
        Ok(RamFile { ram: self.ram.clone(), node, read_only })
    }

    fn discard(&self, part: u64) {
        if !self.ram.is_killed() {
            lock(&self.kept.0).parts.remove(&part);
        }
    }

    fn sync(&self, parts: &[u64]) -> Result<(), StoreError> {
        self.ram.begin(Operation::Sync)?;
        parts.iter().try_for_each(|&part| self.find(part).map(|node| node.sync()))
    }

    fn read_back(
        &self,
        what: &Written<'_, RamDir>,
        pieces: &[(u64, u32, Hash)],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        self.ram.begin(Operation::ReadBack)?;
        let node = match *what {
            Written::Unfinished(part) | Written::Part(part, _) => self.find(part)?,
            Written::Placed(dir, name) => dir.0.child(name)?,
        };
        for (offset, length, hash) in pieces {
            buffer.clear();
            node.read(buffer, *offset, *length as usize);
            if blake3::hash(buffer).as_bytes() != hash {
                return Err(StoreError::Damaged);
            }
        }
        Ok(ReadHow::Direct)
    }

    fn commit(&self, part: u64, to: &Spot<'_, RamDir>, _attributes: &Attributes) -> Result<Placed, StoreError> {
        self.ram.begin(Operation::Commit)?;
        let node = self.find(part)?;
        self.ram.give(to.dir, to.name, node, Some((self.kept.clone(), part)))?;
        lock(&self.kept.0).parts.remove(&part);
        Ok(Placed::Renamed)
    }

    fn symlink(&self, to: &Spot<'_, RamDir>, target: &[u8], attributes: &Attributes) -> Result<(), StoreError> {
        self.ram.begin(Operation::Symlink)?;
        let node = self.ram.make(Body::Symlink(target.to_vec()), 0o777);
        node.apply(attributes, None, self.ram.tick());
        self.ram.give(to.dir, to.name, node, None)
    }

    fn link(&self, dir: &RamDir, name: &[u8], to: &Spot<'_, RamDir>) -> Result<(), StoreError> {
        self.ram.begin(Operation::Link)?;
        self.ram.give(to.dir, to.name, dir.0.child(name)?, None)
    }

    fn sync_names(&self, changed: Option<&[Arc<RamDir>]>) -> Result<(), StoreError> {
        self.ram.begin(Operation::SyncNames)?;
        let mut state = lock(&self.ram.0.state);
        match changed {
            None => state.unsynced.clear(),
            Some(changed) => {
                state.unsynced.retain(|given| !changed.iter().any(|dir| Arc::ptr_eq(&dir.0, &given.dir)));
            }
        }
        Ok(())
    }

    fn remove(&self) -> Result<bool, StoreError> {
        self.ram.begin(Operation::Remove)?;
        lock(&self.ram.0.state).stages.remove(&self.key);
        Ok(false)
    }
}
