//! Trains on systems without offload: every datagram travels alone.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::MaybeUninitSlice;

use crate::system::{Options, SEND_PATIENCE, System};
use crate::train::{Outgoing, Received, SLOT_BYTES, Sent};

impl System {
    pub(crate) fn set_system_options(&self, _options: Options) -> io::Result<()> {
        self.segment_offload.store(false, Ordering::Relaxed);
        self.inner.set_write_timeout(Some(SEND_PATIENCE))
    }

    /// What was never forbidden here.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on systems that forbid it")]
    pub(crate) fn allow_fragmentation(&self) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "as where a send can show that the socket is unusable")]
    pub(crate) fn send_train(&self, outgoing: &Outgoing<'_>, _wait: bool) -> io::Result<Sent> {
        if outgoing.train.is_empty() {
            return Ok(self.send_datagram(&[], outgoing.to));
        }
        let mut sent = outgoing.train.chunks(outgoing.segment_bytes).map(|datagram| self.send_datagram(datagram, outgoing.to));
        Ok(sent.find(|sent| !matches!(sent, Sent::Taken)).unwrap_or(Sent::Taken))
    }

    fn send_datagram(&self, datagram: &[u8], to: SocketAddr) -> Sent {
        loop {
            // Some systems refuse an address where the socket is connected, even the peer's.
            let result = if self.peer == Some(to) { self.inner.send(datagram) } else { self.inner.send_to(datagram, &to.into()) };
            match result {
                Ok(_) => return Sent::Taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_too_big(&error) => return Sent::TooBig,
                Err(error) => return Sent::Lost(error),
            }
        }
    }

    pub(crate) fn receive_trains(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<usize> {
        batch.from = None;
        (batch.len, batch.from) = self.take_datagram(&mut batch.buffer, patience)?;
        Ok(1)
    }

    /// Takes a datagram that is there already.
    pub(crate) fn take_train<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<Received<'a>>> {
        let (len, from) = self.take_datagram(room, Some(Duration::ZERO))?;
        let received = room.get_mut(..len).zip(from);
        Ok(received.map(|(train, from)| Received {
            from,
            to: None,
            ecn: 0,
            train,
            segment_bytes: len.max(1),
            waited: Duration::ZERO,
        }))
    }

    /// Its length and sender; no sender if it was truncated.
    fn take_datagram(&self, room: &mut [u8], patience: Option<Duration>) -> io::Result<(usize, Option<SocketAddr>)> {
        // A timeout of zero would mean none.
        self.inner.set_read_timeout(patience.map(|patience| patience.max(Duration::from_micros(1))))?;
        // SAFETY: initialised bytes may be seen as possibly uninitialised ones, and `recv_from` only ever writes to them.
        let room = unsafe { &mut *(std::ptr::from_mut(room) as *mut [MaybeUninit<u8>]) };
        let (len, flags, from) = self.inner.recv_from_vectored(&mut [MaybeUninitSlice::new(room)])?;
        let from = from.as_socket().filter(|_| !flags.is_truncated());
        Ok((len, from.map(|from| SocketAddr::new(from.ip().to_canonical(), from.port()))))
    }

    /// An empty datagram to ourselves ends a blocked receive.
    pub(crate) fn wake_receiver(&self) {
        let Some(mut to) = self.inner.local_addr().ok().and_then(|addr| addr.as_socket()) else { return };
        if to.ip().is_unspecified() {
            to.set_ip(if self.ipv6 { std::net::Ipv6Addr::LOCALHOST.into() } else { std::net::Ipv4Addr::LOCALHOST.into() });
        }
        let _ = self.inner.send_to(&[], &to.into());
    }
}

fn is_too_big(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EMSGSIZE);
    #[cfg(not(unix))]
    return error.raw_os_error() == Some(10040);
}

/// Room for one received datagram.
#[derive(Debug)]
pub struct Batch {
    buffer: Vec<u8>,
    len: usize,
    from: Option<SocketAddr>,
}

impl Batch {
    /// Room for a datagram; the number of slots is of no consequence here.
    pub fn new(_slots: usize) -> Self {
        Self { buffer: vec![0; SLOT_BYTES], len: 0, from: None }
    }

    /// The datagram of the last [`Socket::receive`](crate::Socket::receive).
    pub fn trains(&mut self) -> impl Iterator<Item = Received<'_>> {
        let (len, from) = (self.len, self.from.take());
        let train = self.buffer.get_mut(..len).filter(|train| !train.is_empty());
        train.zip(from).into_iter().map(move |(train, from)| Received {
            from,
            to: None,
            ecn: 0,
            train,
            segment_bytes: len,
            waited: Duration::ZERO,
        })
    }
}
