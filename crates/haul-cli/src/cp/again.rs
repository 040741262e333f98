//! When a copy that broke is worth another connection: the daemon at the other end was restarted, and both sides have kept what is needed to go on.
//!
//! A daemon that comes back answers the packets of connections that it no longer knows with a reset, so the client hears of it within a round trip. Time counts from
//! when the daemon was last heard.

use std::time::{Duration, Instant};

use haul::{CloseReason, Connection, ConnectionError};
use haul_copy::Job;
use haul_files::{CopyError, Destination, SourceSpec, Stop};
use haul_peer::{DaemonHost, Host};

use crate::clock;

/// A daemon to connect to again.
#[derive(Debug)]
pub struct Again<'a> {
    /// Which.
    pub host: &'a DaemonHost,
    /// Until when.
    pub deadline: Instant,
}

impl<'a> Again<'a> {
    /// Whether `job`, which has failed by `error` on `connection`, can go on over another one within `patience`.
    pub fn after(host: &'a Host, job: &Job, error: &CopyError, connection: &Connection, patience: Duration) -> Option<Self> {
        let Host::Daemon(host) = host else { return None };
        let end = connection.end();
        let is_gone =
            matches!(end, Some(ConnectionError::Ended(CloseReason::Reset | CloseReason::TimedOut(_)))) && is_unexplained(error);
        let was_stopped = matches!(error, CopyError::Refused(Stop::Interrupted));
        if !(is_gone || was_stopped) || !can_go_on(job) {
            return None;
        }
        let deadline = clock::now() + patience.saturating_sub(connection.stats().silence);
        (clock::now() < deadline).then_some(Self { host, deadline })
    }
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
