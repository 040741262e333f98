//! What the other systems have of their own: whole trains, and fragments forbidden.

#[cfg(not(windows))]
mod none;
#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
pub(super) use none::{allow_fragments, forbid_fragments, send, takes_trains};
#[cfg(windows)]
pub(super) use windows::{allow_fragments, forbid_fragments, send, takes_trains};
