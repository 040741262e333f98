//! Packet sockets: frames sent as they are on an interface, and frames seen there, with the kernel's time stamps (packet(7)).

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A socket on one interface.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
}

/// A frame that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its length, which may be more than there was room for.
    pub bytes: usize,
    /// When, on the clock of the system, since 1970.
    pub at: Duration,
    /// It was on its way out: on a loopback interface each is seen both ways.
    pub outgoing: bool,
}

impl PacketSocket {
    /// One that sends frames past the queueing discipline, and sees nothing.
    pub fn sender(interface: &str) -> io::Result<Self> {
        let socket = Self::open(0)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
        socket.bind(interface, 0)?;
        Ok(socket)
    }

    /// One that sees all frames of an interface, its own host's too; waits for up to `patience` when there is none.
    pub fn watcher(interface: &str, patience: Duration) -> io::Result<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // Nothing before it is bound, or frames of other interfaces would come.
        let socket = Self::open(0)?;
        let wait = libc::timeval { tv_sec: patience.as_secs() as i64, tv_usec: i64::from(patience.subsec_micros()) };
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        // More than the limit for users, where we may; else that.
        let _ = socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(64i32 << 20));
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
        socket.bind(interface, protocol)?;
        Ok(socket)
    }

    fn open(protocol: u16) -> io::Result<Self> {
        // SAFETY: creates a descriptor that nobody else has, and owns it.
        let fd = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(protocol));
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { fd })
    }

    fn bind(&self, interface: &str, protocol: u16) -> io::Result<()> {
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the address has the size told.
        let bound = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) };
        if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn set<T: Copy>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as u32;
        // SAFETY: the value has the size told.
        let result = unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends frames in this order, without check sequences; says how many went. The interface's own queue being full is an error (`ENOBUFS`) when it stops the first.
    pub fn send(&self, frames: &[Vec<u8>]) -> io::Result<usize> {
        // SAFETY: all zero is a valid message header.
        let empty: libc::mmsghdr = unsafe { zeroed() };
        let (mut parts, mut messages) = ([libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH], [empty; BATCH]);
        let count = frames.len().min(BATCH);
        for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
            *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` headers are filled in, each names one live buffer of the length told, which the kernel only reads.
        let sent = unsafe { libc::sendmmsg(self.fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// The next frame: its first bytes, as many as there is room for. Nothing where none came in time.
    pub fn see(&self, room: &mut [u8]) -> io::Result<Option<Seen>> {
        // SAFETY: all zero is a valid address and a valid message header.
        let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
        let mut control = MaybeUninit::<[u64; 16]>::uninit();
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // MSG_TRUNC: the length is that of the frame, whatever fits.
        // SAFETY: the header names live buffers of the sizes told.
        let length = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
        let Ok(bytes) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            let none = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if none { Ok(None) } else { Err(error) };
        };
        // SAFETY: the kernel has filled in the header.
        let at = unsafe { time_stamp(&message) };
        Ok(at.map(|at| Seen { bytes, at, outgoing: from.sll_pkttype == libc::PACKET_OUTGOING }))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// # Safety
/// The header must be as `recvmsg` left it.
unsafe fn time_stamp(message: &libc::msghdr) -> Option<Duration> {
    // SAFETY: by the contract the control messages are valid; the kind says what is behind them.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(message).as_ref()?;
        if control.cmsg_level != libc::SOL_SOCKET || control.cmsg_type != libc::SO_TIMESTAMPNS {
            return None;
        }
        let time = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
        Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
    }
}

/// Frames in one system call; more than this saves little.
const BATCH: usize = 64;
