//! What is the system's own: descriptors, users, standard streams, the status of another program.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{call_this_haul, is_root, is_stdout_gone, prepare, standard, status_of};
#[cfg(windows)]
pub use windows::{call_this_haul, is_root, is_stdout_gone, prepare, standard, status_of};
