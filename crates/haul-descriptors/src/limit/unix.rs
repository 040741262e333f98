//! As many as `RLIMIT_NOFILE` says.

use rustix::process::{Resource, getrlimit};

/// What the process may open.
pub(crate) fn limit() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
