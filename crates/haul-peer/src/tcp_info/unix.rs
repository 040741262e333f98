//! `TCP_INFO` of a socket.

use std::io;
use std::os::fd::AsRawFd;

use super::TcpInfo;

/// Larger than any kernel's `struct tcp_info` of today.
const INFO_BYTES: usize = 512;

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
}
