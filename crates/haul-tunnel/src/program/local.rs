//! This program's ends of the streams: input that can be given up, for a terminal never ends by itself, and output.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::Local;
#[cfg(unix)]
pub(super) use unix::Output;
#[cfg(unix)]
pub(super) use unix::enlarge_pipe;
#[cfg(windows)]
pub use windows::Local;
