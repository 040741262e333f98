//! A second lock within the first: whoever serves a client checks its paths itself. On Linux it is Landlock.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Locked, Open};
#[cfg(target_os = "linux")]
pub use linux::{Locked, Open};
