//! What happens, on its way to the driver.
//!
//! Each member may have a few messages wait for the driver, and then waits itself: the blocks that it sends need its connection's credit, so memory is bounded whatever the number of
//! members.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use haul_copy::PathView;
use haul_files::protocol::{Digest, Entry, Message, OrderEnd};
use haul_files::{CopyError, Delivery, FileProblem, Note, Report};
use haul_units::BitRate;

/// What happens.
pub(super) enum News<B> {
    /// A member can be worked with.
    Came(usize, Newcomer),
    /// It will not come.
    Absent(usize),
    /// Nobody comes any more.
    NoMore,
    Member(usize, Said<B>),
    /// The receiver of this process says something.
    Local(Message),
    /// It has ended.
    LocalOver(Result<Box<Report>, CopyError>),
    /// Somebody wants to stop.
    Woken,
}

/// What is known of a member that has come.
pub(super) struct Newcomer {
    pub(super) path: PathWatch,
    pub(super) doubt: Doubt,
    pub(super) limit: Option<BitRate>,
    /// The sources of the job, as they are named there.
    pub(super) sources: Vec<PathBuf>,
}

/// Tells how a path does.
pub(super) type PathWatch = Box<dyn Fn() -> PathView + Send + Sync>;

/// Tells whether there is a sign that a member is gone, which the connection does not know of yet.
pub(super) type Doubt = Box<dyn Fn() -> bool + Send + Sync>;

/// Messages of one member that wait for the driver: a block in hand and one to come for each of the two threads.
const MAX_WAITING: usize = 4;

/// What a member says.
pub(super) enum Said<B> {
    Entries(Vec<Entry>),
    /// Of what it says next, these files lie on other machines.
    Elsewhere(Vec<u64>),
    Listed,
    Problem(FileProblem),
    Note(Note),
    Ended(Vec<OrderEnd>),
    Digests(Vec<Digest>),
    /// So many names were left out there.
    LeftOut(u64),
    Delivered(Delivery<B>),
    /// The session is over.
    Over(Result<(), CopyError>),
}

/// Holds a member back.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<Passing>,
    changed: Condvar,
}

#[derive(Default)]
struct Passing {
    waiting: usize,
    closed: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Passing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message is on its way; waits for room.
    pub(super) fn enter(&self) -> Result<(), CopyError> {
        let mut passing = self.lock();
        while passing.waiting >= MAX_WAITING && !passing.closed {
            passing = self.changed.wait(passing).unwrap_or_else(PoisonError::into_inner);
        }
        if passing.closed {
            return Err(CopyError::Cancelled);
        }
        passing.waiting += 1;
        Ok(())
    }

    /// The driver has taken a message.
    pub(super) fn leave(&self) {
        self.lock().waiting -= 1;
        self.changed.notify_all();
    }

    /// The driver takes no more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_never_has_more_waiting_than_it_may() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..500).for_each(|_| gate.enter().expect("open")));
            let mut left = 0;
            while left < 500 {
                let waiting = gate.lock().waiting;
                assert!(waiting <= MAX_WAITING);
                if waiting > 0 {
                    gate.leave();
                    left += 1;
                }
            }
            // One that waits when the driver stops taking is let go.
            (0..MAX_WAITING).for_each(|_| gate.enter().expect("room"));
            let held = scope.spawn(|| gate.enter());
            gate.close();
            assert!(held.join().expect("no panic").is_err());
        });
    }
}
