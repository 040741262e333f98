//! Numbers of the system's errors, which cross the network as Linux has them: where the system has others, they are translated.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{Errno, text};
#[cfg(windows)]
pub use windows::{Errno, text};
