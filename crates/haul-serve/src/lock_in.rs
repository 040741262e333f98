//! A second lock within the first: whoever serves a client checks its paths itself. On Linux it is Landlock.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Open;
#[cfg(target_os = "linux")]
pub use linux::Open;

/// What came of it, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// By all rules.
    Fully,
    /// By those that this kernel has.
    Partly,
    /// Not at all: this system has no such lock.
    No,
}
