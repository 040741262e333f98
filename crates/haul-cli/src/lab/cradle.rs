//! What the emulator's process must find before it does anything: that it really is in namespaces made for it.
//!
//! It mounts over `/proc` and ends by killing every process that it can see. Both are right in its own namespaces, and a disaster outside. So whoever starts it
//! hands it a token by a descriptor ([`Token`]): the identities of the process and mount namespaces that it was started *from*. The emulator goes on only
//! if it holds such a token, is the first process of its process namespace, and both namespaces are others. A command line typed by hand has no token.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::pipe::{PipeFlags, pipe_with};

/// Number of the descriptor that holds the token: the first one after the standard streams.
pub const TOKEN_FD: RawFd = 3;

/// What a token begins with.
const MAGIC: [u8; 16] = *b"haul-lab-cradle1";
/// Length of a token: the magic, and device and number of two namespaces.
const TOKEN_BYTES: usize = 16 + 4 * 8;

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

    /// A pipe that holds it, to be read once.
    pub fn pipe(self) -> io::Result<OwnedFd> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        fs::File::from(write).write_all(&self.to_bytes())?;
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

/// Why this process must not be the emulator, if so. Takes the token.
pub fn check() -> Result<(), String> {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err("it is not the first process of a process namespace".to_owned());
    }
    let token = read_token().ok_or("nobody who made namespaces for it has started it")?;
    // As seen by the /proc that was there before: its own is not mounted yet, and this one still shows the process by another number.
    let here = Token::from_here().map_err(|error| format!("its namespaces cannot be looked at: {error}"))?;
    judge(token, here)
}

/// Whether both namespaces are others than those that it was started from.
fn judge(from: Token, here: Token) -> Result<(), String> {
    if from.processes == here.processes {
        return Err("its process namespace is that of whoever started it".to_owned());
    }
    if from.mounts == here.mounts {
        return Err("its mount namespace is that of whoever started it".to_owned());
    }
    Ok(())
}

/// The token of the inherited pipe, which is closed.
fn read_token() -> Option<Token> {
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
    let mut bytes = [0; TOKEN_BYTES];
    fs::File::from(pipe).read_exact(&mut bytes).ok()?;
    Token::from_bytes(&bytes)
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
