//! The registry of a connection's incoming block streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_proto::{SinkFactory, StreamId};
use haul_units::Bytes;

use super::memory::BlockMemory;
use super::queue::Queue;
use super::sink::BlockSink;
use super::spares::Spares;

/// The queues of one connection's incoming block streams. Each connection has its own: the names of streams say nothing about whose they are.
#[derive(Clone)]
pub(crate) struct Queues {
    map: Arc<Mutex<HashMap<StreamId, Arc<Queue>>>>,
    memory: Arc<BlockMemory>,
}

impl Queues {
    /// None yet, for a connection that may use so much memory, and has these spare buffers.
    pub(crate) fn new(memory: Bytes, spares: Arc<Spares>) -> Self {
        Self { map: Arc::default(), memory: Arc::new(BlockMemory::new(memory, spares)) }
    }

    /// Makes the streams that the peer opens streams of blocks, each with a queue here.
    pub(crate) fn sinks(&self) -> SinkFactory {
        let queues = self.clone();
        SinkFactory::new(move |id| {
            let queue = Arc::new(Queue::new(queues.memory.clone()));
            queues.map().insert(id, queue.clone());
            Box::new(BlockSink::new(queue))
        })
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<Arc<Queue>> {
        self.map().get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: StreamId) {
        self.map().remove(&id);
    }

    /// The connection may use so much from now on.
    pub(crate) fn set_memory(&self, memory: Bytes) {
        self.memory.set_memory(memory);
    }

    /// The connection is over: what is complete can still be taken.
    pub(crate) fn connection_closed(&self) {
        self.map().values().for_each(|queue| queue.connection_closed());
    }

    fn map(&self) -> MutexGuard<'_, HashMap<StreamId, Arc<Queue>>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
