//! systemd's journal, where it can be.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::Journal;
#[cfg(windows)]
pub use windows::Journal;
