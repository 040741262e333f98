//! Spares ssh the round trips of Nagle's algorithm while it logs in.
//!
//! OpenSSH sets `TCP_NODELAY` only once a channel is open. Twice before that it writes two small packets one after the other (new keys and the service request; the channel and
//! "no more sessions"), and the kernel holds the second back until the first is acknowledged: a round trip each. What the server writes waits in the same way for this side's delayed
//! acknowledgements, 40 ms each. Linux lets a process reach the sockets of its child (`pidfd_getfd`), where both can be set; where it does not, nothing changes.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{set_tcp_nodelay, set_tcp_quickack};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// How often it is done: ssh may try several addresses, and the kernel goes back to delaying acknowledgements by itself.
const INTERVAL: Duration = Duration::from_millis(10);

/// Keeps a child's TCP connections prompt until dropped.
#[derive(Debug)]
pub struct NoDelay {
    over: Arc<AtomicBool>,
}

impl NoDelay {
    /// Begins. The child is not waited for before this is dropped, so its number stays its own.
    pub fn of(child: &Child) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
            && let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
        {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    sockets(pid, &process).for_each(|socket| {
                        // Sockets of another kind have no such option.
                        let _ = set_tcp_nodelay(&socket, true).and_then(|()| set_tcp_quickack(&socket, true));
                    });
                    thread::park_timeout(INTERVAL);
                }
            });
        }
        Self { over }
    }
}

impl Drop for NoDelay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The sockets that a process has open, as far as it may be looked at.
fn sockets(pid: Pid, process: &OwnedFd) -> impl Iterator<Item = OwnedFd> {
    let entries = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    let open = entries.filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:")));
    open.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()).ok()
    })
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
        let prompt = NoDelay::of(&child);
        while !tcp_nodelay(&connection).expect("an option of TCP") {
            assert!(child.try_wait().expect("a child").is_none(), "it ended before it was looked at");
            thread::park_timeout(INTERVAL);
        }
        drop(prompt);
        child.kill().expect("a child");
        child.wait().expect("a child");
    }
}
