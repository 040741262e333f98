//! Calls for the thread that looks after several connections.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use haul_proto::ConnectionId;
use haul_units::Time;

use crate::clock;

/// Where links call the porter.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pending: Mutex<Pending>,
    alarm: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    /// Who has something to do.
    from: Vec<ConnectionId>,
    stopped: bool,
}

impl Calls {
    /// A connection has something to do.
    pub(super) fn call(&self, id: ConnectionId) {
        self.pending().from.push(id);
        self.alarm.notify_one();
    }

    /// The endpoint is no more.
    pub(super) fn stop(&self) {
        self.pending().stopped = true;
        self.alarm.notify_one();
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for calls, until a time at most; `None` when there will be none.
    pub(super) fn wait(&self, until: Time) -> Option<Vec<ConnectionId>> {
        let mut pending = self.pending();
        loop {
            if pending.stopped {
                return None;
            }
            let left = until.since(clock::now());
            if !pending.from.is_empty() || left.is_zero() {
                return Some(std::mem::take(&mut pending.from));
            }
            pending = if until == Time::NEVER {
                self.alarm.wait(pending).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.alarm.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }
}
