//! A byte stream of a carrier.

use std::io::{Read, Write};

/// Both halves of a byte stream, and how to end it.
pub struct Lane {
    /// What comes.
    pub read: Box<dyn Read + Send>,
    /// What goes; each write is to leave without being asked for.
    pub write: Box<dyn Write + Send>,
    /// Ends what this side writes; called once, when everything has been written or the lane is to be no more. A reader that waits may wait on.
    pub finish: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}
