//! As they are.

/// Does nothing.
pub const fn sharpen_timers() {}
