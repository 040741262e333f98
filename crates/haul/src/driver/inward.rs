//! What comes by a carrier, and where it goes.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use haul_carrier::{Carrier, Side};

use super::receiving;
use super::shared::Shared;

/// A new carrier of an endpoint, and its address; `peer` is where the other end is, if that is known.
pub(super) fn carry(shared: &Arc<Shared>, peer: Option<SocketAddr>) -> (SocketAddr, Carrier) {
    shared.carriers.add(peer, |address| Carrier::new(Inward { shared: Arc::downgrade(shared), address }))
}

struct Inward {
    shared: Weak<Shared>,
    address: SocketAddr,
}

impl Side for Inward {
    fn deliver(&self, train: &mut [u8], segment_bytes: usize) {
        if let Some(shared) = self.shared.upgrade() {
            receiving::take_carried(&shared, self.address, train, segment_bytes);
        }
    }

    fn heard_over_udp(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| shared.carriers.has_heard_over_udp())
    }
}
