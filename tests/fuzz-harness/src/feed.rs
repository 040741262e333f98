//! Numbers out of the fuzzer's bytes; zeros where they end.

/// The bytes that are left.
#[derive(Clone)]
pub struct Feed<'a>(pub &'a [u8]);

impl<'a> Feed<'a> {
    /// Up to `length` bytes.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A little-endian number.
    pub fn u64(&mut self) -> u64 {
        self.take(8).iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// One byte.
    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// A short run of bytes: its length, then it.
    pub fn run(&mut self) -> &'a [u8] {
        let length = usize::from(self.u8());
        self.take(length)
    }
}
