//! One source address of a peer, and what went out and came in there.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A UDP socket that counts. Bytes are UDP payload.
#[derive(Debug)]
pub struct Outlet {
    socket: UdpSocket,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes that came.
    pub received_bytes: u64,
    /// Datagrams that came.
    pub received_pkts: u64,
}

impl Outlet {
    /// A free port of an address.
    pub fn bind(address: IpAddr) -> Self {
        Self::at(SocketAddr::new(address, 0))
    }

    /// A given port.
    pub fn at(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).unwrap_or_else(|error| panic!("binding {address}: {error}"));
        socket.set_nonblocking(true).expect("a socket that does not block");
        Self { socket, sent_bytes: 0, received_bytes: 0, received_pkts: 0 }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket has an address")
    }

    /// Sends a datagram, unless the kernel has no room for it.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let Ok(sent) = self.socket.send_to(datagram, to) {
            self.sent_bytes += sent as u64;
        }
    }

    /// Takes a datagram that is there.
    pub fn take<'a>(&mut self, buffer: &'a mut [u8]) -> Option<(SocketAddr, &'a mut [u8])> {
        let (length, from) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            // A port that nobody listens on any more says so by an error: it is no datagram.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return None,
            Err(_) => return None,
        };
        self.received_bytes += length as u64;
        self.received_pkts += 1;
        Some((from, &mut buffer[..length]))
    }

    /// Waits until one of them has a datagram, at most so long.
    pub fn wait<'a>(outlets: impl IntoIterator<Item = &'a Self>, limit: Duration) {
        let mut fds: Vec<PollFd<'_>> = outlets.into_iter().map(|outlet| PollFd::new(&outlet.socket, PollFlags::IN)).collect();
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let _ = poll(&mut fds, Some(&limit));
    }
}
