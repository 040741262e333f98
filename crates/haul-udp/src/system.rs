//! The system's socket and how it is set up: what the code of each system works on.

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

/// How long to wait for room in the system's buffer before a train counts as lost.
pub(crate) const SEND_PATIENCE: Duration = Duration::from_secs(1);
