//! Network namespaces without names: one lives as long as somebody holds it, and leaves nothing behind.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

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
    /// No iproute2: neither `ip` nor `tc`.
    #[error("cannot run `{program}`: {source}")]
    NoIproute {
        /// Which of its programs.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It says what it did not do.
    #[error("`{program}` failed: {said}")]
    Iproute {
        /// Which of its programs.
        program: &'static str,
        /// Its first line.
        said: String,
    },
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
            move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network)).map_err(NamespaceError::Open)?;
            Ok(body())
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Runs lines of `ip -batch` in the namespace of this thread.
pub fn ip(lines: &str) -> Result<(), NamespaceError> {
    batch("ip", &[], lines)
}

/// The same for IPv6 where a line could mean either, as with routes.
pub fn ip6(lines: &str) -> Result<(), NamespaceError> {
    batch("ip", &["-6"], lines)
}

/// Runs lines of `tc -batch` in the namespace of this thread.
pub fn tc(lines: &str) -> Result<(), NamespaceError> {
    batch("tc", &[], lines)
}

fn batch(program: &'static str, family: &[&str], lines: &str) -> Result<(), NamespaceError> {
    let mut command = Command::new(program);
    command.args(family).args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| NamespaceError::NoIproute { program, source })?;
    if let Some(mut input) = child.stdin.take() {
        // Where it ends early, its status tells.
        let _ = input.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().map_err(|source| NamespaceError::NoIproute { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(NamespaceError::Iproute { program, said: said.lines().next().unwrap_or("it does not say why").to_owned() })
}

/// Sets a variable below `/proc/sys/net` in the namespace of this thread, where the kernel has it and lets us.
pub fn set(variable: &str, value: &str) {
    let _ = fs::write(format!("/proc/sys/net/{variable}"), value);
}

/// A variable below `/proc/sys/net`, in the namespace of this thread; nothing where the kernel does not have it.
pub fn value(variable: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/{variable}")).ok().map(|text| text.trim().to_owned())
}
