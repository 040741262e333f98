//! What a user should know of a copy although nothing is wrong with it: no problem, no effect on the exit status.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many notes one side of a copy passes on: each is told once, or once a file, and a peer must not fill a terminal with them.
pub const MAX_NOTES: usize = 100;

/// A word on a copy; crosses the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Note {
    /// The receiving side does not let its clients choose owners or set-id bits, and this copy has some. Told once.
    OwnersNotKept,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnersNotKept => f.write_str("set-id bits and owners are not kept there"),
        }
    }
}
