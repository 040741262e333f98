//! Datagrams beside the connections: what an application says from an endpoint's own port to others than peers, for instance to ask where it is seen.

use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haul_udp::Outgoing;

use super::marks::Marked;
use super::shared::Shared;

/// Datagrams that begin with a mark, sent from an endpoint's port and received there beside its connections. See [`crate::Endpoint::aside`].
pub struct Aside {
    shared: Weak<Shared>,
    received: Receiver<Marked>,
}

impl Aside {
    /// Has datagrams with this mark come here from now on.
    pub(crate) fn of(shared: &Arc<Shared>, mark: [u8; 8]) -> Self {
        Self { shared: Arc::downgrade(shared), received: shared.marks.want(mark) }
    }

    /// Sends a datagram, and loses it where the system takes none at present; false once the endpoint is gone.
    pub fn send(&self, to: SocketAddr, datagram: &[u8]) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let outgoing = Outgoing { to, from: None, ecn: 0, train: datagram, segment_bytes: datagram.len().max(1) };
        if let Err(error) = shared.socket.try_send(&outgoing) {
            tracing::debug!(%error, %to, "not sent");
        }
        true
    }

    /// The next datagram with the mark, and who has sent it; waited for so long.
    pub fn receive(&self, patience: Duration) -> Option<Marked> {
        self.received.recv_timeout(patience).ok()
    }
}
