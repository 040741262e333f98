//! Windows: UDP segmentation offload since Windows 10 of 2004, where the system says that it has it (`UDP_SEND_MSG_SIZE`), and don't-fragment.
//!
//! Sources: Microsoft, "IPPROTO_UDP socket options", "IPPROTO_IP socket options", "WSASendMsg".

use std::io;
use std::mem::size_of;
use std::os::windows::io::AsRawSocket as _;
use std::ptr::null_mut;
use std::time::Duration;

use socket2::{SockAddr, Socket};
use windows_sys::Win32::Networking::WinSock::{
    CMSGHDR, IP_DONTFRAGMENT, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, IPV6_DONTFRAG, POLLRDNORM, SOCKET, SOCKET_ERROR,
    UDP_SEND_MSG_SIZE, WSABUF, WSAMSG, WSAPOLLFD, WSAPoll, WSASendMsg, setsockopt,
};

/// A control message with a size in it, and what pads it to the next one.
#[repr(C)]
struct SizeMessage {
    header: CMSGHDR,
    size: u32,
    padding: u32,
}

/// The shortest time that a socket can be told to wait: the system counts milliseconds, and none stands for ever.
pub(in crate::portable) const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Whether there is something to receive, or an error to be told.
pub(in crate::portable) fn may_be_readable(socket: &Socket) -> bool {
    let mut asked = WSAPOLLFD { fd: raw(socket), events: POLLRDNORM, revents: 0 };
    // SAFETY: the one structure outlives the call, which does not wait.
    unsafe { WSAPoll(&raw mut asked, 1, 0) > 0 }
}

/// Whether the system cuts trains: it takes the option, which is set to none here.
pub(in crate::portable) fn takes_trains(socket: &Socket) -> bool {
    set(socket, IPPROTO_UDP, UDP_SEND_MSG_SIZE, 0).is_ok()
}

/// Hands a train over whole.
pub(in crate::portable) fn send(socket: &Socket, train: &[u8], segment_bytes: usize, to: Option<&SockAddr>) -> io::Result<()> {
    let size = u32::try_from(segment_bytes).map_err(io::Error::other)?;
    let header =
        CMSGHDR { cmsg_len: size_of::<CMSGHDR>() + size_of::<u32>(), cmsg_level: IPPROTO_UDP, cmsg_type: UDP_SEND_MSG_SIZE };
    let mut control = SizeMessage { header, size, padding: 0 };
    let length = u32::try_from(train.len()).map_err(io::Error::other)?;
    let mut buffer = WSABUF { len: length, buf: train.as_ptr().cast_mut() };
    let message = WSAMSG {
        name: to.map_or(null_mut(), |to| to.as_ptr().cast_mut().cast()),
        namelen: to.map_or(0, SockAddr::len),
        lpBuffers: &raw mut buffer,
        dwBufferCount: 1,
        Control: WSABUF { len: size_of::<SizeMessage>() as u32, buf: (&raw mut control).cast() },
        dwFlags: 0,
    };
    let mut sent = 0;
    // SAFETY: all that is pointed to outlives the call, which waits; the train and the address are read only.
    match unsafe { WSASendMsg(raw(socket), &raw const message, 0, &raw mut sent, null_mut(), None) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A packet that is too large is to be lost, so that its size is known to be too much. A socket of one family refuses the other's option.
pub(in crate::portable) fn forbid_fragments(socket: &Socket, ipv6: bool) {
    let _ = set(socket, IPPROTO_IP, IP_DONTFRAGMENT, 1);
    if ipv6 {
        let _ = set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
    }
}

/// Leaves it to the system again.
pub(in crate::portable) fn allow_fragments(socket: &Socket, ipv6: bool) -> io::Result<()> {
    let v4 = set(socket, IPPROTO_IP, IP_DONTFRAGMENT, 0);
    if ipv6 { set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 0) } else { v4 }
}

fn set(socket: &Socket, level: i32, option: i32, value: u32) -> io::Result<()> {
    let length = size_of::<u32>() as i32;
    // SAFETY: the value outlives the call, and has that length.
    match unsafe { setsockopt(raw(socket), level, option, (&raw const value).cast(), length) } {
        SOCKET_ERROR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn raw(socket: &Socket) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}
