//! Trains out: one `sendmsg` with UDP_SEGMENT, or `sendmmsg` where the system does not take a train whole.

use std::io;
use std::mem::zeroed;
use std::sync::atomic::Ordering;

use libc::c_int;
use socket2::SockAddr;

use super::control::{Control, Writer};
use crate::system::{SEND_PATIENCE, System};
use crate::train::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, Outgoing, Sent};

impl System {
    pub(crate) fn send_train(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        if outgoing.train.len() <= outgoing.segment_bytes {
            return self.send_one(outgoing, wait);
        }
        if outgoing.train.len().div_ceil(outgoing.segment_bytes) <= MAX_TRAIN_SEGMENTS
            && outgoing.train.len() <= MAX_TRAIN_BYTES
            && self.segment_offload.load(Ordering::Relaxed)
        {
            return self.send_offloaded(outgoing, wait);
        }
        self.send_singly(outgoing, wait)
    }

    fn send_one(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let mut message = Message::new(self, outgoing, None);
        let mut iov = iovec(outgoing.train);
        let header = message.header(&mut iov);
        // SAFETY: the header points to live buffers of the lengths it names, for the duration of the call.
        let call = || unsafe { libc::sendmsg(self.fd(), &raw const header, SEND_FLAGS) };
        self.until_room(wait, call).map_or_else(classify, |_| Ok(Sent::Taken))
    }

    fn send_offloaded(&self, outgoing: &Outgoing<'_>, wait: bool) -> io::Result<Sent> {
        let segment_bytes = outgoing.segment_bytes.min(usize::from(u16::MAX)) as u16;
        let mut message = Message::new(self, outgoing, Some(segment_bytes));
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
        let mut message = Message::new(self, outgoing, None);
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
                let call = || unsafe { libc::sendmmsg(self.fd(), rest.as_mut_ptr(), rest.len() as _, SEND_FLAGS as _) as isize };
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
    /// `None` for a connected socket's peer: the kernel knows the way to it already.
    to: Option<SockAddr>,
    control: Control,
    control_bytes: usize,
}

impl Message {
    fn new(socket: &System, outgoing: &Outgoing<'_>, segment_bytes: Option<u16>) -> Self {
        let mut control = Control::EMPTY;
        let mut writer = Writer::new(&mut control);
        if let Some(bytes) = segment_bytes {
            writer.segment_bytes(bytes);
        }
        if outgoing.ecn != 0 {
            writer.traffic_class(&outgoing.to, outgoing.ecn & 0b11);
        }
        if let Some(source) = outgoing.from {
            writer.source(socket.ipv6, source);
        }
        let control_bytes = writer.finish();
        let to = if socket.peer == Some(outgoing.to) { None } else { Some(outgoing.to.into()) };
        Self { to, control, control_bytes }
    }

    /// A header that points into `self` and to `iov`.
    fn header(&mut self, iov: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all zero is a valid msghdr.
        let mut header: libc::msghdr = unsafe { zeroed() };
        if let Some(to) = &self.to {
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len();
        }
        header.msg_iov = iov;
        header.msg_iovlen = 1;
        if self.control_bytes > 0 {
            header.msg_control = self.control.as_mut_ptr();
            header.msg_controllen = self.control_bytes as _;
        }
        header
    }
}

/// Datagrams to one `sendmmsg`.
const GROUP: usize = 64;

const SEND_FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
