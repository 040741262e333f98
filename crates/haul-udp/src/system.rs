//! The system's socket and how it is set up: what the code of each system works on.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How a socket is set up.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Hand whole trains to the kernel where it takes them. Default: yes.
    pub segment_offload: bool,
    /// Take whole trains from the kernel where it gives them. Default: yes.
    pub receive_offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_offload: true, receive_offload: true }
    }
}

/// The system's socket.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) inner: socket2::Socket,
    pub(crate) ipv6: bool,
    /// Who it is connected to, in the family of the socket.
    pub(crate) peer: Option<SocketAddr>,
    /// Trains may still go out whole. Cleared for good by the first one that the system refuses for being a train.
    pub(crate) segment_offload: AtomicBool,
}

/// Binds to an interface; false where the system does not let this user.
pub(crate) fn bind_interface(socket: &socket2::Socket, interface: &str) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    match socket.bind_device(Some(interface.as_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        result => result.map(|()| true),
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, interface);
        Ok(false)
    }
}

/// How long to wait for room in the system's buffer before a train counts as lost.
pub(crate) const SEND_PATIENCE: Duration = Duration::from_secs(1);
