//! What the rest asks of the system, in one file for each.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::os_str;
#[cfg(unix)]
pub(crate) use unix::{SSH_SETTINGS, config_dir, is_path_here, local_minute, lock, make_private, memory_bytes, private, ssh};
#[cfg(windows)]
pub use windows::os_str;
#[cfg(windows)]
pub(crate) use windows::{SSH_SETTINGS, config_dir, is_path_here, local_minute, lock, make_private, memory_bytes, private, ssh};
