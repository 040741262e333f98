//! The stores that this machine has: its own directories, and what only some systems reach.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Local, gfarm, make, pull, push, remove, rename, storage};
#[cfg(windows)]
pub(crate) use windows::{Local, gfarm, make, pull, push, remove, rename, storage};
