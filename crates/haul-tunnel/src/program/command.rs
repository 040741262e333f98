//! Running a command for a client: its standard streams are the tunnel's.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::serve;
#[cfg(windows)]
pub use windows::serve;
