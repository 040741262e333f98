//! A transport inside one process, for tests and measurements: it can deliver blocks in any order and break after a number of them.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haul_files::{BlockRx, BlockTx, Link, Transport};
use haul_units::BitRate;

/// How the blocks of a [`pair`] travel.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Blocks under way at most; then the sender waits.
    pub capacity: usize,
    /// Each block taken is any of the first so many; 1 keeps the order.
    pub shuffle: usize,
    /// For the order: the same seed gives the same choices.
    pub seed: u64,
    /// The connection breaks when this many blocks were sent.
    pub break_after: Option<u64>,
    /// Blocks under way when it breaks have arrived: the receiver may still take them. Else they are lost.
    pub arrived: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { capacity: 64, shuffle: 1, seed: 0, break_after: None, arrived: false }
    }
}

/// Two ends of a connection in memory.
pub fn pair(conditions: Conditions) -> (Link<Memory>, Link<Memory>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State { random: conditions.seed | 1, ..State::default() }),
        changed: Condvar::new(),
        conditions,
    });
    let pipe = |to: usize, from: usize| Link {
        control_in: Box::new(PipeEnd { shared: shared.clone(), pipe: from }),
        control_out: Box::new(PipeEnd { shared: shared.clone(), pipe: to }),
        transport: Arc::new(Memory(shared.clone())),
    };
    (pipe(0, 1), pipe(1, 0))
}

/// One end.
#[derive(Clone)]
pub struct Memory(Arc<Shared>);

impl Memory {
    /// Blocks and bytes of blocks that were sent.
    pub fn sent(&self) -> (u64, u64) {
        let state = lock(&self.0.state);
        (state.blocks_sent, state.bytes_sent)
    }

    /// The limits that either end was told, in their order.
    pub fn limits(&self) -> Vec<Option<BitRate>> {
        lock(&self.0.state).limits.clone()
    }

    /// The room that either end was told of, in its order.
    pub fn rooms(&self) -> Vec<BitRate> {
        lock(&self.0.state).rooms.clone()
    }

    /// Breaks the connection, as when one end is killed.
    pub fn kill(&self) {
        lock(&self.0.state).broken = true;
        self.0.changed.notify_all();
    }

    fn shared(&self) -> Arc<Shared> {
        self.0.clone()
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    conditions: Conditions,
}

#[derive(Default)]
struct State {
    pipes: [VecDeque<u8>; 2],
    blocks: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    finished: bool,
    broken: bool,
    random: u64,
    blocks_sent: u64,
    bytes_sent: u64,
    limits: Vec<Option<BitRate>>,
    rooms: Vec<BitRate>,
}

const PIPE_BYTES: usize = 1 << 20;

struct PipeEnd {
    shared: Arc<Shared>,
    pipe: usize,
}

fn broken() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Shared {
    /// Waits until `ready` gives something.
    fn wait<R>(&self, mut ready: impl FnMut(&mut State) -> Option<io::Result<R>>) -> io::Result<R> {
        let mut state = lock(&self.state);
        loop {
            if let Some(result) = ready(&mut state) {
                drop(state);
                self.changed.notify_all();
                return result;
            }
            if state.broken {
                return Err(broken());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Read for PipeEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What was written before a break is still read.
        self.shared.wait(|state| {
            let pipe = state.pipes.get_mut(self.pipe)?;
            (!pipe.is_empty()).then(|| pipe.read(buffer))
        })
    }
}

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.shared.wait(|state| {
            if state.broken {
                return Some(Err(broken()));
            }
            let pipe = state.pipes.get_mut(self.pipe)?;
            let room = PIPE_BYTES.saturating_sub(pipe.len()).min(bytes.len());
            (room > 0).then(|| pipe.write(bytes.get(..room).unwrap_or_default()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for Memory {
    type Tx = Self;
    type Rx = Self;

    fn open_blocks(&self) -> io::Result<Self> {
        Ok(Self(self.shared()))
    }

    fn accept_blocks(&self) -> io::Result<Self> {
        Ok(Self(self.shared()))
    }

    fn limit(&self, rate: Option<BitRate>) {
        lock(&self.0.state).limits.push(rate);
    }

    fn take_room(&self, rate: BitRate) {
        lock(&self.0.state).rooms.push(rate);
    }

    fn silence(&self) -> io::Result<Option<Duration>> {
        if lock(&self.0.state).broken { Err(broken()) } else { Ok(Some(Duration::ZERO)) }
    }

    fn abort(&self, _reason: &str) {
        self.kill();
    }
}

impl BlockTx for Memory {
    fn buffer(&self) -> Vec<u8> {
        lock(&self.0.state).spare.pop().unwrap_or_default()
    }

    fn send(&self, block: Vec<u8>) -> io::Result<()> {
        let limit = self.0.conditions.break_after;
        let mut block = Some(block);
        self.0.wait(|state| {
            if limit.is_some_and(|limit| state.blocks_sent >= limit) {
                state.broken = true;
            }
            if state.broken {
                return Some(Err(broken()));
            }
            (state.blocks.len() < self.0.conditions.capacity).then(|| {
                let block = block.take().unwrap_or_default();
                state.blocks_sent += 1;
                state.bytes_sent += block.len() as u64;
                state.blocks.push_back(block);
                Ok(())
            })
        })
    }

    fn finish(&self) -> io::Result<()> {
        lock(&self.0.state).finished = true;
        self.0.changed.notify_all();
        self.0.wait(|state| state.blocks.is_empty().then_some(Ok(())))
    }
}

impl BlockRx for Memory {
    type Block = Block;

    fn recv(&self) -> io::Result<Option<Block>> {
        self.0.wait(|state| {
            if state.broken && (state.blocks.is_empty() || !self.0.conditions.arrived) {
                return Some(Err(broken()));
            }
            // xorshift64: any spread of choices will do.
            state.random ^= state.random << 13;
            state.random ^= state.random >> 7;
            state.random ^= state.random << 17;
            let among = self.0.conditions.shuffle.clamp(1, state.blocks.len().max(1));
            let chosen = (state.random % among as u64) as usize;
            match state.blocks.remove(chosen) {
                Some(content) => Some(Ok(Some(Block { content, shared: self.0.clone() }))),
                None => state.finished.then_some(Ok(None)),
            }
        })
    }
}

/// A block that arrived; its buffer is used again when it is dropped.
pub struct Block {
    content: Vec<u8>,
    shared: Arc<Shared>,
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        let mut state = lock(&self.shared.state);
        if state.spare.len() < self.shared.conditions.capacity {
            state.spare.push(content);
        }
    }
}

/// Locks; a test that panics has failed already.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
