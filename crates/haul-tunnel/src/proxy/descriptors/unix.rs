//! `RLIMIT_NOFILE`.

use rustix::process::{Resource, getrlimit};

/// What this process may open.
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
