//! Hashes of whole files that were announced, for a receiver that wants to know whether two servers have the same.
//!
//! One thread reads them, one file after the other, beside what sends. A file is compared with what the scan saw, before as after: a hash is one of the content that was announced.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use super::Sender;
use super::orders::Orders;
use super::source::SourceFile;
use crate::block::MAX_CONTENT;
use crate::clock::POLL;
use crate::locks::lock;
use crate::protocol::{Digest, Message};
use crate::store::{Content, Store};
use crate::transport::Transport;
use haul_faults::CopyError;

/// Files whose hash is due; one that knows what it is doing asks for some thousand at a time.
const MAX_DUE: usize = 1 << 20;

/// What is asked for.
#[derive(Default)]
pub(super) struct Digests {
    due: Mutex<VecDeque<u64>>,
    changed: Condvar,
}

impl Digests {
    /// The receiver asks for these.
    pub(super) fn take(&self, files: Vec<u64>) -> Result<(), CopyError> {
        let mut due = lock(&self.due);
        if due.len().saturating_add(files.len()) > MAX_DUE {
            return Err(CopyError::PeerMisbehaved("more hashes than can be remembered"));
        }
        due.extend(files);
        self.changed.notify_all();
        Ok(())
    }

    /// The next file; none when nothing more will be asked.
    fn next(&self, check: impl Fn() -> Result<(), CopyError>, is_over: impl Fn() -> bool) -> Result<Option<u64>, CopyError> {
        let mut due = lock(&self.due);
        loop {
            check()?;
            if let Some(file) = due.pop_front() {
                return Ok(Some(file));
            }
            if is_over() {
                return Ok(None);
            }
            due = self.changed.wait_timeout(due, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// Answers until nothing more is ordered.
    pub(super) fn answer_digests(&self, orders: &Orders<S::File>) -> Result<(), CopyError> {
        while let Some(id) = self.digests.next(|| self.check(), || orders.is_enough())? {
            let file = orders.file(id).ok_or(CopyError::PeerMisbehaved("the hash of what it was not told of"))?;
            let hash = self.digest_of(&file)?;
            self.session.send(&Message::Digests(vec![Digest { file: id, hash }]))?;
        }
        Ok(())
    }

    /// Nothing where the file cannot be read, or is another by now.
    pub(super) fn digest_of(&self, file: &SourceFile) -> Result<Option<[u8; 32]>, CopyError> {
        let Ok(open) = self.open(file) else { return Ok(None) };
        let (mut hasher, mut block, mut at) = (blake3::Hasher::new(), Vec::new(), 0);
        while at < file.state.size {
            self.check()?;
            block.clear();
            let length = (file.state.size - at).min(MAX_CONTENT as u64) as usize;
            if !open.read_at(&mut block, at, length).is_ok_and(|read| read == length) {
                return Ok(None);
            }
            hasher.update(&block);
            at += length as u64;
        }
        let is_same = open.metadata().is_ok_and(|there| there.source() == file.state);
        Ok(is_same.then(|| *hasher.finalize().as_bytes()))
    }
}
