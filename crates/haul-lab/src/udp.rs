//! UDP sockets that take and give many datagrams at once (UDP GRO and GSO).

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A socket that never blocks.
#[derive(Debug)]
pub struct Socket(UdpSocket);

/// Datagrams of `segment` bytes each, the last perhaps shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams {
    pub len: usize,
    pub segment: usize,
    pub from: SocketAddr,
}

/// Room for one control message with an integer.
#[repr(C, align(8))]
struct ControlRoom([u8; 64]);

impl Socket {
    /// Bound to an address.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // Without it the datagrams come one by one.
        let _ = set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        for (forced, polite) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
            if set_option(&socket, libc::SOL_SOCKET, forced, BUFFER_BYTES).is_err() {
                let _ = set_option(&socket, libc::SOL_SOCKET, polite, BUFFER_BYTES);
            }
        }
        Ok(Self(socket))
    }

    /// On a port of its own, for one peer.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Self::bind(SocketAddr::new(any, 0))?;
        socket.0.connect(peer)?;
        Ok(socket)
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// What has arrived, if anything has.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<Datagrams>> {
        // SAFETY: all-zero bytes are valid for these plain C structures.
        let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        let mut control = ControlRoom([0; 64]);
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of_val(&name) as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header points at memory that outlives the call, with its right lengths.
        let len = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, 0) };
        if len < 0 {
            let error = io::Error::last_os_error();
            // A peer that does not listen (yet) is told by an error; nothing came all the same.
            let quiet = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted, io::ErrorKind::ConnectionRefused];
            return if quiet.contains(&error.kind()) { Ok(None) } else { Err(error) };
        }
        let len = len as usize;
        // SAFETY: the kernel has filled the header; control messages are walked within what it says it wrote, and an integer is read
        // unaligned.
        let segment = unsafe {
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            let gro = !message.is_null() && (*message).cmsg_level == libc::SOL_UDP && (*message).cmsg_type == libc::UDP_GRO;
            if gro { libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned() as usize } else { len }
        };
        let from = address_of(&name).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Datagrams { len, segment, from }))
    }

    /// Sends datagrams of `segment` bytes each to `peer`, or to the connected one.
    pub fn send(&self, bytes: &[u8], segment: usize, peer: Option<SocketAddr>) -> io::Result<()> {
        if bytes.len() <= segment {
            return self.send_one(bytes, peer);
        }
        if self.send_many(bytes, segment, peer).is_ok() {
            return Ok(());
        }
        // Not every device takes many at once.
        bytes.chunks(segment).try_for_each(|datagram| self.send_one(datagram, peer))
    }

    fn send_one(&self, datagram: &[u8], peer: Option<SocketAddr>) -> io::Result<()> {
        match peer {
            Some(peer) => self.0.send_to(datagram, peer)?,
            None => self.0.send(datagram)?,
        };
        Ok(())
    }

    fn send_many(&self, bytes: &[u8], segment: usize, peer: Option<SocketAddr>) -> io::Result<()> {
        let segment = u16::try_from(segment).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut name = peer.map(storage_of);
        let mut control = ControlRoom([0; 64]);
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: all-zero bytes are valid for this plain C structure.
        let mut header: libc::msghdr = unsafe { zeroed() };
        if let Some((name, len)) = &mut name {
            header.msg_name = (&raw mut *name).cast();
            header.msg_namelen = *len;
        }
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        // SAFETY: the control room holds one message with a 16-bit integer; the header and all it points at outlive the call, which
        // only reads them.
        let sent = unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_UDP;
            (*message).cmsg_type = libc::UDP_SEGMENT;
            (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(message).cast::<u16>().write_unaligned(segment);
            libc::sendmsg(self.0.as_raw_fd(), &raw const header, 0)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn set_option(socket: &UdpSocket, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the option takes an integer, which outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn address_of(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: a sockaddr_storage is large enough and aligned for each family's structure, and any bits are valid integers.
    unsafe {
        match i32::from(name.ss_family) {
            libc::AF_INET => {
                let v4 = &*(&raw const *name).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                let v6 = &*(&raw const *name).cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

fn storage_of(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero bytes are a valid sockaddr_storage, which is large enough and aligned for each family's structure.
    unsafe {
        let mut name: libc::sockaddr_storage = zeroed();
        match address {
            SocketAddr::V4(address) => {
                let v4 = &mut *(&raw mut name).cast::<libc::sockaddr_in>();
                v4.sin_family = libc::AF_INET as libc::sa_family_t;
                v4.sin_port = address.port().to_be();
                v4.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                (name, size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(address) => {
                let v6 = &mut *(&raw mut name).cast::<libc::sockaddr_in6>();
                v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                v6.sin6_port = address.port().to_be();
                v6.sin6_addr.s6_addr = address.ip().octets();
                v6.sin6_scope_id = address.scope_id();
                (name, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }
}

/// For a burst at 10 Gbit/s while something else has the processor.
const BUFFER_BYTES: libc::c_int = 16 << 20;
