//! The stores that this machine has: its own directories, and what only some systems reach.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use haul_files::{CopyError, Stop};
use haul_units::PeerText;

#[cfg(unix)]
pub(crate) use unix::{Local, gfarm, make, pull, remove, rename, storage};
#[cfg(windows)]
pub(crate) use windows::{Local, gfarm, make, pull, remove, rename, storage};

/// A store that cannot be used, and why.
pub(crate) fn unavailable(why: &str) -> CopyError {
    CopyError::Stopped(Stop::Unavailable(PeerText::from(why)))
}
