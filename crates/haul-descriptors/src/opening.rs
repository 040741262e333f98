//! Opening, where a descriptor may have to be waited for.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{is_none_left, open_at, patiently, promptly};
#[cfg(windows)]
pub use windows::{is_none_left, promptly};
