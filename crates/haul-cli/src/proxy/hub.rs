//! What all connections of one side share: who may go where, how many there may be, and who hears of them.

use std::sync::Arc;
use std::time::Duration;

use haul_peer::Target;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::policy::Policy;
use super::report::Report;
use crate::exit::Failure;
use crate::interrupt;

/// Threads that move bytes, at most: each TCP connection is a task.
const MOST_THREADS: usize = 4;
/// Threads that resolve names, at most.
const MOST_RESOLVERS: usize = 32;
/// Descriptors besides those of the connections.
const OTHER_FILES: u64 = 64;
/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long connections may take to be reset in the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// One side.
pub struct Hub {
    /// Where the other side's streams may go.
    pub policy: Policy,
    /// Targets that the other side knows by number.
    pub numbered: Vec<Target>,
    /// Who hears of connections.
    pub report: Report,
    slots: Arc<Semaphore>,
    most: u32,
}

/// A connection's place among those that may be open.
pub type Slot = OwnedSemaphorePermit;

impl Hub {
    /// A side with room for so many connections, or as many as the system has files for.
    pub fn new(policy: Policy, numbered: Vec<Target>, report: Report, most: u32) -> Arc<Self> {
        let most = raise_file_limit(most);
        Arc::new(Self { policy, numbered, report, slots: Arc::new(Semaphore::new(most as usize)), most })
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

    /// Waits until all connections are gone, for a while: who ends before they are reset makes them look finished.
    pub async fn emptied(&self) {
        let _ = timeout(FAREWELL, self.slots.acquire_many(self.most)).await;
    }
}

/// What runs the connections.
pub fn runtime() -> Result<Runtime, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let built = Builder::new_multi_thread().worker_threads(threads).max_blocking_threads(MOST_RESOLVERS).enable_all().build();
    built.map_err(|error| Failure::new(format!("no threads to serve connections with: {error}")))
}

/// Waits until somebody asks the program to end.
pub async fn interrupted() {
    while !interrupt::requested() {
        sleep(LOOK).await;
    }
}

/// Lets the process have a descriptor for each connection, as far as the system does; says how many connections it is enough for. Who ran out of
/// descriptors could neither accept a connection nor turn it away.
fn raise_file_limit(connections: u32) -> u32 {
    let wanted = u64::from(connections) + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let mut files = current.unwrap_or(wanted);
    if files < raised {
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
            Ok(()) => files = raised,
            Err(error) => tracing::debug!(%error, "the limit of open files stays"),
        }
    }
    let enough_for = u32::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(u32::MAX).clamp(1, connections);
    if enough_for < connections {
        tracing::warn!(
            "the system lets this process have {files} files: {enough_for} connections at once instead of {connections}; \
             raise the hard limit (ulimit -Hn, LimitNOFILE= of a systemd unit), or lower --max-connections"
        );
    }
    enough_for
}
