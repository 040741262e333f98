//! File descriptors, of which a process has only so many for all of its copies.
//!
//! What can be opened again is kept open on a [`Shelf`]: directories, part files. All shelves of the process together hold at most half of what it
//! may open, each an equal part, so one client's tree does not leave another client without. Where no descriptor is left all the same,
//! [`patiently`] closes what is on the shelves and waits for others to end, before it fails.
//!
//! ```
//! use std::sync::Arc;
//! use haul_descriptors::{Shelf, open_at};
//! use rustix::fs::{CWD, Mode, OFlags};
//!
//! let shelf = Shelf::new();
//! shelf.keep(7, Arc::new(open_at(CWD, "/", OFlags::DIRECTORY | OFlags::PATH, Mode::empty())?));
//! // Closed meanwhile, it is opened again.
//! let root = shelf.get(7).map_or_else(|| open_at(CWD, "/", OFlags::PATH, Mode::empty()).map(Arc::new), Ok)?;
//! # drop(root);
//! # Ok::<(), rustix::io::Errno>(())
//! ```

mod limit;
mod opening;
mod shelf;

#[cfg(unix)]
pub use opening::{is_none_left, open_at, patiently, promptly};
#[cfg(windows)]
pub use opening::{is_none_left, promptly};
pub use shelf::Shelf;
