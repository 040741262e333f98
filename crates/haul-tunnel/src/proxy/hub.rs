//! What all connections of one side share: who may go where, how many there may be, and who hears of them.

use std::sync::Arc;
use std::time::Duration;

use haul_peer::Target;
use haul_units::Cancel;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::descriptors::descriptors;
use super::error::ThreadsError;
use super::observer::{Event, Observer};
use super::policy::Policy;

/// TCP connections of one side at once, unless it is said: as many as a connection may have streams (16,384), less some that are ending.
pub const MOST_CONNECTIONS: u32 = 16_000;
/// Threads that move bytes, at most: each TCP connection is a task.
const MOST_THREADS: usize = 4;
/// Threads that resolve names, at most.
const MOST_RESOLVERS: usize = 32;
/// Descriptors besides those of the connections.
const OTHER_FILES: u64 = 64;
/// How long connections may take to be reset in the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// One side.
pub struct Hub {
    /// Where the other side's streams may go.
    pub policy: Policy,
    /// Targets that the other side knows by number.
    pub numbered: Vec<Target>,
    observer: Arc<dyn Observer>,
    slots: Arc<Semaphore>,
    most: u32,
}

/// A connection's place among those that may be open.
pub type Slot = OwnedSemaphorePermit;

impl Hub {
    /// A side with room for so many connections, or as many as the system has files for.
    pub fn new(policy: Policy, numbered: Vec<Target>, observer: Arc<dyn Observer>, most: u32) -> Arc<Self> {
        let most = room_for(most, &*observer);
        Arc::new(Self { policy, numbered, observer, slots: Arc::new(Semaphore::new(most as usize)), most })
    }

    /// Tells of something.
    pub fn tell(&self, event: Event<'_>) {
        self.observer.event(event);
    }

    /// Waits for a place.
    pub async fn slot(&self) -> Slot {
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(slot) => slot,
            // Nobody closes the semaphore.
            Err(_) => std::future::pending().await,
        }
    }

    /// A place, if there is one.
    pub fn slot_now(&self) -> Option<Slot> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// How many there may be.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Ends those who attend to ports, and waits until the ports are closed and all connections gone.
    pub async fn left_by(&self, attending: Vec<JoinHandle<()>>) {
        attending.iter().for_each(JoinHandle::abort);
        for task in attending {
            // Its listener goes with it.
            let _ = task.await;
        }
        self.emptied().await;
    }

    /// Waits until all connections are gone, for a while: who ends before they are reset makes them look finished.
    pub async fn emptied(&self) {
        let _ = timeout(FAREWELL, self.slots.acquire_many(self.most)).await;
    }
}

/// What runs the connections.
pub fn runtime() -> Result<Runtime, ThreadsError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let built = Builder::new_multi_thread().worker_threads(threads).max_blocking_threads(MOST_RESOLVERS).enable_all().build();
    built.map_err(ThreadsError)
}

/// Waits until the work is to stop.
pub async fn cancelled(cancel: &Cancel) {
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let _hook = cancel.on_cancel(move || stop.notify_one());
    stopped.notified().await;
}

/// How many of so many connections the process may have a descriptor for, each. Who ran out of descriptors could neither accept a connection nor turn it away.
fn room_for(most: u32, observer: &dyn Observer) -> u32 {
    let files = descriptors();
    let enough_for = u32::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(u32::MAX).clamp(1, most);
    if enough_for < most {
        observer.event(Event::TooFewFiles { files, enough_for, most });
    }
    enough_for
}
