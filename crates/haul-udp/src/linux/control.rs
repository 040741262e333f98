//! Control messages of `sendmsg` and `recvmsg` (cmsg(3)): what travels beside the bytes of a train.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use libc::{c_int, c_void};

/// Room for every control message that is asked for: segment size, traffic class, address, time.
pub(super) const CONTROL_BYTES: usize = 256;

/// A control buffer, aligned as `cmsghdr` wants it.
#[derive(Clone, Copy)]
pub(super) struct Control([u64; CONTROL_BYTES / 8]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_BYTES / 8]);

    pub(super) fn as_mut_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// Appends control messages to a buffer.
pub(super) struct Writer<'a> {
    control: &'a mut Control,
    used_bytes: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(control: &'a mut Control) -> Self {
        Self { control, used_bytes: 0 }
    }

    /// Bytes written: `msg_controllen`.
    pub(super) fn finish(self) -> usize {
        self.used_bytes
    }

    pub(super) fn segment_bytes(&mut self, bytes: u16) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    }

    /// The traffic class, in the family of the packet that results: IPv4 also for IPv4-mapped addresses.
    pub(super) fn traffic_class(&mut self, to: &SocketAddr, class: u8) {
        if to.ip().to_canonical().is_ipv4() {
            self.push(libc::IPPROTO_IP, libc::IP_TOS, c_int::from(class));
        } else {
            self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, c_int::from(class));
        }
    }

    /// The source address, in the family of the socket.
    pub(super) fn source(&mut self, ipv6_socket: bool, source: IpAddr) {
        match (ipv6_socket, source) {
            (false, IpAddr::V4(ip)) => {
                let address = libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
                let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: libc::in_addr { s_addr: 0 } };
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            (true, ip) => {
                let ip = match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                let info = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 };
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
            (false, IpAddr::V6(_)) => {}
        }
    }

    fn push<T: Copy>(&mut self, level: c_int, kind: c_int, value: T) {
        // SAFETY: CMSG_SPACE, CMSG_LEN only compute sizes.
        let (space, len) = unsafe {
            let size = size_of::<T>() as libc::c_uint;
            (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size) as usize)
        };
        assert!(self.used_bytes + space <= CONTROL_BYTES, "control messages exceed their buffer");
        // SAFETY: header and value lie within the buffer (asserted above); the buffer is aligned to 8 and `space` keeps that.
        unsafe {
            let header = self.control.0.as_mut_ptr().byte_add(self.used_bytes).cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = len as _;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.used_bytes += space;
    }
}

/// What came beside a received train.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sideband {
    pub(super) traffic_class: u8,
    pub(super) segment_bytes: Option<usize>,
    pub(super) to: Option<IpAddr>,
    /// When it came, by the clock that people set (`CLOCK_REALTIME`).
    pub(super) arrived: Option<Duration>,
}

/// Reads the control messages of a message that the kernel has filled in.
///
/// # Safety
/// `header` must be as `recvmsg` left it: `msg_control` and `msg_controllen` describe valid control messages.
pub(super) unsafe fn read(header: &libc::msghdr) -> Sideband {
    let mut sideband = Sideband::default();
    // SAFETY: by the contract of this function the macros walk within the control buffer.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give a valid header or null.
    while let Some(message) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        let data = unsafe { libc::CMSG_DATA(next) };
        // SAFETY: CMSG_LEN only computes a size.
        let before = unsafe { libc::CMSG_LEN(0) } as usize;
        #[allow(clippy::unnecessary_cast, reason = "the C libraries differ in its type")]
        let len = (message.cmsg_len as usize).saturating_sub(before);
        // SAFETY: the kernel has written `len` bytes at `data`.
        unsafe { sideband.take(message.cmsg_level, message.cmsg_type, data, len) };
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
    sideband
}

impl Sideband {
    /// # Safety
    /// `len` bytes must be readable at `data`.
    unsafe fn take(&mut self, level: c_int, kind: c_int, data: *const u8, len: usize) {
        match (level, kind) {
            // The kernel sends IP_TOS as one byte, IPV6_TCLASS as an int.
            (libc::IPPROTO_IP, libc::IP_TOS) if len >= 1 => {
                // SAFETY: at least one byte.
                self.traffic_class = unsafe { *data };
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if len >= size_of::<c_int>() => {
                // SAFETY: the size was checked.
                self.traffic_class = unsafe { data.cast::<c_int>().read_unaligned() } as u8;
            }
            (libc::SOL_UDP, libc::UDP_GRO) if len >= size_of::<c_int>() => {
                // SAFETY: the size was checked.
                self.segment_bytes = usize::try_from(unsafe { data.cast::<c_int>().read_unaligned() }).ok();
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) if len >= size_of::<libc::in_pktinfo>() => {
                // SAFETY: the size was checked.
                let info = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
                self.to = Some(IpAddr::V4(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes())));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if len >= size_of::<libc::in6_pktinfo>() => {
                // SAFETY: the size was checked.
                let info = unsafe { data.cast::<libc::in6_pktinfo>().read_unaligned() };
                self.to = Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)).to_canonical());
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if len >= size_of::<libc::timespec>() => {
                // SAFETY: the size was checked.
                self.arrived = since_epoch(unsafe { data.cast::<libc::timespec>().read_unaligned() });
            }
            _ => {}
        }
    }
}

/// The time of `CLOCK_REALTIME`.
pub(super) fn realtime() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the time.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    if result == 0 { since_epoch(time) } else { None }
}

fn since_epoch(time: libc::timespec) -> Option<Duration> {
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut control = Control::EMPTY;
        let to: SocketAddr = "[2001:db8::1]:9".parse().expect("an address");
        let mut writer = Writer::new(&mut control);
        writer.segment_bytes(1472);
        writer.traffic_class(&to, 2);
        writer.source(true, "192.0.2.7".parse().expect("an address"));
        let used = writer.finish();
        // SAFETY: all zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.as_mut_ptr();
        header.msg_controllen = used as _;
        // SAFETY: the control messages were just written.
        let sideband = unsafe { read(&header) };
        assert_eq!(sideband.traffic_class, 2);
        assert_eq!(sideband.to, Some("192.0.2.7".parse().expect("an address")));
    }
}
