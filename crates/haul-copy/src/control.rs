//! A copy that takes orders while it runs: how it does, how fast it may go, wait, go on, end.

use std::sync::{Arc, Mutex, PoisonError};

use haul_control::{Controlled, Order, Status};
use haul_files::Wishes;
use haul_units::BitRate;

use crate::clock;
use crate::tally::Tally;

/// What its user holds of a copy.
pub struct CopyControl {
    what: String,
    began: u64,
    tally: Arc<Tally>,
    wishes: Mutex<Wishes>,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl CopyControl {
    /// Of a copy that was called with `what` and begins with this limit; `stop` asks it to end.
    pub fn new(what: String, tally: Arc<Tally>, limit: Option<BitRate>, stop: impl Fn() + Send + Sync + 'static) -> Self {
        let wishes = Mutex::new(Wishes { limit, paused: false });
        Self { what, began: clock::unix_seconds(), tally, wishes, stop: Box::new(stop) }
    }

    /// What is wanted at this moment, for the engine.
    pub fn wishes(&self) -> Wishes {
        *self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controlled for CopyControl {
    fn handle(&self, order: Order) -> Status {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        match order {
            Order::Status => {}
            Order::Limit { bps } => wishes.limit = bps.map(BitRate::from_bps),
            Order::Pause => wishes.paused = true,
            Order::Resume => wishes.paused = false,
            Order::Stop => {
                // One that waits could not end.
                wishes.paused = false;
                (self.stop)();
            }
        }
        let counts = self.tally.counts();
        Status {
            pid: std::process::id(),
            what: self.what.as_str().into(),
            began: self.began,
            files: counts.arrived_files,
            bytes: counts.arrived.as_u64(),
            total: counts.found.as_u64(),
            limit_bps: wishes.limit.map(BitRate::as_bps),
            paused: wishes.paused,
        }
    }
}
