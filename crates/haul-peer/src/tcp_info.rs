//! What the kernel tells of a TCP connection.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Larger than any kernel's `struct tcp_info` of today.
const INFO_BYTES: usize = 512;
/// Offset of `tcpi_min_rtt` in Linux's `struct tcp_info` (include/uapi/linux/tcp.h).
const MIN_RTT: usize = 148;

/// A connection's `struct tcp_info`, as far as the kernel fills it. Fields are only ever added at its end: an offset stays what it is.
#[derive(Debug, Clone)]
pub struct TcpInfo {
    bytes: Vec<u8>,
}

impl TcpInfo {
    /// Asks the kernel; an error where the socket is not one of TCP.
    pub fn of(stream: &impl AsRawFd) -> io::Result<Self> {
        let mut bytes = vec![0_u8; INFO_BYTES];
        let mut len = INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, which `bytes` has, and puts into `len` how many.
        let result = unsafe {
            libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut len)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        bytes.truncate(len as usize);
        Ok(Self { bytes })
    }

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
