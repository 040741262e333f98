//! The socket: set-up, and the state that all systems share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Type};

use super::{Batch, BufferSizes, Outgoing, Sent};

/// How a socket is set up.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Hand whole trains to the kernel where it takes them. Default: yes.
    pub segment_offload: bool,
    /// Take whole trains from the kernel where it gives them. Default: yes.
    pub receive_offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_offload: true, receive_offload: true }
    }
}

/// A UDP socket that sends and receives trains. Any thread may send; one at a time should receive.
#[derive(Debug)]
pub struct Socket {
    pub(super) inner: socket2::Socket,
    pub(super) ipv6: bool,
    /// Trains may still go out whole. Cleared for good by the first one that the system refuses for being a train.
    pub(super) segment_offload: AtomicBool,
    local: SocketAddr,
    buffers: BufferSizes,
    stopped: AtomicBool,
}

impl Socket {
    /// Binds to `addr`. `[::]` takes IPv4 too, where the system allows it. Fragmentation is forbidden; buffers are as large as granted.
    pub fn bind(addr: SocketAddr, options: Options) -> io::Result<Self> {
        let inner = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if let SocketAddr::V6(v6) = addr {
            // Some systems have no dual sockets: then `[::]` takes IPv6 alone.
            let dual = inner.set_only_v6(!v6.ip().is_unspecified());
            tracing::trace!(?dual, "dual socket");
        }
        inner.bind(&addr.into())?;
        let local = inner.local_addr()?.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address"))?;
        let buffers = BufferSizes::request(&inner);
        let socket = Self {
            inner,
            ipv6: addr.is_ipv6(),
            segment_offload: AtomicBool::new(options.segment_offload),
            local,
            buffers,
            stopped: AtomicBool::new(false),
        };
        socket.set_system_options(options)?;
        Ok(socket)
    }

    /// The address bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sizes of the buffers that the system granted.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Sends a train, waiting where the system's buffer is full. An error means that the socket itself is unusable.
    pub fn send(&self, outgoing: &Outgoing<'_>) -> io::Result<Sent> {
        debug_assert!(outgoing.segment_bytes > 0);
        let outgoing = Outgoing { to: self.for_system(outgoing.to), ..*outgoing };
        self.send_train(&outgoing, true)
    }

    /// Sends a train as [`Socket::send`] does, but loses it where it would have to wait.
    pub fn try_send(&self, outgoing: &Outgoing<'_>) -> io::Result<Sent> {
        let outgoing = Outgoing { to: self.for_system(outgoing.to), ..*outgoing };
        self.send_train(&outgoing, false)
    }

    /// Waits for trains and fills `batch`. Returns how many there are; 0 means that [`Socket::stop`] was called.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            if let Some(count) = self.receive_once(batch, None)? {
                return Ok(count);
            }
        }
    }

    /// As [`Socket::receive`], but waits no longer than about `patience`: `None` then, and after a signal or the echo of an earlier send.
    pub fn receive_within(&self, batch: &mut Batch, patience: Duration) -> io::Result<Option<usize>> {
        self.receive_once(batch, Some(patience))
    }

    fn receive_once(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<Option<usize>> {
        if self.stopped.load(Ordering::Acquire) {
            return Ok(Some(0));
        }
        match self.receive_trains(batch, patience) {
            // A socket that was shut down gives empty messages without end.
            Ok(_) if self.stopped.load(Ordering::Acquire) => Ok(Some(0)),
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_passing(&error) => {
                tracing::trace!(%error, "receive");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends [`Socket::receive`], this and every later call.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake_receiver();
    }

    /// Whether trains go to the kernel whole, as far as known.
    pub fn segment_offload(&self) -> bool {
        self.segment_offload.load(Ordering::Relaxed)
    }

    /// Our address to answer from, for a train received on `to`: of use only where the socket is bound to no address of its own.
    pub fn answer_from(&self, to: Option<IpAddr>) -> Option<IpAddr> {
        if self.local.ip().is_unspecified() { to } else { None }
    }

    /// An address in the family of the socket.
    fn for_system(&self, addr: SocketAddr) -> SocketAddr {
        match addr {
            SocketAddr::V4(v4) if self.ipv6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
            other => other,
        }
    }
}

/// Whether an error of receiving says something about a datagram sent earlier or about a signal, not about the socket.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}

/// How long to wait for room in the system's buffer before a train counts as lost.
pub(super) const SEND_PATIENCE: Duration = Duration::from_secs(1);
