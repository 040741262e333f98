//! Telling systemd how the daemon does, where there is one.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::notify;
#[cfg(target_os = "linux")]
pub use linux::notify;
