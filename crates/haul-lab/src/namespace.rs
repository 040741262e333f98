//! Network namespaces without names: one lives as long as somebody holds it, and leaves nothing behind.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use haul_netdev::iproute::IprouteError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

/// Why there is no namespace, or not as it was to be.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The system refuses to make one.
    #[error("cannot make a network namespace: {0}")]
    Create(Errno),
    /// It cannot be held.
    #[error("cannot open the network namespace just made: {0}")]
    Open(Errno),
    /// The thread that was to make it ended early.
    #[error("the thread that makes a network namespace failed")]
    Thread,
    /// iproute2 did not do what it was to do.
    #[error(transparent)]
    Iproute(#[from] IprouteError),
}

impl Namespace {
    /// Makes one, and calls `inside` in a thread that is in it.
    pub fn make<T: Send, E: Send + From<NamespaceError>>(inside: impl FnOnce() -> Result<T, E> + Send) -> Result<(Self, T), E> {
        let body = || {
            // SAFETY: a new network namespace takes nothing away that memory depends on; it concerns this thread only, which ends soon.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(NamespaceError::Create)?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let fd = rustix::fs::open("/proc/thread-self/ns/net", flags, Mode::empty()).map_err(NamespaceError::Open)?;
            Ok((Self { fd }, inside()?))
        };
        std::thread::scope(|scope| scope.spawn(body).join().unwrap_or_else(|_| Err(NamespaceError::Thread.into())))
    }

    /// Calls `body` in a thread that is in it; programs that it starts are too. What it panics with goes on to the caller.
    pub fn within<T: Send>(&self, body: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let inside = || {
            self.enter()?;
            Ok(body())
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Moves the calling thread there, for good: one that does nothing else. Threads that it starts are there too.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network)).map_err(NamespaceError::Open)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sets a variable below `/proc/sys/net` in the namespace of this thread, where the kernel has it and lets us.
pub fn set(variable: &str, value: &str) {
    let _ = fs::write(format!("/proc/sys/net/{variable}"), value);
}

/// A variable below `/proc/sys/net`, in the namespace of this thread; nothing where the kernel does not have it.
pub fn value(variable: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/{variable}")).ok().map(|text| text.trim().to_owned())
}
