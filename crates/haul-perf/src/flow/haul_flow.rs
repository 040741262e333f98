//! Flows over haul: streams of blocks of one connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use haul::{BlockReceiver, BlockSender, Connection, ConnectionError, Distributions, SharedBytes, StreamError};

use super::turns::{Turn, Turns};
use super::{Event, Events, Flow, Portions, Quota, incompressible};
use crate::plan::Plan;
use crate::sample::PathSample;

/// Sends blocks.
pub struct HaulSender {
    connection: Connection,
    streams: Vec<Arc<Outgoing>>,
    turns: Arc<Turns>,
    stopped: Arc<AtomicBool>,
}

/// One stream.
struct Outgoing {
    blocks: BlockSender,
    /// Bytes handed to the transport: all have left once the transport has forgotten the stream.
    written: AtomicU64,
}

impl HaulSender {
    /// Opens the streams and starts to send.
    pub fn start(connection: &Connection, plan: &Plan, events: &Events) -> Result<Self, ConnectionError> {
        let stopped = Arc::new(AtomicBool::new(false));
        let quota = Arc::new(Quota::new(plan));
        let source = SharedBytes::from(incompressible(plan.block()));
        let mut streams = Vec::new();
        for _ in 0..plan.streams {
            streams.push(Arc::new(Outgoing { blocks: connection.open_blocks()?, written: AtomicU64::new(0) }));
        }
        let turns = Arc::new(Turns::new(streams.len()));
        for (index, stream) in streams.iter().enumerate() {
            let turns = Arc::clone(&turns);
            let (stream, source, events) = (Arc::clone(stream), source.clone(), events.clone());
            let portions = Portions::new(&quota, plan, &stopped);
            let stopped = Arc::clone(&stopped);
            thread::spawn(move || {
                let sent = stream.send(&source, portions, &turns.of(index), &stopped);
                let event = match sent {
                    Err(_) if stopped.load(Ordering::Acquire) => return,
                    // A receiver that stops the stream has measured enough.
                    Ok(()) | Err(StreamError::Stopped { .. }) => Event::StreamEnded,
                    Err(error) => Event::Failed(error.to_string()),
                };
                let _ = events.send(event);
            });
        }
        Ok(Self { connection: connection.clone(), streams, turns, stopped })
    }
}

impl Outgoing {
    fn send(
        &self,
        source: &SharedBytes,
        mut portions: Portions,
        turn: &Turn<'_>,
        stopped: &AtomicBool,
    ) -> Result<(), StreamError> {
        while let Some(len) = portions.next(source.len()) {
            turn.next();
            // The same memory again and again, as iperf3 does: what is measured is the network, not the memory of the host.
            self.blocks.send(source.slice(..len))?;
            self.written.fetch_add(len as u64, Ordering::Relaxed);
        }
        if stopped.load(Ordering::Acquire) { Ok(()) } else { self.blocks.finish() }
    }
}

impl Flow for HaulSender {
    fn bytes(&self) -> Vec<u64> {
        let sent = |stream: &Arc<Outgoing>| stream.blocks.sent().unwrap_or_else(|| stream.written.load(Ordering::Relaxed));
        self.streams.iter().map(sent).collect()
    }

    fn paths(&self) -> Vec<PathSample> {
        vec![PathSample::of(&self.connection)]
    }

    fn distributions(&self) -> Option<Distributions> {
        Some(self.connection.distributions())
    }

    fn congestion(&self) -> Option<String> {
        Some(self.connection.stats().controller.algorithm.to_owned())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.turns.end();
        self.streams.iter().for_each(|stream| stream.blocks.reset(0));
    }
}

/// Receives blocks and drops them.
pub struct HaulReceiver {
    connection: Connection,
    streams: Arc<Mutex<Vec<Option<BlockReceiver>>>>,
    stopped: Arc<AtomicBool>,
}

impl HaulReceiver {
    /// Waits for the streams, in threads of their own.
    pub fn start(connection: &Connection, plan: &Plan, events: &Events) -> Self {
        let streams = Arc::new(Mutex::new(vec![None; plan.streams.into()]));
        let stopped = Arc::new(AtomicBool::new(false));
        for _ in 0..plan.streams {
            let (connection, events) = (connection.clone(), events.clone());
            let (streams, stopped) = (Arc::clone(&streams), Arc::clone(&stopped));
            thread::spawn(move || {
                let received = receive(&connection, &streams, &events);
                if !stopped.load(Ordering::Acquire) {
                    let _ = events.send(match received {
                        // Whether a sender that gives up is a failure is for the sender to say.
                        Ok(()) | Err(StreamError::Reset { .. }) => Event::StreamEnded,
                        Err(error) => Event::Failed(error.to_string()),
                    });
                }
            });
        }
        Self { connection: connection.clone(), streams, stopped }
    }
}

fn receive(connection: &Connection, streams: &Mutex<Vec<Option<BlockReceiver>>>, events: &Events) -> Result<(), StreamError> {
    let blocks = connection.accept_blocks()?;
    let _ = events.send(Event::Begin);
    if let Some(place) = streams.lock().unwrap_or_else(PoisonError::into_inner).get_mut(blocks.id().index() as usize) {
        *place = Some(blocks.clone());
    }
    while blocks.recv()?.is_some() {}
    Ok(())
}

impl Flow for HaulReceiver {
    fn bytes(&self) -> Vec<u64> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().map(|stream| stream.as_ref().map_or(0, BlockReceiver::received)).collect()
    }

    fn distributions(&self) -> Option<Distributions> {
        Some(self.connection.distributions())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
