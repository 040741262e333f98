//! How many connections a process may have open.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::descriptors;
#[cfg(windows)]
pub use windows::descriptors;
