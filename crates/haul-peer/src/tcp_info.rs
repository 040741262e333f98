//! What the kernel tells of a TCP connection.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::Duration;

/// Offset of `tcpi_min_rtt` in Linux's `struct tcp_info` (include/uapi/linux/tcp.h).
const MIN_RTT: usize = 148;

/// A connection's `struct tcp_info`, as far as the kernel fills it. Fields are only ever added at its end: an offset stays what it is.
#[derive(Debug, Clone)]
pub struct TcpInfo {
    bytes: Vec<u8>,
}

impl TcpInfo {
    /// Of these bytes, for instance of an older kernel.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The field of 8 bits at this offset; 0 where the kernel is too old to have it.
    pub fn u8(&self, offset: usize) -> u8 {
        self.bytes.get(offset).copied().unwrap_or(0)
    }

    /// The field of 32 bits at this offset; 0 where the kernel is too old to have it.
    pub fn u32(&self, offset: usize) -> u64 {
        let field = self.bytes.get(offset..offset + 4).and_then(|field| field.try_into().ok());
        field.map_or(0, |field| u32::from_ne_bytes(field).into())
    }

    /// The same for 64 bits.
    pub fn u64(&self, offset: usize) -> u64 {
        let field = self.bytes.get(offset..offset + 8).and_then(|field| field.try_into().ok());
        field.map_or(0, u64::from_ne_bytes)
    }

    /// Smallest round-trip time of the last minutes, the connection's beginning among them.
    pub fn min_rtt(&self) -> Option<Duration> {
        let micros = self.u32(MIN_RTT);
        (micros != 0 && micros != u64::from(u32::MAX)).then(|| Duration::from_micros(micros))
    }
}
