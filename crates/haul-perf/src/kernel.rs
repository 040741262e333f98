//! What is asked of the system besides sockets.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{congestion_of, name, processor_time, random, set_congestion};
#[cfg(windows)]
pub use windows::{congestion_of, name, processor_time, random, set_congestion};
