//! A sink for placed streams that checks what the transport promises: each byte once, and the right one.

use haul_proto::{Sink, StreamId};

/// Room of a sink, in bytes.
pub const SINK_BYTES: usize = 256 << 10;

/// What the byte at an offset of a stream is, when an honest sender wrote it.
pub fn pattern(id: StreamId, offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ id.0 as u8
}

/// Bytes of a stream from an offset on.
pub fn pattern_run(id: StreamId, offset: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| pattern(id, offset.wrapping_add(at))).collect()
}

/// The sink.
pub struct CheckedSink {
    memory: Vec<u8>,
    filled: Vec<bool>,
    taken: u64,
    over: bool,
}

impl CheckedSink {
    /// An empty sink.
    pub fn new(_: StreamId) -> Self {
        Self { memory: vec![0; SINK_BYTES], filled: vec![false; SINK_BYTES], taken: 0, over: false }
    }

    fn range(&self, offset: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.memory.len()).then_some(start..end)
    }
}

impl Sink for CheckedSink {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        assert!(!self.over, "data after the end");
        let range = self.range(offset, len)?;
        if self.filled[range.clone()].iter().any(|filled| *filled) { None } else { Some(&mut self.memory[range]) }
    }

    fn commit(&mut self, offset: u64, len: usize, _end: bool) {
        let range = self.range(offset, len).expect("what had a slot is in range");
        for filled in &mut self.filled[range] {
            assert!(!std::mem::replace(filled, true), "a byte was committed twice");
        }
        self.taken += len as u64;
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], _end: bool) -> usize {
        assert!(!self.over, "data after the end");
        let Some(range) = self.range(offset, bytes.len()) else { return 0 };
        let mut new = 0;
        for (at, byte) in range.zip(bytes) {
            if !std::mem::replace(&mut self.filled[at], true) {
                self.memory[at] = *byte;
                new += 1;
            }
        }
        self.taken += new as u64;
        new
    }

    fn finish(&mut self, _total: u64) {}

    fn reset(&mut self, _code: u64) {
        self.over = true;
    }

    fn consumed(&self) -> u64 {
        self.taken
    }
}
