//! What this process gives to the files that it makes.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::umask;
#[cfg(unix)]
pub(crate) use unix::user;
#[cfg(windows)]
pub use windows::umask;
#[cfg(windows)]
pub(crate) use windows::user;
