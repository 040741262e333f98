//! Reading back: whether the store gives what was written ([`Verify::ReadBack`]).
//!
//! After the sync and before a file gets its name, its pieces are read from where they are kept, past what caches there are ([`Stage::read_back`](crate::store::Stage::read_back)), and
//! compared with the hashes that came with them. Holes are not read. A file that differs never gets its name, and is a problem.

use std::sync::atomic::Ordering;

use super::Receiver;
use crate::block::Sent;
use crate::job::Verify;
use crate::observe::Event;
use crate::store::{Attributes, ReadHow, Stage, Store, Written};
use crate::transport::Transport;
use haul_faults::{Why, WirePath};
use haul_names::path_of;

/// Pieces that a copy remembers until their files are complete (48 MiB); then the files with many are read back in parts, and what is remembered of the others takes
/// its part of the memory for what was announced.
pub(super) const MAX_REMEMBERED: usize = 1 << 20;
/// Fewest pieces that are worth a sync of their own.
pub(super) const FEWEST_AT_ONCE: usize = 1 << 10;

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// The pieces to remember, if they are to be read back.
    pub(super) fn to_read_back(&self, pieces: impl IntoIterator<Item = Sent>) -> Vec<Sent> {
        if self.options.verify != Verify::ReadBack {
            return Vec::new();
        }
        // What has no hash is of a run that hashed nothing, and then it does not count, or of a file without content.
        let pieces: Vec<Sent> = pieces.into_iter().filter(|(_, length, _)| *length > 0).collect();
        self.remembered.fetch_add(pieces.len(), Ordering::Relaxed);
        pieces
    }

    /// Whether files with many pieces should not wait for their end.
    pub(super) fn remembers_too_much(&self) -> bool {
        self.remembered.load(Ordering::Relaxed) > MAX_REMEMBERED
    }

    /// Reads back a part file that is on disk.
    pub(super) fn read_back(
        &self,
        buffer: &mut Vec<u8>,
        path: &WirePath,
        part: u64,
        attributes: &Attributes,
        pieces: &[Sent],
    ) -> Result<(), Why> {
        self.remembered.fetch_sub(pieces.len(), Ordering::Relaxed);
        if self.session.observer.wants_files() {
            self.session.observer.event(Event::ReadingBack { path: &path_of(path.0.clone()) });
        }
        let written = Written::Part(part, attributes.final_mode);
        let count = match self.tree.stage.store.read_back(&written, pieces, buffer)? {
            ReadHow::Direct => &self.counts.direct_files,
            ReadHow::Uncached => &self.counts.uncached_files,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads back what is another file than its part at its place. What differs does not stay.
    pub(super) fn read_back_there(&self, buffer: &mut Vec<u8>, name: &[u8], parent: u64, pieces: &[Sent]) -> Result<(), Why> {
        if pieces.is_empty() {
            return Ok(());
        }
        let dir = self.tree.dirs.open(parent)?;
        self.tree.stage.store.read_back(&Written::Placed(&*dir, name), pieces, buffer)?;
        Ok(())
    }

    /// Reads back pieces of a file that is not complete, so that they need not be remembered.
    pub(super) fn read_back_early(&self, part: u64, pieces: &[Sent]) -> Result<(), Why> {
        self.remembered.fetch_sub(pieces.len(), Ordering::Relaxed);
        self.tree.stage.store.read_back(&Written::Unfinished(part), pieces, &mut Vec::new())?;
        Ok(())
    }
}
