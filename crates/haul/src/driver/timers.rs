//! Timers as exact as the system makes them.

#[cfg(not(any(target_os = "linux", windows)))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", windows)))]
pub use elsewhere::sharpen_timers;
#[cfg(target_os = "linux")]
pub use linux::sharpen_timers;
#[cfg(windows)]
pub use windows::sharpen_timers;
