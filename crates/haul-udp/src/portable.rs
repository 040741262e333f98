//! Trains on other systems than Linux: every datagram travels alone, unless the system says that it cuts trains itself.

mod own;

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{MaybeUninitSlice, SockAddr};

use crate::system::{Options, SEND_PATIENCE, System};
use crate::train::{Outgoing, Received, SLOT_BYTES, Sent};

/// How often a receiver that waits looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(200);

impl System {
    pub(crate) fn set_system_options(&self, options: Options) -> io::Result<()> {
        self.segment_offload.store(options.segment_offload && own::takes_trains(&self.inner), Ordering::Relaxed);
        own::forbid_fragments(&self.inner, self.ipv6);
        self.inner.set_write_timeout(Some(SEND_PATIENCE))
    }

    pub(crate) fn allow_fragmentation(&self) -> io::Result<()> {
        own::allow_fragments(&self.inner, self.ipv6)
    }

    #[expect(clippy::unnecessary_wraps, reason = "as where a send can show that the socket is unusable")]
    pub(crate) fn send_train(&self, outgoing: &Outgoing<'_>, _wait: bool) -> io::Result<Sent> {
        if outgoing.train.is_empty() {
            return Ok(self.send_datagram(&[], outgoing.to));
        }
        if outgoing.train.len() > outgoing.segment_bytes
            && self.segment_offload.load(Ordering::Relaxed)
            && let Some(sent) = self.send_whole(outgoing)
        {
            return Ok(sent);
        }
        let mut sent = outgoing.train.chunks(outgoing.segment_bytes).map(|datagram| self.send_datagram(datagram, outgoing.to));
        Ok(sent.find(|sent| !matches!(sent, Sent::Taken)).unwrap_or(Sent::Taken))
    }

    /// Hands a train to the system whole; none where it was refused for being one: then trains are cut here from now on.
    fn send_whole(&self, outgoing: &Outgoing<'_>) -> Option<Sent> {
        let to = (self.peer != Some(outgoing.to)).then(|| SockAddr::from(outgoing.to));
        match own::send(&self.inner, outgoing.train, outgoing.segment_bytes, to.as_ref()) {
            Ok(()) => Some(Sent::Taken),
            Err(error) if is_about_trains(&error) => {
                tracing::debug!(%error, "no trains");
                self.segment_offload.store(false, Ordering::Relaxed);
                None
            }
            Err(error) => Some(Sent::Lost(error)),
        }
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
        // Who waits without end looks now and then whether it was stopped: not every system lets a socket wake itself.
        (batch.len, batch.from) = self.take_datagram(&mut batch.buffer, Some(patience.unwrap_or(LOOK)))?;
        Ok(1)
    }

    /// Takes a datagram that is there already.
    pub(crate) fn take_train<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<Received<'a>>> {
        if !own::may_be_readable(&self.inner) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
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
        self.inner.set_read_timeout(patience.map(|patience| patience.max(own::LEAST_WAIT)))?;
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

/// Whether a train was refused for what it is: too large a datagram, a wrong argument, no such option, no such operation.
fn is_about_trains(error: &io::Error) -> bool {
    is_too_big(error) || matches!(error.raw_os_error(), Some(10022 | 10042 | 10045)) || error.kind() == io::ErrorKind::Unsupported
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
