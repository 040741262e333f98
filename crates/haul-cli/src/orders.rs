//! Orders for a copy that runs, from `haul ctl`.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::take;
#[cfg(windows)]
pub use windows::take;
