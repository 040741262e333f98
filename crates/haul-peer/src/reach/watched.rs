//! A connection whose ways are looked after, as its user sees it: what carries it by now, and how much of it a relay has.

use std::sync::{Arc, Mutex, PoisonError};

use haul::{Bytes, Connection};
use haul_units::Cancel;

use crate::carriage::{Carrying, Relayed};
use crate::operand::DaemonHost;

/// A connection that is looked after; dropped, it is no longer.
pub(super) struct Watched {
    dropped: Cancel,
    now: Arc<Mutex<Now>>,
}

/// What carries a connection.
pub(super) struct Now {
    pub(super) carrying: Carrying,
    pub(super) relay: Option<Relaying>,
}

/// A relay that does.
pub(super) struct Relaying {
    by: DaemonHost,
    /// What the connection had moved before.
    before_bytes: u64,
    /// Keeps the relay's pair.
    _kept: Box<dyn Send>,
}

impl Relaying {
    /// From now on, by a relay whose pair lasts as long as what is `kept`.
    pub(super) fn from_now(by: DaemonHost, connection: &Connection, kept: Box<dyn Send>) -> Self {
        Self { by, before_bytes: moved_bytes(connection), _kept: kept }
    }
}

impl Watched {
    /// One that cancels `dropped` at its end.
    pub(super) const fn new(dropped: Cancel, now: Arc<Mutex<Now>>) -> Self {
        Self { dropped, now }
    }

    /// What carries the connection.
    pub(super) fn carrying(&self) -> Carrying {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).carrying
    }

    /// What a relay has carried, if one does.
    pub(super) fn relayed(&self, connection: &Connection) -> Option<Relayed> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let relay = now.relay.as_ref()?;
        Some(Relayed { by: relay.by.clone(), bytes: Bytes(moved_bytes(connection).saturating_sub(relay.before_bytes)) })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.dropped.cancel();
        // The relay hears of the end before this program may have ended.
        let relay = self.now.lock().unwrap_or_else(PoisonError::into_inner).relay.take();
        drop(relay);
    }
}

/// UDP payload, both ways.
fn moved_bytes(connection: &Connection) -> u64 {
    let stats = connection.stats();
    stats.sent.as_u64() + stats.received.as_u64()
}
