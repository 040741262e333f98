//! When a copy that broke can go on over another connection: both sides have kept what is needed.

use std::time::Duration;

use haul::Connection;
use haul_copy::Job;
use haul_files::{CopyError, Destination, SourceSpec, Stop};
use haul_peer::Host;

use crate::again::{Again, is_gone};

/// The daemon over which `job`, which has failed by `error` on `connection`, can go on within `patience`.
pub fn after<'a>(host: &'a Host, job: &Job, error: &CopyError, connection: &Connection, patience: Duration) -> Option<Again<'a>> {
    let was_stopped = matches!(error, CopyError::Refused(Stop::Interrupted));
    let breaks_off = was_stopped || is_gone(connection) && is_unexplained(error);
    if breaks_off && can_go_on(job) { Again::to(host, connection, patience) } else { None }
}

/// The connection ended, and not the copy for a reason of its own.
const fn is_unexplained(error: &CopyError) -> bool {
    matches!(error, CopyError::Connection(_))
}

/// What was read from a stream or written to one is gone, and a copy that is not to be resumed would begin again.
fn can_go_on(job: &Job) -> bool {
    match job {
        Job::Push(push) => push.options.resume && push.sources.iter().all(|source| matches!(source, SourceSpec::Path(_))),
        Job::Pull(pull) => pull.options.resume && matches!(pull.destination, Destination::Path(_)),
    }
}
