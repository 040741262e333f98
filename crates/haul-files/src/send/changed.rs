//! Files that are written to while they are read: what is taken of them, and what is said about it.
//!
//! The state of such a file differs from that of the scan. What was sent is compared with what the file has when it was read to its end: a block that
//! differs was rewritten after it had been read; where none differs and the length is the same, only metadata changed, and nothing is said. So a file that
//! changed is read twice from its disk, and still sent once.

use super::Sender;
use super::early::Held;
use super::plan::Large;
use super::source::SourceFile;
use crate::block::{self, MAX_CONTENT};
use crate::job::Changed;
use crate::store::{Content, Metadata, Store, StoreError};
use crate::transport::Transport;
use haul_faults::{ChangedFile, CopyError, Note};

/// What changed in a file while it was read.
pub(super) struct Change {
    taken: u64,
    now: u64,
    rewritten: Option<Vec<(u64, u64)>>,
}

impl Change {
    /// None where nothing changed but metadata.
    fn new(taken: u64, now: u64, rewritten: Option<Vec<(u64, u64)>>) -> Option<Self> {
        let unchanged = now == taken && rewritten.as_ref().is_some_and(Vec::is_empty);
        (!unchanged).then_some(Self { taken, now, rewritten })
    }
}

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// Whether a file that is not what the scan saw is read all the same: there is no further try.
    pub(super) fn takes_changed(&self, file: &SourceFile) -> bool {
        self.job.options.changed == Changed::Take && (file.retried || self.job.in_order)
    }

    /// Whether pieces are remembered, to tell afterwards which of them changed.
    pub(super) fn names_blocks(&self) -> bool {
        self.job.options.changed == Changed::Take && self.job.options.verify.hashes()
    }

    /// What changed in a file that was read to its end, and that has this state then.
    pub(super) fn change_of(&self, large: &Large<S::File>, now: &Metadata) -> Result<Option<Change>, CopyError> {
        let (bytes, _) = large.tally();
        let taken = if self.job.in_order { bytes } else { large.file.state.size };
        let sent = large.sent().filter(|_| self.names_blocks());
        let Some(sent) = sent else { return Ok(Change::new(taken, now.size, None)) };
        let mut rewritten: Vec<(u64, u64)> = Vec::new();
        let mut buffer = Vec::with_capacity(MAX_CONTENT);
        for (offset, length, hash) in sent {
            self.check()?;
            buffer.clear();
            let read = large.open.read_at(&mut buffer, offset, length as usize);
            if read.is_ok_and(|read| read == length as usize) && block::hash(&buffer, true) == hash {
                continue;
            }
            let end = offset + u64::from(length);
            match rewritten.last_mut() {
                Some((_, last)) if *last == offset => *last = end,
                _ => rewritten.push((offset, end)),
            }
        }
        Ok(Change::new(taken, now.size, Some(rewritten)))
    }

    /// Says what changed, as soon as it is sure that this sender goes on.
    pub(super) fn tell_change(&self, file: &SourceFile, change: Option<Change>) -> Result<(), CopyError> {
        let Some(Change { taken, now, rewritten }) = change else { return Ok(()) };
        let note = ChangedFile { path: self.display(file), taken, now, rewritten };
        self.tell(Held::Note(Note::Changed(note).bounded()))
    }
}

/// What changed in a file that was read into a block.
pub(super) fn change_of_small(file: &impl Content, content: &[u8], now: &Metadata) -> Result<Option<Change>, StoreError> {
    let mut again = Vec::new();
    file.read_at(&mut again, 0, content.len())?;
    let taken = content.len() as u64;
    let rewritten = if again == content { Vec::new() } else { vec![(0, taken)] };
    Ok(Change::new(taken, now.size, Some(rewritten)))
}
