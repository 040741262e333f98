//! Trains on Linux: UDP_SEGMENT out, UDP_GRO and `recvmmsg` in.

use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libc::{c_int, c_long, c_void};
use socket2::SockAddr;

use super::control::{self, CONTROL_BYTES, Control, Sideband, Writer};
use super::socket::SEND_PATIENCE;
use super::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, Options, Outgoing, Received, SLOT_BYTES, Sent, Socket};

impl Socket {
    pub(super) fn set_system_options(&self, options: Options) -> io::Result<()> {
        let set = |level, option, value| set_option(&self.inner, level, option, value);
        // DEVIATION: an IPv6 socket takes the IPv4 options for its IPv4-mapped peers; where IPv4 is off they may be refused.
        let ipv4 = |option, value| match set(libc::IPPROTO_IP, option, value) {
            Err(_) if self.ipv6 => Ok(()),
            result => result,
        };
        // No fragments, and no kernel opinion about the path MTU: the transport probes for itself (RFC 8899).
        ipv4(libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
        ipv4(libc::IP_RECVTOS, 1)?;
        ipv4(libc::IP_PKTINFO, 1)?;
        if self.ipv6 {
            set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
            set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        }
        if options.receive_offload
            && let Err(error) = set(libc::SOL_UDP, libc::UDP_GRO, 1)
        {
            tracing::debug!(%error, "no receive offload");
        }
        Ok(())
    }

    pub(super) fn send_train(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let segments = outgoing.train.len().div_ceil(outgoing.segment_bytes);
        if segments == 1 {
            return self.send_one(outgoing, wait);
        }
        if segments <= MAX_TRAIN_SEGMENTS
            && outgoing.train.len() <= MAX_TRAIN_BYTES
            && self.segment_offload.load(Ordering::Relaxed)
        {
            return self.send_offloaded(outgoing, wait);
        }
        self.send_singly(outgoing, wait)
    }

    fn send_one(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let mut message = Message::new(self.ipv6, outgoing, None);
        let mut iov = iovec(outgoing.train);
        let header = message.header(&mut iov);
        // SAFETY: the header points to live buffers of the lengths it names, for the duration of the call.
        let call = || unsafe { libc::sendmsg(self.fd(), &raw const header, SEND_FLAGS) };
        self.until_room(wait, call).map_or_else(classify, |_| Ok(Sent::Taken))
    }

    fn send_offloaded(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let segment_bytes = outgoing.segment_bytes.min(usize::from(u16::MAX)) as u16;
        let mut message = Message::new(self.ipv6, outgoing, Some(segment_bytes));
        let mut iov = iovec(outgoing.train);
        let header = message.header(&mut iov);
        // SAFETY: the header points to live buffers of the lengths it names, for the duration of the call.
        let call = || unsafe { libc::sendmsg(self.fd(), &raw const header, SEND_FLAGS) };
        let Err(error) = self.until_room(wait, call) else { return Ok(Sent::Taken) };
        // EIO: the interface cannot checksum. EINVAL: too old a kernel, or a segment beyond the MTU: sending singly tells them apart.
        if !matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOPROTOOPT)) {
            return classify(error);
        }
        let sent = self.send_singly(outgoing, wait)?;
        if matches!(sent, Sent::Taken) {
            self.segment_offload.store(false, Ordering::Relaxed);
            tracing::info!(%error, "segmentation offload refused: sending single datagrams");
        }
        Ok(sent)
    }

    fn send_singly(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let mut message = Message::new(self.ipv6, outgoing, None);
        let group_bytes = outgoing.segment_bytes.saturating_mul(GROUP);
        for group in outgoing.train.chunks(group_bytes) {
            // SAFETY: all zero is a valid iovec and a valid mmsghdr.
            let mut iovs: [libc::iovec; GROUP] = unsafe { zeroed() };
            // SAFETY: as above.
            let mut headers: [libc::mmsghdr; GROUP] = unsafe { zeroed() };
            let mut count = 0;
            for ((datagram, iov), header) in group.chunks(outgoing.segment_bytes).zip(&mut iovs).zip(&mut headers) {
                *iov = iovec(datagram);
                header.msg_hdr = message.header(iov);
                count += 1;
            }
            let mut done = 0;
            while done < count {
                let rest = &mut headers[done..count];
                // SAFETY: `rest` has as many headers as said, and they point to live buffers of the lengths they name.
                let call = || unsafe { libc::sendmmsg(self.fd(), rest.as_mut_ptr(), rest.len() as _, SEND_FLAGS) as isize };
                match self.until_room(wait, call) {
                    Ok(sent) => done += sent.max(1),
                    Err(error) => return classify(error),
                }
            }
        }
        Ok(Sent::Taken)
    }

    /// Repeats `call` while it is interrupted or, if `wait`, while the socket's buffer is full.
    fn until_room(&self, wait: bool, mut call: impl FnMut() -> isize) -> io::Result<usize> {
        loop {
            let result = call();
            if let Ok(count) = usize::try_from(result) {
                return Ok(count);
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock if wait && self.wait_writable() => {}
                _ => return Err(error),
            }
        }
    }

    /// Waits for room in the send buffer; false if there was none for long.
    fn wait_writable(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(&raw mut poll, 1, SEND_PATIENCE.as_millis() as c_int) };
        ready > 0
    }

    /// Fills `batch`; waits for the first train, at most as long as `patience` where there is such a limit.
    pub(super) fn receive_trains(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<usize> {
        let Some(patience) = patience else { return self.take_trains(batch, libc::MSG_WAITFORONE as _) };
        // On a busy path something is there most often: no need to ask first.
        match self.take_trains(batch, libc::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        // recvmmsg has a timeout too, which it looks at only when something has come (recvmmsg(2), BUGS).
        let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        let timeout = libc::timespec { tv_sec: patience.as_secs() as _, tv_nsec: c_long::from(patience.subsec_nanos() as i32) };
        // SAFETY: one valid pollfd, a valid timeout, and no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, ptr::null()) };
        if ready > 0 { self.take_trains(batch, libc::MSG_DONTWAIT) } else { Ok(0) }
    }

    fn take_trains(&self, batch: &mut Batch, flags: c_int) -> io::Result<usize> {
        batch.count = 0;
        batch.prepare();
        // MSG_WAITFORONE: waits for the first train, then takes what else is there.
        // SAFETY: `prepare` has pointed every header to live buffers of the batch, which do not move while it is borrowed.
        let result = unsafe {
            libc::recvmmsg(
                self.fd(),
                batch.headers.as_mut_ptr(),
                batch.headers.len() as libc::c_uint,
                flags as _,
                ptr::null_mut(),
            )
        };
        batch.count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        Ok(batch.count)
    }

    /// Shutting down the receiving half ends a blocked `recvmmsg`, also on an unconnected socket (which answers ENOTCONN all the same).
    pub(super) fn wake_receiver(&self) {
        let _ = self.inner.shutdown(std::net::Shutdown::Read);
    }

    fn fd(&self) -> c_int {
        self.inner.as_raw_fd()
    }
}

/// Sets an integer option.
pub(super) fn set_option(socket: &socket2::Socket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let size = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value lives for the call and has the size given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast::<c_void>(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the error of a send means for the train.
fn classify(error: io::Error) -> io::Result<Sent> {
    match error.raw_os_error() {
        Some(libc::EMSGSIZE) => Ok(Sent::TooBig),
        Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EPIPE) => Err(error),
        // No route, no buffers, filtered, or the answer to an earlier datagram: all may pass.
        _ => Ok(Sent::Lost(error)),
    }
}

fn iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Address and control messages of a train to send.
struct Message {
    to: SockAddr,
    control: Control,
    control_bytes: usize,
}

impl Message {
    fn new(ipv6_socket: bool, outgoing: &Outgoing<'_>, segment_bytes: Option<u16>) -> Self {
        let mut control = Control::EMPTY;
        let mut writer = Writer::new(&mut control);
        if let Some(bytes) = segment_bytes {
            writer.segment_bytes(bytes);
        }
        if outgoing.ecn != 0 {
            writer.traffic_class(&outgoing.to, outgoing.ecn & 0b11);
        }
        if let Some(source) = outgoing.from {
            writer.source(ipv6_socket, source);
        }
        let control_bytes = writer.finish();
        Self { to: outgoing.to.into(), control, control_bytes }
    }

    /// A header that points into `self` and to `iov`.
    fn header(&mut self, iov: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = self.to.as_ptr().cast_mut().cast();
        header.msg_namelen = self.to.len();
        header.msg_iov = iov;
        header.msg_iovlen = 1;
        if self.control_bytes > 0 {
            header.msg_control = self.control.as_mut_ptr();
            header.msg_controllen = self.control_bytes as _;
        }
        header
    }
}

/// Room for several received trains: buffers of 64 KiB, allocated once.
pub struct Batch {
    buffers: Vec<u8>,
    headers: Vec<libc::mmsghdr>,
    iovs: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    count: usize,
}

// SAFETY: the raw pointers in headers and iovs point into the batch's own allocations and are set anew before each use.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("slots", &self.headers.len()).field("count", &self.count).finish_non_exhaustive()
    }
}

