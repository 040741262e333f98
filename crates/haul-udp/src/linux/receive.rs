//! Trains in: one `recvmmsg` fills several slots, one `recvmsg` a buffer of the caller's.

use std::io;
use std::mem::zeroed;
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_long};

use super::address;
use super::control::{self, CONTROL_BYTES, Control, Sideband};
use crate::system::System;
use crate::train::{Received, SLOT_BYTES};

impl System {
    /// Fills `batch`; waits for the first train, at most as long as `patience` where there is such a limit.
    pub(crate) fn receive_trains(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<usize> {
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
        batch.taken = control::realtime();
        Ok(batch.count)
    }

    /// Takes a train that is there already.
    pub(crate) fn take_train<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<Received<'a>>> {
        // SAFETY: all zero is a valid msghdr, iovec and sockaddr_storage.
        let (mut header, mut iov, mut name): (libc::msghdr, _, _) = unsafe { zeroed() };
        let mut control = Control::EMPTY;
        point(&mut header, room, &mut iov, &mut name, &mut control);
        // SAFETY: the header points to live buffers of the lengths it names, for the duration of the call.
        let result = unsafe { libc::recvmsg(self.fd(), &raw mut header, libc::MSG_DONTWAIT) };
        let len = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has filled in the header, and its buffers are live.
        Ok(unsafe { received(&header, len, &name, room, control::realtime()) })
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
    /// When they were taken, by the clock of their times of arrival.
    taken: Option<Duration>,
}

// SAFETY: the raw pointers in headers and iovs point into the batch's own allocations and are set anew before each use.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("slots", &self.headers.len()).field("count", &self.count).finish_non_exhaustive()
    }
}

impl Batch {
    /// Room for `slots` trains, at least one.
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
            taken: None,
        }
    }

    fn prepare(&mut self) {
        let slots = self.buffers.chunks_exact_mut(SLOT_BYTES).zip(&mut self.iovs).zip(&mut self.names).zip(&mut self.controls);
        for (header, (((buffer, iov), name), control)) in self.headers.iter_mut().zip(slots) {
            point(&mut header.msg_hdr, buffer, iov, name, control);
            header.msg_len = 0;
        }
    }

    /// The trains of the last [`Socket::receive`](crate::Socket::receive). Empty datagrams and truncated ones are left out.
    pub fn trains(&mut self) -> impl Iterator<Item = Received<'_>> {
        let slots = self.buffers.chunks_exact_mut(SLOT_BYTES).zip(&self.headers).zip(&self.names);
        slots.take(self.count).filter_map(|((buffer, header), name)| {
            // SAFETY: the kernel has filled in the header, whose buffers live in the batch.
            let received = unsafe { received(&header.msg_hdr, header.msg_len as usize, name, buffer, self.taken) };
            received.filter(|received| !received.train.is_empty())
        })
    }
}

/// Points a header to the buffers that `recvmsg` is to fill.
fn point(
    header: &mut libc::msghdr,
    buffer: &mut [u8],
    iov: &mut libc::iovec,
    name: &mut libc::sockaddr_storage,
    control: &mut Control,
) {
    *iov = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    header.msg_name = ptr::from_mut(name).cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
    header.msg_iov = iov;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr();
    header.msg_controllen = CONTROL_BYTES as _;
    header.msg_flags = 0;
}

/// The train of `len` bytes in `buffer`; `None` if it was truncated.
///
/// # Safety
/// `header` must be as `recvmsg` left it, and the control buffer that it points to be live.
unsafe fn received<'a>(
    header: &libc::msghdr,
    len: usize,
    name: &libc::sockaddr_storage,
    buffer: &'a mut [u8],
    taken: Option<Duration>,
) -> Option<Received<'a>> {
    if header.msg_flags & libc::MSG_TRUNC != 0 {
        return None;
    }
    let from = address::read(name)?;
    // SAFETY: by the contract of this function.
    let Sideband { traffic_class, segment_bytes, to, arrived } = unsafe { control::read(header) };
    let train = buffer.get_mut(..len)?;
    let segment_bytes = segment_bytes.filter(|&bytes| bytes > 0).unwrap_or(len).clamp(1, len.max(1));
    let waited = taken.zip(arrived).map_or(Duration::ZERO, |(taken, arrived)| waited(taken, arrived));
    Some(Received { from, to, ecn: traffic_class & 0b11, train, segment_bytes, waited })
}

/// How long a train has waited. The clock may have been set meanwhile: what cannot be is taken for nothing.
fn waited(taken: Duration, arrived: Duration) -> Duration {
    Some(taken.saturating_sub(arrived)).filter(|waited| *waited < WAITED_MOST).unwrap_or_default()
}

/// A process may be stopped for some time (SIGSTOP); a clock is set by more.
const WAITED_MOST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_makes_nothing_wait() {
        let at = Duration::from_millis;
        assert_eq!(waited(at(5_000), at(4_990)), at(10));
        assert_eq!(waited(at(5_000), at(5_010)), Duration::ZERO);
        assert_eq!(waited(at(5_000_000), at(5_000)), Duration::ZERO);
    }
}
