//! Network namespaces: which one is meant, and doing something in it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::error::TcpError;

/// Where `ip netns add` puts names.
const NAMES: &str = "/run/netns";

/// A network namespace. Its number tells it from another one that has got the same name since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    name: Option<String>,
    number: u64,
}

impl Namespace {
    /// That of this process.
    pub fn own() -> Result<Self, TcpError> {
        let number =
            number(Path::new("/proc/self/ns/net")).map_err(|source| TcpError::Namespace { name: "own".into(), source })?;
        Ok(Self { name: name_of(number), number })
    }

    /// The one that `ip netns` knows by this name.
    pub fn named(name: &str) -> Result<Self, TcpError> {
        let strange = name.is_empty() || name.contains('/') || name == "." || name == "..";
        let number = if strange { Err(io::ErrorKind::InvalidInput.into()) } else { number(&Path::new(NAMES).join(name)) };
        let number = number.map_err(|source| TcpError::Namespace { name: name.into(), source })?;
        Ok(Self { name: Some(name.to_owned()), number })
    }

    /// Its name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it is there still, under the same name.
    pub fn is_there(&self) -> bool {
        number(&self.path()).is_ok_and(|number| number == self.number)
    }

    /// Does something in it, on a thread of its own.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, TcpError> {
        let failed = |source| TcpError::Namespace { name: self.to_string(), source };
        if number(Path::new("/proc/self/ns/net")).is_ok_and(|own| own == self.number) {
            return Ok(act());
        }
        if !self.is_there() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let file = File::open(self.path()).map_err(failed)?;
        thread::scope(|scope| {
            let enter = move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(io::Error::from)?;
                Ok(act())
            };
            scope.spawn(enter).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)
        })
    }

    fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => Path::new(NAMES).join(name),
            None => PathBuf::from("/proc/1/ns/net"),
        }
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("host"))
    }
}

/// The number by which programs know this thread's network namespace.
pub(crate) fn cookie() -> io::Result<[u8; 8]> {
    /// `SO_NETNS_COOKIE`.
    const COOKIE: libc::c_int = 71;
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut cookie = [0_u8; 8];
    let mut length = cookie.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as is said.
    let code =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, COOKIE, cookie.as_mut_ptr().cast(), &raw mut length) };
    if code == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

fn number(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|about| about.ino())
}

fn name_of(wanted: u64) -> Option<String> {
    let entries = fs::read_dir(NAMES).ok()?;
    entries.flatten().find(|entry| number(&entry.path()).is_ok_and(|found| found == wanted))?.file_name().into_string().ok()
}
