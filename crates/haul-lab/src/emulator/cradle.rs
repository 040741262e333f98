//! What the emulator's process must find before it does anything: that it really is in namespaces made for it.
//!
//! It mounts over `/proc` and ends by killing every process that it can see. Both are right in its own namespaces, and a disaster outside. So whoever starts it
//! hands it a token by a descriptor ([`Token`]): the identities of the process and mount namespaces that it was started *from*. The emulator goes on only
//! if it holds such a token, is the first process of its process namespace, and both namespaces are others. A command line typed by hand has no token.
//!
//! Behind the token comes the [`Order`]: what the WAN is to be like.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};

use super::Life;
use crate::wan::WanSpec;

/// Number of the descriptor that holds the token: the first one after the standard streams.
pub const TOKEN_FD: RawFd = 3;

/// What a token begins with.
const MAGIC: [u8; 16] = *b"haul-lab-cradle2";
/// Length of a token: the magic, and device and number of two namespaces.
const TOKEN_BYTES: usize = 16 + 4 * 8;

/// The longest order, in JSON; what a pipe holds before its writer has to wait (pipe(7)) is more.
const ORDER_BYTES: u64 = 32 << 10;

/// What an emulator is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Name of the WAN.
    pub name: String,
    /// What it is like.
    pub wan: WanSpec,
    /// How long it lives.
    pub life: Life,
}

/// Why this process must not be the emulator.
#[derive(Debug, thiserror::Error)]
pub enum CradleError {
    /// Its end would not end the processes of the hosts, and it could reach others.
    #[error("it is not the first process of a process namespace")]
    NotFirst,
    /// Nothing, or something else, is where the token would be.
    #[error("nobody who made namespaces for it has started it")]
    NoToken,
    /// It cannot know where it is.
    #[error("its namespaces cannot be looked at: {0}")]
    Look(#[source] io::Error),
    /// It would reach processes of others.
    #[error("its process namespace is that of whoever started it")]
    SameProcesses,
    /// It would mount over what others use.
    #[error("its mount namespace is that of whoever started it")]
    SameMounts,
    /// The token is right, and what comes behind it is not: another version.
    #[error("whoever started it asks for something that it does not know: {0}")]
    Order(#[source] serde_json::Error),
}

/// Which namespaces a process is in: device and number of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    processes: (u64, u64),
    mounts: (u64, u64),
}

impl Token {
    /// Of this process.
    pub fn from_here() -> io::Result<Self> {
        // Not by /proc/self/ns/pid_for_children: that is where children would be.
        let of = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map(|meta| (meta.dev(), meta.ino()));
        Ok(Self { processes: of("pid")?, mounts: of("mnt")? })
    }

    /// A pipe that holds it and an order, to be read once.
    pub fn pipe(self, order: &Order) -> io::Result<OwnedFd> {
        let order = serde_json::to_vec(order)?;
        if order.len() as u64 > ORDER_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        fs::File::from(write).write_all(&[&self.to_bytes()[..], &order].concat())?;
        Ok(read)
    }

    fn to_bytes(self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        let (magic, numbers) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        let values = [self.processes.0, self.processes.1, self.mounts.0, self.mounts.1];
        for (place, value) in numbers.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.strip_prefix(&MAGIC)?;
        let mut values = numbers.chunks_exact(8).map(|value| value.try_into().map(u64::from_be_bytes));
        let mut next = || values.next()?.ok();
        let token = Self { processes: (next()?, next()?), mounts: (next()?, next()?) };
        (bytes.len() == TOKEN_BYTES).then_some(token)
    }
}

/// Puts a descriptor where the program that is executed next finds it. Only system calls: for use between fork and exec.
pub fn give(fd: RawFd, at: RawFd) -> bool {
    // SAFETY: plain system calls on numbers; a copy loses the mark that closes it, the original at its own place must lose it here.
    unsafe { if fd == at { libc::fcntl(fd, libc::F_SETFD, 0) == 0 } else { libc::dup2(fd, at) == at } }
}

/// What this process is to emulate; or why it must not. Takes the token.
pub fn check() -> Result<Order, CradleError> {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err(CradleError::NotFirst);
    }
    let (token, order) = read_token().ok_or(CradleError::NoToken)?;
    // As seen by the /proc that was there before: its own is not mounted yet, and this one still shows the process by another number.
    let here = Token::from_here().map_err(CradleError::Look)?;
    judge(token, here)?;
    serde_json::from_slice(&order).map_err(CradleError::Order)
}

/// Whether both namespaces are others than those that it was started from.
fn judge(from: Token, here: Token) -> Result<(), CradleError> {
    if from.processes == here.processes {
        return Err(CradleError::SameProcesses);
    }
    if from.mounts == here.mounts {
        return Err(CradleError::SameMounts);
    }
    Ok(())
}

/// The token of the inherited pipe, which is closed, and what comes behind it.
fn read_token() -> Option<(Token, Vec<u8>)> {
    // SAFETY: a plain struct of numbers, for which zero is valid; fstat fills it, which outlives the call, or fails.
    let is_pipe = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(TOKEN_FD, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    if !is_pipe {
        return None;
    }
    // SAFETY: the descriptor is open, and nothing of this program has opened one yet that could have this number: it was inherited.
    let pipe = unsafe { OwnedFd::from_raw_fd(TOKEN_FD) };
    // Somebody's pipe that never ends must not hold this up.
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK).ok()?;
    let (mut bytes, mut order) = ([0; TOKEN_BYTES], Vec::new());
    let mut pipe = fs::File::from(pipe);
    pipe.read_exact(&mut bytes).ok()?;
    let token = Token::from_bytes(&bytes)?;
    pipe.take(ORDER_BYTES).read_to_end(&mut order).ok()?;
    Some((token, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_where_it_comes_from() {
        let here = Token::from_here().expect("/proc is there");
        assert_eq!(Token::from_bytes(&here.to_bytes()), Some(here));
        let bytes = here.to_bytes();
        for wrong in [&b""[..], &bytes[..TOKEN_BYTES - 1], &[bytes.as_slice(), b"x"].concat(), &[0; TOKEN_BYTES]] {
            assert_eq!(Token::from_bytes(wrong), None);
        }
    }

    #[test]
    fn both_namespaces_must_be_others() {
        let from = Token { processes: (1, 2), mounts: (1, 3) };
        assert!(judge(from, from).is_err());
        assert!(judge(from, Token { processes: (1, 4), ..from }).is_err());
        assert!(judge(from, Token { mounts: (1, 4), ..from }).is_err());
        assert!(judge(from, Token { processes: (1, 4), mounts: (1, 5) }).is_ok());
    }
}
