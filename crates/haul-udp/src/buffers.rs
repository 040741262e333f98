//! Socket buffers: asked for, checked, and complained about.

use haul_units::Bytes;
use socket2::Socket;

/// What the kernel may queue for the process to read: at 10 Gbit/s a pause of 50 ms of the receive thread.
pub(super) const WANTED_RECEIVE: Bytes = Bytes::mib(64);

/// What the kernel may queue to be sent. Pacing keeps it nearly empty, and a queue here only adds delay: a few trains and some air.
pub(super) const WANTED_SEND: Bytes = Bytes::mib(8);

/// Sizes of a socket's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    /// Granted for received datagrams.
    pub receive: Bytes,
    /// Granted for datagrams to be sent.
    pub send: Bytes,
}

impl BufferSizes {
    /// Asks for large buffers and reads back what was granted.
    pub(super) fn request(socket: &Socket) -> Self {
        Self { receive: request_receive(socket), send: request_send(socket) }
    }

    /// What to tell the user where the system grants too little, with the setting to change. Half of what was asked for will do.
    pub fn warning(&self) -> Option<String> {
        let short = |granted: Bytes, wanted: Bytes| granted.0 < wanted.0 / 2;
        let mut parts = Vec::new();
        let mut settings = Vec::new();
        if short(self.receive, WANTED_RECEIVE) {
            parts.push(format!("receive buffer {} of {WANTED_RECEIVE}", self.receive));
            settings.push(format!("net.core.rmem_max={}", WANTED_RECEIVE.0));
        }
        if short(self.send, WANTED_SEND) {
            parts.push(format!("send buffer {} of {WANTED_SEND}", self.send));
            settings.push(format!("net.core.wmem_max={}", WANTED_SEND.0));
        }
        if parts.is_empty() {
            return None;
        }
        let hint = if cfg!(target_os = "linux") {
            format!("to allow more: sysctl -w {}", settings.join(" "))
        } else {
            "allow larger UDP socket buffers in the system's settings".to_owned()
        };
        Some(format!("the system grants small UDP buffers ({}): packets may be lost at high speed; {hint}", parts.join(", ")))
    }
}

fn request_receive(socket: &Socket) -> Bytes {
    #[cfg(target_os = "linux")]
    force(socket, libc::SO_RCVBUFFORCE, WANTED_RECEIVE);
    let granted = || granted(socket.recv_buffer_size());
    if granted() < WANTED_RECEIVE {
        // Where the system caps the size, it grants the cap; where it refuses instead, halving finds what it takes.
        let mut size = WANTED_RECEIVE.0 as usize;
        while socket.set_recv_buffer_size(size).is_err() && size > (256 << 10) {
            size /= 2;
        }
    }
    granted()
}

fn request_send(socket: &Socket) -> Bytes {
    #[cfg(target_os = "linux")]
    force(socket, libc::SO_SNDBUFFORCE, WANTED_SEND);
    let granted = || granted(socket.send_buffer_size());
    if granted() < WANTED_SEND {
        let mut size = WANTED_SEND.0 as usize;
        while socket.set_send_buffer_size(size).is_err() && size > (256 << 10) {
            size /= 2;
        }
    }
    granted()
}

/// The size asked for that the reported one stands for: Linux doubles it for its own bookkeeping (socket(7)).
fn granted(reported: std::io::Result<usize>) -> Bytes {
    let reported = reported.unwrap_or(0) as u64;
    Bytes(if cfg!(target_os = "linux") { reported / 2 } else { reported })
}

/// Asks past the system's cap: succeeds with CAP_NET_ADMIN, else nothing happens.
#[cfg(target_os = "linux")]
fn force(socket: &Socket, option: libc::c_int, size: Bytes) {
    // A refusal needs no handling: the plain option is tried next.
    let _ = crate::linux::set_option(socket, libc::SOL_SOCKET, option, size.0 as libc::c_int);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_with_the_setting_only_when_short() {
        let enough = BufferSizes { receive: WANTED_RECEIVE, send: WANTED_SEND };
        assert_eq!(enough.warning(), None);
        let short = BufferSizes { receive: Bytes::kib(208), ..enough };
        let text = short.warning().expect("too small");
        assert!(text.contains("208 KiB"), "{text}");
        assert!(!cfg!(target_os = "linux") || text.contains("sysctl -w net.core.rmem_max=67108864"), "{text}");
        assert!(!text.contains("wmem"), "{text}");
    }
}
