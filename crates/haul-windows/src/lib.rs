//! Files of Windows: which names they can have, and directories of that system as a [`Store`](https://docs.rs/haul-files).
//!
//! | | |
//! |---|---|
//! | [`names`] | which names a file can have there; known everywhere |
//! | `Local` | directories of this machine, where it runs Windows |
//!
//! haul-files has the directories of Unix. What is promised there holds here: everything is made or opened below a directory that is held open (`NtCreateFile` with a `RootDirectory`), one
//! component at a time, and no symbolic link, junction or mount point is followed; a file gets its name at once, by a rename, after its content was flushed. What differs:
//!
//! - A name that no file can have, and one that differs from another only in case, is an error of that file.
//! - There are no modes, owners or links: those are left out, and a link is an error of that link. Access control lists are what the directory passes on, times are kept to 100 ns.
//! - The stage is hidden, and as private as the directory that it is in: a list of its own would stay with each file that is renamed out of it.

pub mod names;

#[cfg(windows)]
mod at;
#[cfg(windows)]
mod file;
#[cfg(windows)]
mod handle;
#[cfg(windows)]
mod listing;
#[cfg(windows)]
mod local;
#[cfg(windows)]
mod metadata;
#[cfg(windows)]
mod stage;

#[cfg(windows)]
pub use at::Directory;
#[cfg(windows)]
pub use file::File;
#[cfg(windows)]
pub use local::{Local, Top};
#[cfg(windows)]
pub use stage::Stage;

#[cfg(windows)]
#[cfg(test)]
mod tests;
