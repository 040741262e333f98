//! What is known of a path before its first packet.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::Learned;

/// What a controller is told about its path at the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathStart {
    /// When.
    pub now: Time,
    /// A full packet, UDP payload.
    pub packet: Bytes,
    /// Seed of whatever the controller draws by chance.
    pub seed: u64,
    /// Round-trip time of the handshake.
    pub rtt: Option<Duration>,
    /// What the controller before knew about this very path, when a live connection changes its controller: it holds.
    pub learned: Option<Learned>,
    /// What an earlier connection to the same host learned: it may no longer hold.
    pub remembered: Option<Learned>,
    /// Another path of the connection carries so much already: this one does not look for its rate by doubling, at its expense.
    pub joins: Option<BitRate>,
}

impl PathStart {
    /// A path about which nothing is known.
    pub const fn new(now: Time, packet: Bytes, seed: u64) -> Self {
        Self { now, packet, seed, rtt: None, learned: None, remembered: None, joins: None }
    }

    /// The window that fills the path, if its controller before has found it: slow start has nothing to look for.
    pub fn learned_window(&self) -> Option<Bytes> {
        // MinPipeCwnd of draft-ietf-ccwg-bbr.
        self.learned.map(|learned| learned.window().max(self.packet * 4))
    }
}
