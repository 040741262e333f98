//! How many descriptors there are.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::limit;
#[cfg(windows)]
pub(crate) use windows::limit;
