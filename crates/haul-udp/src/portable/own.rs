//! What the other systems have of their own: whole trains, and fragments forbidden.

#[cfg(not(windows))]
mod none;
#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
pub(super) use none::{LEAST_WAIT, allow_fragments, forbid_fragments, may_be_readable, send, takes_trains};
#[cfg(windows)]
pub(super) use windows::{LEAST_WAIT, allow_fragments, forbid_fragments, may_be_readable, send, takes_trains};
