//! Orders for a command that runs, from `haul ctl`.

mod carried;
#[cfg(unix)]
mod job;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use carried::Carried;
#[cfg(unix)]
pub use job::Job;
#[cfg(unix)]
pub use unix::take;
#[cfg(windows)]
pub use windows::take;
