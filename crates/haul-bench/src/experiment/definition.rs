//! What an experiment is.

use super::ground::Ground;
use super::report::Report;

/// A figure of the field, to be reproduced.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// As on the command line.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// Whose figure it reproduces.
    pub reproduces: &'static str,
    /// Makes the report in simulation; none: what it shows are sockets and firewalls.
    pub simulate: Option<fn(Scale) -> Report>,
    /// Makes the report on real sockets.
    pub measure: fn(Scale, &Ground<'_>) -> Report,
}

/// How much of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Enough to see that everything works, in seconds; the figures mean little.
    Quick,
    /// All of it.
    Full,
}

impl Scale {
    /// One thing or the other.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
