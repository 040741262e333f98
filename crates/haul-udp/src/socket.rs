//! The socket: set-up, and the state that all systems share.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Type};

use crate::buffers::BufferSizes;
#[cfg(target_os = "linux")]
use crate::linux::Batch;
#[cfg(not(target_os = "linux"))]
use crate::portable::Batch;
use crate::system::{Options, System};
use crate::train::{Outgoing, Received, Sent};

/// A UDP socket that sends and receives trains. Any thread may send; one at a time should receive.
#[derive(Debug)]
pub struct Socket {
    system: System,
    local: SocketAddr,
    buffers: BufferSizes,
    stopped: AtomicBool,
}

impl Socket {
    /// Binds to `addr`. `[::]` takes IPv4 too, where the system allows it. Fragmentation is forbidden; buffers are as large as granted.
    pub fn bind(addr: SocketAddr, options: Options) -> io::Result<Self> {
        Self::open(addr, None, None, options)
    }

    /// Binds to `addr` and to an interface: what is sent leaves by it, and what comes another way is not received. Where the system does not let this user bind to an interface (Linux before 5.7),
    /// the address alone is bound, and by which interface packets leave is for its routing table to say; then the second value is false.
    pub fn bind_via(addr: SocketAddr, interface: &str, options: Options) -> io::Result<(Self, bool)> {
        let mut is_bound = true;
        let socket = Self::open(addr, None, Some((interface, &mut is_bound)), options)?;
        Ok((socket, is_bound))
    }

    /// Binds to a free port, for one peer: only what it sends arrives.
    pub fn connect(peer: SocketAddr, options: Options) -> io::Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        Self::open(SocketAddr::new(any, 0), Some(peer), None, options)
    }

    fn open(addr: SocketAddr, peer: Option<SocketAddr>, via: Option<(&str, &mut bool)>, options: Options) -> io::Result<Self> {
        let inner = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if let SocketAddr::V6(v6) = addr {
            // Some systems have no dual sockets: then `[::]` takes IPv6 alone.
            let dual = inner.set_only_v6(!v6.ip().is_unspecified());
            tracing::trace!(?dual, "dual socket");
        }
        if let Some((interface, is_bound)) = via {
            *is_bound = crate::system::bind_interface(&inner, interface)?;
        }
        inner.bind(&addr.into())?;
        if let Some(peer) = peer {
            inner.connect(&peer.into())?;
        }
        let local = inner.local_addr()?.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address"))?;
        let buffers = BufferSizes::request(&inner);
        let system = System { inner, ipv6: addr.is_ipv6(), peer, segment_offload: AtomicBool::new(options.segment_offload) };
        system.set_system_options(options)?;
        Ok(Self { system, local, buffers, stopped: AtomicBool::new(false) })
    }

    /// Leaves it to the system to cut datagrams that exceed the MTU into fragments, where [`Socket::send`] says [`Sent::TooBig`] otherwise: for those who pass
    /// on what others have made.
    pub fn allow_fragmentation(&self) -> io::Result<()> {
        self.system.allow_fragmentation()
    }

    /// The address bound to; of a connected socket the one that its peer sees, as far as known here.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sizes of the buffers that the system granted.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers
    }

    /// Sends a train, waiting where the system's buffer is full. An error means that the socket itself is unusable.
    pub fn send(&self, outgoing: &Outgoing<'_>) -> io::Result<Sent> {
        self.system.send_train(&self.for_system(outgoing), true)
    }

    /// Sends a train as [`Socket::send`] does, but loses it where it would have to wait.
    pub fn try_send(&self, outgoing: &Outgoing<'_>) -> io::Result<Sent> {
        self.system.send_train(&self.for_system(outgoing), false)
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
        match self.system.receive_trains(batch, patience) {
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

    /// Takes a train that is there already into `room`; `None` where there is none. What does not fit is gone: [`SLOT_BYTES`](crate::SLOT_BYTES) are
    /// enough for every train.
    pub fn try_receive<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<Received<'a>>> {
        match self.system.take_train(room) {
            Err(error) if is_passing(&error) => Ok(None),
            result => result,
        }
    }

    /// Ends [`Socket::receive`], this and every later call.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.system.wake_receiver();
    }

    /// Whether trains go to the kernel whole, as far as known.
    pub fn segment_offload(&self) -> bool {
        self.system.segment_offload.load(Ordering::Relaxed)
    }

    /// Our address to answer from, for a train received on `to`: of use only where the socket is bound to no address of its own.
    pub fn answer_from(&self, to: Option<IpAddr>) -> Option<IpAddr> {
        if self.local.ip().is_unspecified() { to } else { None }
    }

    /// With the address in the family of the socket, and segments that are some bytes long.
    fn for_system<'a>(&self, outgoing: &Outgoing<'a>) -> Outgoing<'a> {
        let to = match outgoing.to {
            SocketAddr::V4(v4) if self.system.ipv6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
            other => other,
        };
        Outgoing { to, segment_bytes: outgoing.segment_bytes.max(1), ..*outgoing }
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Socket {
    /// Readable when there is something to receive.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.system.inner.as_fd()
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
