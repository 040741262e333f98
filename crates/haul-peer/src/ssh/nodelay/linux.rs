//! Spares ssh the round trips of Nagle's algorithm while it logs in, looks how long they are, and whether its connection is dead.
//!
//! OpenSSH sets `TCP_NODELAY` only once a channel is open. Twice before that it writes two small packets one after the other (new keys and the service request; the channel and
//! "no more sessions"), and the kernel holds the second back until the first is acknowledged: a round trip each. What the server writes waits in the same way for this side's delayed
//! acknowledgements, 40 ms each. Linux lets a process reach the sockets of its child (`pidfd_getfd`), where both can be set; where it does not, nothing changes. Nor where the connection is not the child's own: through a jump host or a wrapper it is a grandchild's.
//!
//! A connection whose own address this host has lost is dead, and nobody tells: ssh would wait for a quarter of an hour.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::getsockname;
use rustix::net::sockopt::{set_tcp_nodelay, set_tcp_quickack};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::clock;
use crate::tcp_info::TcpInfo;

/// How often it is done: ssh may try several addresses, and the kernel goes back to delaying acknowledgements by itself.
const INTERVAL: Duration = Duration::from_millis(10);
/// So long an address must have been away: one that is taken away and given back, as some do that renew a lease, kills nothing.
const AWAY: Duration = Duration::from_secs(1);

/// Keeps a child's TCP connections prompt until dropped.
#[derive(Debug)]
pub struct NoDelay {
    over: Arc<AtomicBool>,
    /// Smallest round-trip time seen, in microseconds; 0 for none.
    rtt_us: Arc<AtomicU64>,
    /// The newest connection has lost its address.
    cut_off: Arc<AtomicBool>,
}

impl NoDelay {
    /// Begins. The child is not waited for before this is dropped, so its number stays its own.
    pub fn of(child: &Child) -> Self {
        let (over, rtt_us, cut_off) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let pid = Pid::from_child(child);
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
            let (over, rtt_us, cut_off) = (Arc::clone(&over), Arc::clone(&rtt_us), Arc::clone(&cut_off));
            thread::spawn(move || {
                let mut away_since = None;
                // Who may not look is not to try again: some systems log each attempt.
                while !over.load(Ordering::Relaxed)
                    && let Ok(sockets) = sockets(pid, &process)
                {
                    // It has none before it connects.
                    let is_away = sockets.iter().any(has_lost_its_address);
                    away_since = is_away.then(|| away_since.unwrap_or_else(clock::now));
                    cut_off.store(away_since.is_some_and(|since| clock::now() - since >= AWAY), Ordering::Relaxed);
                    for socket in sockets {
                        // Sockets of another kind have no such option.
                        let _ = set_tcp_nodelay(&socket, true).and_then(|()| set_tcp_quickack(&socket, true));
                        if let Some(rtt) = TcpInfo::of(&socket).ok().and_then(|info| info.min_rtt()) {
                            rtt_us.store(u64::try_from(rtt.as_micros()).unwrap_or(0), Ordering::Relaxed);
                        }
                    }
                    thread::park_timeout(INTERVAL);
                }
            });
        }
        Self { over, rtt_us, cut_off }
    }

    /// Whether the child's connection is known to be dead: this host has lost the address that it was made from.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Round-trip time of the child's newest connection, if it could be looked at.
    pub fn rtt(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.rtt_us.load(Ordering::Relaxed))).filter(|rtt| !rtt.is_zero())
    }
}

impl Drop for NoDelay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Whether a socket is bound to an address that this host has not got.
fn has_lost_its_address(socket: &OwnedFd) -> bool {
    // Sockets of another kind have no such name; nor has one that is not connected.
    let Some(own) = getsockname(socket).ok().and_then(|own| SocketAddr::try_from(own).ok()) else { return false };
    !own.ip().is_unspecified()
        && UdpSocket::bind(SocketAddr::new(own.ip(), 0)).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// The sockets that a process has open, if they may be had.
fn sockets(pid: Pid, process: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut sockets = Vec::new();
    for entry in fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))?.flatten() {
        let is_socket = fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|_| is_socket) else { continue };
        match pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()) {
            Ok(socket) => sockets.push(socket),
            // Closed meanwhile.
            Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    use rustix::net::sockopt::tcp_nodelay;

    use super::*;

    #[test]
    fn a_child_s_connection_is_made_prompt() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let connection = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        assert!(!tcp_nodelay(&connection).expect("an option of TCP"));
        let inherited: OwnedFd = connection.try_clone().expect("a second descriptor").into();
        let mut child = Command::new("cat").stdin(inherited).stdout(Stdio::null()).spawn().expect("cat");
        let pid = Pid::from_child(&child);
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("a child");
        if let Err(error) = sockets(pid, &process) {
            child.kill().expect("a child");
            child.wait().expect("a child");
            return skip::skip(format_args!("this system does not let a process reach its child's sockets: {error}"));
        }
        let prompt = NoDelay::of(&child);
        while !tcp_nodelay(&connection).expect("an option of TCP") || prompt.rtt().is_none() {
            assert!(child.try_wait().expect("a child").is_none(), "it ended before it was looked at");
            thread::park_timeout(INTERVAL);
        }
        drop(prompt);
        child.kill().expect("a child");
        child.wait().expect("a child");
    }
}
