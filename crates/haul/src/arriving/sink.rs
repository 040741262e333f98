//! Where the transport puts the bytes of a block stream.

use std::collections::HashMap;
use std::sync::Arc;

use haul_proto::Sink;

use super::assembly::{Assembly, MAX_BLOCK};
use super::completed::Completed;
use super::queue::Queue;

/// Puts blocks together and hands the complete ones to the queue.
pub(super) struct BlockSink {
    queue: Arc<Queue>,
    /// The block that the last bytes were for.
    current: Option<(u64, Assembly)>,
    /// Other incomplete blocks.
    others: HashMap<u64, Assembly>,
    complete: Completed,
    /// Size of the last complete block: the next will be about as large.
    usual_bytes: usize,
    /// What is held for incomplete blocks, and about those that are complete.
    held_bytes: usize,
}

impl BlockSink {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, current: None, others: HashMap::new(), complete: Completed::default(), usual_bytes: 0, held_bytes: 0 }
    }

    /// More memory; false if there is not enough.
    fn take_memory(&mut self, bytes: usize) -> bool {
        let fits = self.queue.memory().take(bytes);
        if fits {
            self.held_bytes += bytes;
        }
        fits
    }

    fn give_memory(&mut self, bytes: usize) {
        self.held_bytes -= bytes;
        self.queue.memory().give(bytes);
    }

    /// What is noted has grown from `before` to `after`.
    fn note_memory(&mut self, before: usize, after: usize) {
        self.held_bytes = (self.held_bytes + after).saturating_sub(before);
        self.queue.memory().note(after.saturating_sub(before));
        self.queue.memory().give(before.saturating_sub(after));
    }

    /// The block that the bytes are for, if they can be new, and where in it they go.
    fn place(&self, offset: u64, len: usize) -> Option<(u64, usize, usize)> {
        let (index, start) = (offset / MAX_BLOCK as u64, (offset % MAX_BLOCK as u64) as usize);
        let end = start.checked_add(len).filter(|&end| len > 0 && end <= MAX_BLOCK)?;
        let assembly = match &self.current {
            Some((current, assembly)) if *current == index => Some(assembly),
            _ => self.others.get(&index),
        };
        let can_be_new = assembly.map_or_else(|| !self.complete.contains(index), |assembly| assembly.admits(end));
        can_be_new.then_some((index, start, end))
    }

    /// A block that has been begun becomes the current one.
    fn switch_to(&mut self, index: u64) -> Option<&mut Assembly> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != index) {
            let next = self.others.remove(&index)?;
            if let Some((previous, assembly)) = self.current.replace((index, next)) {
                self.others.insert(previous, assembly);
            }
        }
        self.current.as_mut().map(|(_, assembly)| assembly)
    }

    /// Begins a block, or enlarges its buffer, so that it holds bytes up to `end`. False if there is no memory for it.
    fn make_room(&mut self, index: u64, end: usize) -> bool {
        if self.switch_to(index).is_none() && (!self.complete.reaches(index) || !self.begin(index)) {
            return false;
        }
        let Some((_, assembly)) = &self.current else { return false };
        let held = assembly.buffer.len();
        if end <= held {
            return assembly.takes_pieces();
        }
        let grown = end.next_power_of_two().clamp(MIN_BUFFER_BYTES, MAX_BLOCK);
        if !assembly.takes_pieces() || !self.take_memory(grown - held) {
            return false;
        }
        if let Some((_, assembly)) = &mut self.current {
            assembly.buffer.resize(grown, 0);
        }
        true
    }

    /// Begins a block: in a buffer that was used before, or one as large as the last block; if there is no memory for that, in one that grows.
    fn begin(&mut self, index: u64) -> bool {
        let notes = Assembly::default().held();
        if !self.take_memory(notes) {
            return false;
        }
        let buffer = match self.queue.memory().recycled() {
            Some(buffer) => {
                // It is held already.
                self.held_bytes += buffer.len();
                buffer
            }
            None if self.take_memory(self.usual_bytes) => vec![0; self.usual_bytes],
            None => Vec::new(),
        };
        if let Some((previous, assembly)) = self.current.replace((index, Assembly::new(buffer))) {
            self.others.insert(previous, assembly);
        }
        true
    }

    /// Does something to the current block, and counts what it then takes.
    fn change<R>(&mut self, change: impl FnOnce(&mut Assembly) -> R) -> Option<R> {
        let (_, assembly) = self.current.as_mut()?;
        let before = assembly.held();
        let result = change(assembly);
        let after = assembly.held();
        self.note_memory(before, after);
        Some(result)
    }

    /// Hands the current block on if all of it is there.
    fn finish_block(&mut self) {
        let Some(len) = self.current.as_ref().and_then(|(_, assembly)| assembly.complete_len()) else { return };
        let Some((index, assembly)) = self.current.take() else { return };
        // The buffer stays held: it is the queue's.
        self.held_bytes -= assembly.buffer.len();
        self.give_memory(assembly.held() - assembly.buffer.len());
        self.usual_bytes = len.next_multiple_of(MIN_BUFFER_BYTES).min(MAX_BLOCK);
        let before = self.complete.held();
        self.complete.insert(index);
        self.note_memory(before, self.complete.held());
        self.queue.push(index, assembly.buffer, len);
    }
}

impl Sink for BlockSink {
    /// Only in blocks that have been begun: the packet may be forged, and makes nothing before it has been opened.
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let (index, start, end) = self.place(offset, len)?;
        let assembly = self.switch_to(index)?;
        if assembly.takes_pieces() && assembly.is_vacant(start, end) { assembly.buffer.get_mut(start..end) } else { None }
    }

    fn commit(&mut self, offset: u64, len: usize, end: bool) {
        let Some((index, start, stop)) = self.place(offset, len) else { return };
        if self.switch_to(index).is_none() {
            return;
        }
        self.change(|assembly| {
            assembly.fill(start, stop);
            if end {
                assembly.end_at(stop);
            }
        });
        self.queue.note_received(len);
        self.finish_block();
    }

    fn has_room(&mut self, offset: u64, len: usize) -> bool {
        self.place(offset, len).is_none_or(|(index, _, end)| self.make_room(index, end))
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], end: bool) -> usize {
        let Some((index, start, stop)) = self.place(offset, bytes.len()) else { return 0 };
        if !self.make_room(index, stop) {
            return 0;
        }
        let new = self.change(|assembly| {
            let missing: Vec<_> = assembly.missing(start, stop).collect();
            let mut new = 0;
            for (from, to) in missing {
                if let (Some(place), Some(source)) = (assembly.buffer.get_mut(from..to), bytes.get(from - start..to - start)) {
                    place.copy_from_slice(source);
                    assembly.fill(from, to);
                    new += to - from;
                }
            }
            if end {
                assembly.end_at(stop);
            }
            new
        });
        let new = new.unwrap_or(0);
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
        self.complete = Completed::default();
        self.give_memory(self.held_bytes);
        self.queue.reset(code);
    }

    fn consumed(&self) -> u64 {
        self.queue.consumed()
    }
}

impl Drop for BlockSink {
    fn drop(&mut self) {
        self.give_memory(self.held_bytes);
    }
}

/// Buffers grow from and by this.
const MIN_BUFFER_BYTES: usize = 16 << 10;
