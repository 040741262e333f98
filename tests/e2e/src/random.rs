//! Numbers from a seed (SplitMix64), so that a failing test can be run again.

use std::ops::Range;
use std::time::Duration;

/// A stream of numbers that its seed decides.
pub struct Random(u64);

impl Random {
    /// The seed comes from `E2E_SEED` if that is set, and is printed: a failure is repeated with the same.
    pub fn seeded(default: u64) -> Self {
        let seed = std::env::var("E2E_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
        println!("E2E_SEED={seed}");
        Self(seed)
    }

    /// From a seed that the caller chose.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in the range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.number() % (range.end - range.start)
    }

    /// A time in the range, in milliseconds.
    pub fn millis(&mut self, range_ms: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range_ms))
    }

    /// Bytes that no compression makes smaller.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}
