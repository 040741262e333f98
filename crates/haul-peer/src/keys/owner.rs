//! Whose a file is, and what others may do with it: on Unix its owner and mode say so.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{check, identity, open_for_reading};
#[cfg(windows)]
pub(super) use windows::{check, identity, open_for_reading};

/// Mode bits of others: to write.
pub(super) const WRITE: u32 = 0o022;
/// Mode bits of others: anything.
pub(super) const ANY: u32 = 0o077;
