//! No such lock.

use std::convert::Infallible;
use std::path::Path;

use super::Locked;

/// What may be opened, if somebody asked.
#[derive(Debug, Default)]
pub struct Open(());

impl Open {
    /// Also what is below this directory, to read.
    #[must_use]
    pub const fn reading(self, _path: &Path) -> Self {
        self
    }

    /// Also what is below this directory, to read and to write.
    #[must_use]
    pub const fn writing(self, _path: &Path) -> Self {
        self
    }

    /// Also what is below this directory, to make files and to write to them, not to read them.
    #[must_use]
    pub const fn appending(self, _path: &Path) -> Self {
        self
    }

    /// Does nothing, and says so.
    pub const fn lock_in(&self) -> Result<Locked, Infallible> {
        Ok(Locked::No)
    }
}
