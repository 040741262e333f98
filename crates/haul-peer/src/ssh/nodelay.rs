//! What can be done for ssh's connection, and seen of it, from without: on Linux.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::NoDelay;
#[cfg(target_os = "linux")]
pub use linux::NoDelay;
