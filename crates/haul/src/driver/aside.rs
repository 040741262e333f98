//! Datagrams beside the connections: what an application says from an endpoint's own port to others than peers, for instance to ask where it is seen.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use haul_udp::Outgoing;

use super::shared::Shared;

/// How many may wait for the application; what comes beyond is lost.
const WAITING: usize = 64;
/// The longest that is taken, in bytes.
const LONGEST: usize = 1280;

type Marked = (SocketAddr, Vec<u8>);

/// Datagrams that begin with a mark, sent from an endpoint's port and received there beside its connections. See [`crate::Endpoint::aside`].
pub struct Aside {
    shared: Weak<Shared>,
    received: Receiver<Marked>,
}

impl Aside {
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

/// Who wants datagrams of which mark.
#[derive(Default)]
pub(super) struct Marks {
    by: Mutex<Option<([u8; 8], SyncSender<Marked>)>>,
    /// Anybody does.
    wanted: AtomicBool,
}

impl Marks {
    /// From now on, in the place of whoever did before.
    pub(super) fn want(&self, shared: Weak<Shared>, mark: [u8; 8]) -> Aside {
        let (give, received) = sync_channel(WAITING);
        self.wanted.store(true, Ordering::Relaxed);
        *self.by.lock().unwrap_or_else(PoisonError::into_inner) = Some((mark, give));
        Aside { shared, received }
    }

    /// How much of a train is for the connections: the system makes a train of whatever one sender has sent, and what has a mark may be the last of it.
    pub(super) fn cut(&self, from: SocketAddr, train: &[u8], segment_bytes: usize) -> usize {
        if !self.wanted.load(Ordering::Relaxed) {
            return train.len();
        }
        let last = train.chunks(segment_bytes.max(1)).next_back().unwrap_or_default();
        let is_taken = last.len() < train.len() && self.take(from, last);
        train.len() - if is_taken { last.len() } else { 0 }
    }

    /// Whether a datagram is for whoever wants it: then it has it, if there was room.
    pub(super) fn take(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let marks = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, give)) = marks.as_ref().filter(|(mark, _)| datagram.starts_with(mark)) else { return false };
        if datagram.len() <= LONGEST {
            let _ = give.try_send((from, datagram.to_vec()));
        }
        true
    }
}
