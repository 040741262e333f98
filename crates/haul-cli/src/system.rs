//! What is the system's own: descriptors, users, standard streams, the status of another program.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{is_root, prepare, standard, status_of};
#[cfg(windows)]
pub use windows::{is_root, prepare, standard, status_of};
