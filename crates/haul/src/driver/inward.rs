//! What comes by a carrier, and where it goes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use haul_carrier::{Carrier, Side};
use haul_udp::Outgoing;

use super::receiving;
use super::shared::Shared;

/// A new carrier of an endpoint, and its address; `peer` is where the other end is, if that is known.
pub(super) fn carry(shared: &Arc<Shared>, peer: Option<SocketAddr>) -> (SocketAddr, Carrier) {
    shared
        .carriers
        .add(peer, |address| Carrier::new(Inward { shared: Arc::downgrade(shared), address, calls: AtomicU32::new(0) }))
}

/// What is sent where a client wants to be called back: it is no packet, and dropped there. Two, for one may be lost.
const CALL: [u8; 2] = [0; 2];
/// A client tries that when UDP falls silent, and whoever wants it more often wants something else.
const MAX_CALLS: u32 = 100;

struct Inward {
    shared: Weak<Shared>,
    address: SocketAddr,
    /// How often the peer has been called back.
    calls: AtomicU32,
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

    /// Only where the carrier itself comes from: nobody can have somebody else sent anything.
    fn call_back(&self, port: u16) {
        let Some(shared) = self.shared.upgrade().filter(|shared| shared.accepts()) else { return };
        let peer = shared.carriers.resolve(self.address);
        if peer == self.address || self.calls.fetch_add(1, Ordering::Relaxed) >= MAX_CALLS {
            return;
        }
        let to = SocketAddr::new(peer.ip(), port);
        let sent = shared.socket.send(&Outgoing { to, from: None, ecn: 0, train: &CALL, segment_bytes: 1 });
        tracing::debug!(%to, ?sent, "called back");
    }
}
