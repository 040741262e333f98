//! Network namespaces: which one is meant, and doing something in it.

use std::collections::BTreeSet;
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
/// Of this thread: that of its process, unless it has entered another one.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. Its number tells it from another one that has got the same name since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    name: Option<String>,
    number: u64,
}

impl Namespace {
    /// That of this thread.
    pub fn own() -> Result<Self, TcpError> {
        let number = number(Path::new(OWN)).map_err(|source| TcpError::Namespace { name: "own".into(), source })?;
        Ok(Self::numbered(number))
    }

    /// The one of this number, if there is one.
    pub(crate) fn numbered(number: u64) -> Self {
        Self { name: name_of(number), number }
    }

    /// All in which there is a process that this one may look at, or that `ip netns` has a name for, each once.
    pub(crate) fn all() -> Vec<Self> {
        let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let paths = entries("/proc").map(|process| process.join("ns/net")).chain(entries(NAMES));
        let numbers: BTreeSet<u64> = paths.filter_map(|path| number(&path).ok()).collect();
        numbers.into_iter().map(Self::numbered).collect()
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
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

    /// Whether it is there still, under the same name; without a name, whether a process lives in it that this one may look at.
    pub fn is_there(&self) -> bool {
        self.is_own() || self.path().is_some()
    }

    /// No path is asked for: the first process may have rights that this one lacks, and then not even root may look at it.
    fn is_own(&self) -> bool {
        number(Path::new(OWN)).is_ok_and(|own| own == self.number)
    }

    /// Does something in it, on a thread of its own.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, TcpError> {
        self.inside_if_there(act)?.ok_or_else(|| self.failed(io::ErrorKind::NotFound.into()))
    }

    /// Does something in it, if it [is there](Self::is_there) still.
    pub(crate) fn inside_if_there<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<Option<T>, TcpError> {
        if self.is_own() {
            return Ok(Some(act()));
        }
        let Some(path) = self.path() else { return Ok(None) };
        let failed = |source| self.failed(source);
        let file = File::open(path).map_err(failed)?;
        thread::scope(|scope| {
            let enter = move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(io::Error::from)?;
                Ok(Some(act()))
            };
            scope.spawn(enter).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)
        })
    }

    fn failed(&self, source: io::Error) -> TcpError {
        TcpError::Namespace { name: self.to_string(), source }
    }

    /// Where it can be entered.
    fn path(&self) -> Option<PathBuf> {
        let is_it = |path: &PathBuf| number(path).is_ok_and(|number| number == self.number);
        match &self.name {
            Some(name) => Some(Path::new(NAMES).join(name)).filter(is_it),
            None => fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path().join("ns/net")).find(is_it),
        }
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None if self.is_own() => f.write_str("host"),
            // As in /proc/PID/ns.
            None => write!(f, "net:[{}]", self.number),
        }
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_namespace_without_a_name_is_there_while_a_process_lives_in_it() {
        let mut command = Command::new("unshare");
        let Ok(mut process) = command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            return skip::skip("unshare is not installed (make setup)");
        };
        // What it is told comes back once it is in its namespace.
        let (mut to, mut from) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        let echoed = to.write_all(b"in").and_then(|()| from.read_exact(&mut [0; 2]));
        let namespace = number(&PathBuf::from(format!("/proc/{}/ns/net", process.id())));
        if echoed.is_err() {
            return skip::skip("network namespaces cannot be made here (needs root)");
        }
        let namespace = Namespace { name: None, number: namespace.expect("a number") };
        let within = namespace.inside(cookie).expect("entered").expect("a cookie");
        let own = Namespace::own().expect("a namespace");
        assert!(namespace.is_there() && within != cookie().expect("a cookie"), "it is another one than {own}");
        drop(to);
        assert!(process.wait().expect("its end").success());
        assert!(!namespace.is_there() && namespace.inside(cookie).is_err(), "nobody is in it any more");
        assert!(namespace.inside_if_there(cookie).expect("nothing to be done").is_none());
    }

    #[test]
    fn the_own_namespace_is_there_whatever_this_process_may_look_at() {
        let own = Namespace::own().expect("a namespace");
        assert!(own.is_there());
        assert_eq!(own.inside(|| 7).expect("done"), 7);
    }
}
