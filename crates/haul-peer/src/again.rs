//! When a connection that broke is worth another one: the daemon at the other end was restarted.
//!
//! A daemon that comes back answers the packets of connections that it no longer knows with a reset, so the client hears of it a round trip after it has sent something:
//! at once while it has data to send, and where the daemon was away for long within the two seconds between two probes. Time counts from when the daemon was last heard.

use std::fmt;
use std::time::{Duration, Instant};

use haul::Connection;

use crate::clock;
use crate::operand::DaemonHost;
use crate::reach::Host;

/// A daemon to connect to again, by [`Connector::connect_by`](crate::Connector::connect_by).
#[derive(Debug)]
pub struct Again<'a> {
    /// Which.
    pub host: &'a DaemonHost,
    /// Until when.
    pub deadline: Instant,
}

impl<'a> Again<'a> {
    /// To the daemon that `connection` was with, if the host is one, within `patience` of when it was last heard.
    pub fn to(host: &'a Host, connection: &Connection, patience: Duration) -> Option<Self> {
        let Host::Daemon(host) = host else { return None };
        let deadline = clock::now() + patience.saturating_sub(connection.stats().silence);
        (clock::now() < deadline).then_some(Self { host, deadline })
    }
}

/// What the user is told.
impl fmt::Display for Again<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.deadline.saturating_duration_since(clock::now()).as_secs();
        write!(f, "{}: the daemon was stopped or restarted: connecting again, for up to {seconds} s", self.host)
    }
}