impl Batch {
    /// Room for `slots` trains.
    pub fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        // SAFETY: all zero is a valid mmsghdr, iovec and sockaddr_storage.
        let (header, iov, name) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Self {
            buffers: vec![0; slots * SLOT_BYTES],
            headers: vec![header; slots],
            iovs: vec![iov; slots],
            names: vec![name; slots],
            controls: vec![Control::EMPTY; slots],
            count: 0,
        }
    }

    fn prepare(&mut self) {
        let slots = self.buffers.chunks_exact_mut(SLOT_BYTES).zip(&mut self.iovs).zip(&mut self.names).zip(&mut self.controls);
        for (header, (((buffer, iov), name), control)) in self.headers.iter_mut().zip(slots) {
            *iov = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_hdr.msg_iov = iov;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr();
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header.msg_hdr.msg_flags = 0;
            header.msg_len = 0;
        }
    }

    /// The trains of the last [`Socket::receive`]. Empty datagrams and truncated ones are left out.
    pub fn trains(&mut self) -> impl Iterator<Item = Received<'_>> {
        let slots = self.buffers.chunks_exact_mut(SLOT_BYTES).zip(&self.headers).zip(&self.names);
        slots.take(self.count).filter_map(|((buffer, header), name)| {
            let len = header.msg_len as usize;
            if len == 0 || header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                return None;
            }
            let from = address(name)?;
            // SAFETY: the kernel has filled in the header, whose control buffer lives in the batch.
            let Sideband { traffic_class, segment_bytes, to } = unsafe { control::read(&header.msg_hdr) };
            let train = buffer.get_mut(..len)?;
            let segment_bytes = segment_bytes.filter(|&bytes| bytes > 0).unwrap_or(len).min(len);
            Some(Received { from, to, ecn: traffic_class & 0b11, train, segment_bytes })
        })
    }
}

/// The canonical form of an address that the kernel has written.
fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which of the types this storage holds.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            Some(match ip.to_ipv4_mapped() {
                Some(v4) => SocketAddr::new(IpAddr::V4(v4), port),
                None => SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

/// Datagrams to one `sendmmsg`.
const GROUP: usize = 64;

const SEND_FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
