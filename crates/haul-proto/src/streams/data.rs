//! The memory of a block to send.

use std::ops::Deref;

use bytes::Bytes;

/// Bytes that are sent from where they lie.
#[derive(Debug, Clone)]
pub enum BlockData {
    /// Ours alone: goes back to the application for its next block when it has been acknowledged.
    Owned(Vec<u8>),
    /// Shared with the application, which may send it many times; let go when it has been acknowledged.
    Shared(Bytes),
}

impl BlockData {
    /// Whether it may be written to.
    pub(super) const fn is_owned(&self) -> bool {
        matches!(self, Self::Owned(_))
    }

    /// Appends to a block that is ours alone.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        debug_assert!(self.is_owned(), "what is shared is not written to");
        if let Self::Owned(memory) = self {
            memory.extend_from_slice(bytes);
        }
    }
}

impl Deref for BlockData {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Owned(memory) => memory,
            Self::Shared(memory) => memory,
        }
    }
}

impl Default for BlockData {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl From<Vec<u8>> for BlockData {
    fn from(memory: Vec<u8>) -> Self {
        Self::Owned(memory)
    }
}

impl From<Bytes> for BlockData {
    fn from(memory: Bytes) -> Self {
        Self::Shared(memory)
    }
}
