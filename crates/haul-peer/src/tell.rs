//! What there is to tell and to ask while a connection is made and used.

use std::io::{self, Write};
use std::time::Duration;

use haul::Fingerprint;

use crate::bootstrap::{Bootstrap, Sending};
use crate::carriage::GoesOver;
use crate::operand::{DaemonHost, SshHost};

/// What is to be told of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Nothing has come for `silence`; in `left` the connection is given up.
    Begun {
        /// So far.
        silence: Duration,
        /// From now on.
        left: Duration,
    },
    /// The other side is heard again.
    Ended {
        /// How long nothing came.
        lasted: Duration,
    },
}

/// Somebody who hears what happens meanwhile, a user at a terminal for instance. A program that has nobody to tell takes [`Nobody`].
pub trait Tell: Send + Sync {
    /// Where one ssh's standard error goes, as it comes: its own words, and what the far side prints there. They are a stranger's bytes: whatever shows them cleans them first.
    fn ssh_says(&self) -> Box<dyn Write + Send> {
        Box::new(io::sink())
    }

    /// The other side has fallen silent, or is heard again.
    fn outage(&self, _outage: Outage) {}

    /// Something else carries the connection from now on.
    fn goes_over(&self, _over: &GoesOver) {}

    /// ssh's connection alone is slow: so many logins are to carry the connection from now on.
    fn logs_in_again(&self, _host: &str, _logins: usize) {}

    /// The relay that was named does not help, for this reason.
    fn relay_fails(&self, _relay: &DaemonHost, _why: &str) {}

    /// Whether the key of a daemon that is met for the first time is to be trusted from now on; none: nobody can be asked, and it is not.
    fn trusts(&self, _host: &DaemonHost, _key: Fingerprint) -> Option<bool> {
        None
    }

    /// The far side has no haul of this version, which `why` says: what it is to get, if the user wants that. None: nobody can be asked, or does not want it.
    fn bootstraps(&self, _host: &SshHost, _why: &str) -> Option<Bootstrap> {
        None
    }

    /// A program is sent to the far side.
    fn sends(&self, _sending: &Sending<'_>) {}
}

/// Hears nothing, and trusts no key that is not known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Tell for Nobody {}
