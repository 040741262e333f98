//! What came of a case.

use std::time::Duration;

use super::cases::Case;
use crate::bench::Series;

/// A case that has been run.
#[derive(Debug)]
pub struct Seen {
    pub case: Case,
    /// What arrived when, by haul flow.
    pub series: Vec<Series>,
    /// What the constant flow met.
    pub constant: Option<Constant>,
}

/// What a constant flow met.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// Part of its packets lost.
    pub loss: f64,
    /// Mean interarrival jitter (RFC 3550).
    pub jitter: Duration,
}
