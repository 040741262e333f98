//! What connections are held to.

use haul_units::Network;
use serde::{Deserialize, Serialize};

use crate::network::{EVERYTHING, mapped};

/// Connections that are held to a rate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceClass {
    /// To and from where; without it, everywhere. The longest network that holds an address counts.
    pub to: Option<Network>,
    /// Bits a second on the line, with headers and what Ethernet adds; 0: none is set.
    pub bits_per_s: u64,
    /// Not more than a window each round trip.
    pub follows: bool,
}

impl PaceClass {
    /// Its network, as the tables of the programs have it.
    pub(crate) fn key(&self) -> Vec<u8> {
        let (address, bits) = mapped(self.to.unwrap_or(EVERYTHING));
        [&bits.to_ne_bytes()[..], &address].concat()
    }
}

/// Those that have a rate, and which of all they are.
pub(crate) fn with_rates(classes: &[PaceClass]) -> impl Iterator<Item = (&PaceClass, u32)> {
    classes.iter().zip(0..).filter(|(class, _)| class.bits_per_s > 0)
}
