//! Nothing that is known here.

use std::io;
use std::time::Duration;

use socket2::{SockAddr, Socket};

/// The shortest time that a socket can be told to wait.
pub(in crate::portable) const LEAST_WAIT: Duration = Duration::from_micros(1);

/// Whether there may be something to receive: not known, so one waits as short as one can.
pub(in crate::portable) const fn may_be_readable(_socket: &Socket) -> bool {
    true
}

/// Whether the system cuts trains.
pub(in crate::portable) const fn takes_trains(_socket: &Socket) -> bool {
    false
}

/// It does not.
pub(in crate::portable) fn send(
    _socket: &Socket,
    _train: &[u8],
    _segment_bytes: usize,
    _to: Option<&SockAddr>,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As it is.
pub(in crate::portable) const fn forbid_fragments(_socket: &Socket, _ipv6: bool) {}

/// What was never forbidden.
#[expect(clippy::unnecessary_wraps, reason = "as on systems that forbid it")]
pub(in crate::portable) const fn allow_fragments(_socket: &Socket, _ipv6: bool) -> io::Result<()> {
    Ok(())
}
