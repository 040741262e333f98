//! What this process gives to the files that it makes.

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(windows, path = "process/windows.rs")]
mod system;

pub use system::{umask, user};
