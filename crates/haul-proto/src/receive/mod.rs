//! The receiving half of a path: which packets came, and when to report them.

mod report;
mod window;

pub use report::{Ecn, Reporter};
pub use window::PacketWindow;
