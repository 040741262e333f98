//! Where the transport puts the bytes of a block stream.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use haul_proto::Sink;

use super::MAX_BLOCK;
use super::assembly::Assembly;
use super::queue::Queue;

/// Puts blocks together and hands the complete ones to the queue.
pub(super) struct BlockSink {
    queue: Arc<Queue>,
    /// The block that the last bytes were for.
    current: Option<(u64, Assembly)>,
    /// Other incomplete blocks.
    others: HashMap<u64, Assembly>,
    /// All blocks below it are complete.
    complete_below: u64,
    /// Complete blocks above it.
    complete: BTreeSet<u64>,
    /// Size of the last complete block: the next will be about as large.
    usual_bytes: usize,
    /// Bytes in the buffers of incomplete blocks.
    open_bytes: usize,
}

impl BlockSink {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self {
            queue,
            current: None,
            others: HashMap::new(),
            complete_below: 0,
            complete: BTreeSet::new(),
            usual_bytes: 0,
            open_bytes: 0,
        }
    }

    /// More memory for incomplete blocks; false if there is enough already.
    fn take_memory(&mut self, bytes: usize) -> bool {
        let memory = self.queue.memory();
        let fits = memory.take(bytes) <= memory.limit();
        self.open_bytes += bytes;
        if !fits {
            self.give_memory(bytes);
        }
        fits
    }

    fn give_memory(&mut self, bytes: usize) {
        self.open_bytes -= bytes;
        self.queue.memory().give(bytes);
    }

    /// The block at `offset`, with its buffer large enough, and where in it the bytes go.
    fn open(&mut self, offset: u64, len: usize) -> Option<(&mut Assembly, usize)> {
        let (index, start) = (offset / MAX_BLOCK as u64, (offset % MAX_BLOCK as u64) as usize);
        let end = start.checked_add(len).filter(|&end| len > 0 && end <= MAX_BLOCK)?;
        if self.current.as_ref().is_none_or(|(current, _)| *current != index) {
            self.switch_to(index)?;
        }
        let held = self.current.as_ref().filter(|(_, assembly)| assembly.admits(end))?.1.buffer.len();
        let grown = if held < end { end.next_power_of_two().clamp(MIN_BUFFER_BYTES, MAX_BLOCK) } else { held };
        if grown > held && !self.take_memory(grown - held) {
            return None;
        }
        let (_, assembly) = self.current.as_mut()?;
        if grown > held {
            assembly.buffer.resize(grown, 0);
        }
        Some((assembly, start))
    }

    fn switch_to(&mut self, index: u64) -> Option<()> {
        if index < self.complete_below || index - self.complete_below > MAX_AHEAD || self.complete.contains(&index) {
            return None;
        }
        let next = match self.others.remove(&index) {
            Some(assembly) => assembly,
            None => self.start()?,
        };
        if let Some((previous, assembly)) = self.current.replace((index, next)) {
            self.others.insert(previous, assembly);
        }
        Some(())
    }

    fn start(&mut self) -> Option<Assembly> {
        let buffer = self.queue.recycled().unwrap_or_else(|| vec![0; self.usual_bytes]);
        self.take_memory(buffer.len()).then(|| Assembly::new(buffer))
    }

    /// Hands the current block on if all of it is there.
    fn finish_block(&mut self) {
        let Some(len) = self.current.as_ref().and_then(|(_, assembly)| assembly.complete_len()) else { return };
        let Some((index, assembly)) = self.current.take() else { return };
        self.give_memory(assembly.buffer.len());
        self.usual_bytes = len.next_multiple_of(MIN_BUFFER_BYTES).min(MAX_BLOCK);
        self.complete.insert(index);
        while self.complete.remove(&self.complete_below) {
            self.complete_below += 1;
        }
        self.queue.push(index, assembly.buffer, len);
    }
}

impl Sink for BlockSink {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let (assembly, start) = self.open(offset, len)?;
        let end = start + len;
        if assembly.is_vacant(start, end) { assembly.buffer.get_mut(start..end) } else { None }
    }

    fn commit(&mut self, offset: u64, len: usize, end: bool) {
        let Some((assembly, start)) = self.open(offset, len) else { return };
        assembly.fill(start, start + len);
        if end {
            assembly.end_at(start + len);
        }
        self.queue.note_received(len);
        self.finish_block();
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], end: bool) -> usize {
        let Some((assembly, start)) = self.open(offset, bytes.len()) else { return 0 };
        let missing: Vec<_> = assembly.missing(start, start + bytes.len()).collect();
        let mut new = 0;
        for (from, to) in missing {
            if let (Some(place), Some(source)) = (assembly.buffer.get_mut(from..to), bytes.get(from - start..to - start)) {
                place.copy_from_slice(source);
                assembly.fill(from, to);
                new += to - from;
            }
        }
        if end {
            assembly.end_at(start + bytes.len());
        }
        self.queue.note_received(new);
        self.finish_block();
        new
    }

    fn finish(&mut self, total: u64) {
        self.queue.finish(total);
    }

    fn reset(&mut self, code: u64) {
        self.current = None;
        self.others.clear();
        self.give_memory(self.open_bytes);
        self.queue.reset(code);
    }

    fn consumed(&self) -> u64 {
        self.queue.consumed()
    }
}

impl Drop for BlockSink {
    fn drop(&mut self) {
        self.give_memory(self.open_bytes);
    }
}

/// Buffers grow from and by this.
const MIN_BUFFER_BYTES: usize = 16 << 10;

/// How far blocks may be ahead of the first incomplete one: a window of the smallest blocks. Bounds the memory for remembering them.
const MAX_AHEAD: u64 = 1 << 22;
