//! What a name is to the system, and whose home is where.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::os_str;
#[cfg(unix)]
pub(crate) use unix::{home_of, os_string};
#[cfg(windows)]
pub use windows::os_str;
#[cfg(windows)]
pub(crate) use windows::{home_of, os_string};
