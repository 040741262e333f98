//! Which law of haul's TCP gets.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::TcpMode;
#[cfg(windows)]
pub use windows::TcpMode;
