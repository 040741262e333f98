//! Whether the destination has a file already: by time, by size alone, or by content.
//!
//! Where content decides, the sender hashes each file before it announces it, and the receiver those that are there with the same size. Files of another size are not read here.

use super::Receiver;
use super::incomplete::Incomplete;
use crate::block::MAX_CONTENT;
use crate::job::Same;
use crate::locks::lock;
use crate::protocol::Digest;
use crate::store::{At, Content as _, FileKind, Metadata, Store};
use crate::transport::Transport;
use haul_faults::CopyError;

/// Hashes that came before their entries: one batch has some thousand.
const MAX_AHEAD: usize = 1 << 16;

impl<T: Transport, S: Store> Receiver<'_, T, S> {
    /// Takes hashes of what the next entries announce.
    pub(super) fn hear_digests(&self, digests: Vec<Digest>) -> Result<(), CopyError> {
        let mut known = lock(&self.digests);
        if known.len().saturating_add(digests.len()) > MAX_AHEAD {
            return Err(CopyError::PeerMisbehaved("more hashes than can be remembered"));
        }
        known.extend(digests.into_iter().filter_map(|digest| Some((digest.file, digest.hash?))));
        Ok(())
    }

    /// Whether what is there counts as the file that was announced.
    pub(super) fn is_same(&self, file: &Incomplete, existing: Option<&Metadata>) -> Result<bool, CopyError> {
        let announced = lock(&self.digests).remove(&file.id);
        let there = existing.filter(|there| there.kind == FileKind::File && there.size == file.size);
        let Some(there) = there.filter(|_| self.options.keeps_same()) else { return Ok(false) };
        match self.options.same {
            Same::Time => Ok(there.mtime == file.source.mtime),
            Same::Size => Ok(true),
            Same::Content if file.size == 0 => Ok(true),
            // A file that could not be hashed is copied, or told of, as it is met.
            Same::Content => announced.map_or(Ok(false), |hash| self.has_content(file, &hash)),
        }
    }

    /// Reads what is there; one that cannot be read is not the same.
    fn has_content(&self, file: &Incomplete, hash: &[u8; 32]) -> Result<bool, CopyError> {
        let open = self.tree.dirs.open(file.parent).and_then(|dir| self.tree.dirs.store().open(At::In(&*dir, &file.name)));
        let Ok(open) = open else { return Ok(false) };
        let (mut hasher, mut block, mut at) = (blake3::Hasher::new(), Vec::new(), 0);
        while at < file.size {
            self.session.check()?;
            block.clear();
            let length = (file.size - at).min(MAX_CONTENT as u64) as usize;
            if !open.read_at(&mut block, at, length).is_ok_and(|read| read == length) {
                return Ok(false);
            }
            hasher.update(&block);
            at += length as u64;
        }
        Ok(hasher.finalize().as_bytes() == hash)
    }
}
