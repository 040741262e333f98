//! Whole copies through the in-memory transport: trees, resuming, hostile peers.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod changing;
mod digests;
mod early;
mod excluded;
mod extended;
mod fed;
mod fixture;
mod hostile;
mod interrupted;
mod limits;
mod mirrored;
mod mounted;
mod objects;
mod options;
mod orders;
mod patterns;
mod progress;
mod replaced;
mod resume;
mod rsync;
mod stores;
mod strangers;
mod trees;
mod unsized_files;
mod verify;
