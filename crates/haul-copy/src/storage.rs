//! What is told of the servers behind a store.

use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// Storage servers behind a place of which it tells at most.
#[cfg_attr(windows, expect(dead_code, reason = "there it tells of none"))]
pub(crate) const MAX_STORAGE: usize = 64;

/// A storage server behind a place: what `gfhost -l` and `gfdf` tell of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageReport {
    /// Its name.
    pub host: PeerText,
    /// Its kind of machine.
    pub architecture: PeerText,
    /// Its processors.
    pub processors: u32,
    /// How many processes wanted a processor, over the last minute; none where it does not answer.
    pub load1: Option<f64>,
    /// What may still be written there, in bytes; none where that is not known.
    pub free_bytes: Option<u64>,
    /// That and what is in use.
    pub total_bytes: Option<u64>,
}
