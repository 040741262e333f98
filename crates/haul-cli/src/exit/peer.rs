//! haul-peer's errors, for people.

use std::fmt;

use haul_peer::{Connected, ReachError, Refusal};
use haul_units::PeerText;

use super::Failure;

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}

/// What becomes of a client here, told to it.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { error: failure.message.into(), hint: failure.hint.map(PeerText::from) }
    }
}

/// A refusal as the failure of what was asked of `host`.
pub fn refused(host: &dyn fmt::Display, refusal: &Refusal) -> Failure {
    Failure { message: format!("{host}: {refusal}"), hint: refusal.hint.clone().map(String::from) }
}

/// Why something failed over a connection: for this reason, unless the connection itself has a better one.
pub fn explained(connected: &Connected, failure: Failure) -> Failure {
    connected.cause().map_or(failure, Failure::from)
}
