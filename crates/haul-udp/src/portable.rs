//! Trains on systems without offload: every datagram travels alone.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::time::Duration;

use super::socket::SEND_PATIENCE;
use super::{Options, Outgoing, Received, SLOT_BYTES, Sent, Socket};

impl Socket {
    pub(super) fn set_system_options(&self, _options: Options) -> io::Result<()> {
        self.inner.set_write_timeout(Some(SEND_PATIENCE))
    }

    pub(super) fn send_train(&self, outgoing: &Outgoing<'_>, _wait: bool) -> io::Result<Sent> {
        let to = outgoing.to.into();
        for datagram in outgoing.train.chunks(outgoing.segment_bytes) {
            loop {
                match self.inner.send_to(datagram, &to) {
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if is_too_big(&error) => return Ok(Sent::TooBig),
                    Err(error) => return Ok(Sent::Lost(error)),
                }
            }
        }
        Ok(Sent::Taken)
    }

    pub(super) fn receive_trains(&self, batch: &mut Batch, patience: Option<Duration>) -> io::Result<usize> {
        batch.from = None;
        // A timeout of zero would mean none.
        self.inner.set_read_timeout(patience.map(|patience| patience.max(Duration::from_micros(1))))?;
        // SAFETY: initialised bytes may be seen as possibly uninitialised ones, and `recv_from` only ever writes to them.
        let buffer = unsafe { &mut *(std::ptr::from_mut(batch.buffer.as_mut_slice()) as *mut [MaybeUninit<u8>]) };
        let (len, from) = self.inner.recv_from(buffer)?;
        batch.len = len;
        batch.from = from.as_socket().map(|from| SocketAddr::new(from.ip().to_canonical(), from.port()));
        Ok(1)
    }

    /// An empty datagram to ourselves ends a blocked receive.
    pub(super) fn wake_receiver(&self) {
        let mut to = self.local_addr();
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

    /// The datagram of the last [`Socket::receive`].
    pub fn trains(&mut self) -> impl Iterator<Item = Received<'_>> {
        let (len, from) = (self.len, self.from.take());
        let train = self.buffer.get_mut(..len).filter(|train| !train.is_empty());
        train.zip(from).into_iter().map(move |(train, from)| Received { from, to: None, ecn: 0, train, segment_bytes: len })
    }
}
