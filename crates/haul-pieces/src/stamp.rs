//! Times of files.

use serde::{Deserialize, Serialize};

/// Seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// Seconds.
    pub secs: i64,
    /// 0..1_000_000_000.
    pub nanos: u32,
}
