//! The memory of what is to be sent.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

/// Bytes that are sent from where they lie.
#[derive(Debug, Clone)]
pub enum BlockData {
    /// Ours alone: goes back to the application for its next block when it has been acknowledged.
    Owned(Vec<u8>),
    /// Shared with the application, which may send it many times; let go when it has been acknowledged.
    Shared(Bytes),
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

/// The memory of a chunk.
#[derive(Debug)]
pub(super) enum Memory {
    /// More may be written behind what is there.
    Growing(Vec<u8>),
    /// It stays as it is.
    Fixed(Fixed),
}

/// Where bytes lie that nobody writes to: in what, and how far in.
pub type Place<'a> = (&'a Fixed, usize);

/// Memory that nobody writes to, and that is there as long as anybody refers to it: also a train that is sealed after all of it has been acknowledged.
#[derive(Debug, Clone)]
pub enum Fixed {
    Ours(Arc<Vec<u8>>),
    Applications(Bytes),
}

impl Memory {
    /// Nothing more is written.
    pub(super) fn fix(&mut self) {
        if let Self::Growing(memory) = self {
            *self = Self::Fixed(Fixed::Ours(Arc::new(std::mem::take(memory))));
        }
    }

    /// What was lent, for reuse: not what belongs to the application, nor what a train still refers to.
    pub(super) fn into_vec(self) -> Option<Vec<u8>> {
        match self {
            Self::Growing(memory) => Some(memory),
            Self::Fixed(Fixed::Ours(memory)) => Arc::try_unwrap(memory).ok(),
            Self::Fixed(Fixed::Applications(_)) => None,
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Growing(memory) => memory,
            Self::Fixed(memory) => memory,
        }
    }
}

impl Deref for Fixed {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Ours(memory) => memory,
            Self::Applications(memory) => memory,
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Growing(Vec::new())
    }
}

impl From<BlockData> for Memory {
    fn from(block: BlockData) -> Self {
        Self::Fixed(match block {
            BlockData::Owned(memory) => Fixed::Ours(Arc::new(memory)),
            BlockData::Shared(memory) => Fixed::Applications(memory),
        })
    }
}
