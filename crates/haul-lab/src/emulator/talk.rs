//! How commands reach a running emulator: a Unix socket with an abstract name, so that no file is left behind by a kill.
//!
//! A request is one line of JSON, and so is the answer; `Enter` brings namespaces along. The name is looked up in the network
//! namespace of whoever asks, so the emulator listens in each of its hosts too.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::status::{HostStatus, WanStatus};
use crate::options::{LinkChanges, LinkError};

/// What is asked of the emulator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request {
    /// The namespaces of a host, or of the machine with the emulator's processes: network, processes, mounts.
    Enter { host: Option<String> },
    /// Other properties.
    Set { link: LinkChanges },
    /// All counts.
    Status,
    /// The end.
    Down,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is done.
    Done,
    /// To [`Request::Enter`], and to whoever started the emulator: the WAN is up.
    Hosts(Vec<HostStatus>),
    /// To [`Request::Status`].
    Status(Box<WanStatus>),
    /// It is not done.
    Refused(Refusal),
    /// To whoever started the emulator: the WAN is not up.
    NotUp(NotUp),
}

/// Why an emulator does not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Nobody of that name.
    #[error("no host `{host}`: this WAN has {}", known.join(", "))]
    NoHost {
        /// Who was asked for.
        host: String,
        /// Who is there.
        known: Vec<String>,
    },
    /// Only the user who started the emulator may ask.
    #[error("the WAN belongs to another user")]
    AnotherUser,
    /// That makes no link.
    #[error(transparent)]
    Link(LinkError),
    /// The system refuses; the number of its error.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    System(i32),
    /// Something else than a request: of another version.
    #[error("the emulator does not understand what it is asked for: it is of another version")]
    NotUnderstood,
}

/// Why there is no WAN, as the process says that was to emulate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{said}")]
pub struct NotUp {
    /// What stands in the way.
    pub obstacle: Obstacle,
    /// Its words.
    pub said: String,
}

/// What stands in the way of a WAN, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Obstacle {
    /// There is a WAN of this name.
    NameTaken,
    /// This machine has no `/dev/net/tun`.
    NoTunDevice,
    /// The system does not let this user make devices or namespaces, root or not.
    NotAllowed,
    /// `ip` is missing.
    NoIproute,
    /// Something else.
    Other,
}

/// Why an emulator has not answered as it should.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("there is no WAN of the name `{name}`")]
    NoSuchWan {
        /// The name.
        name: String,
    },
    /// Somebody else listens by that name, who is not asked: what is entered of a WAN is the emulator's to choose.
    #[error(
        "the WAN `{name}` belongs to another user, {owner} by number: run the command as that user, or make a WAN of another name \
         (--name)"
    )]
    AnotherUsers {
        /// The name.
        name: String,
        /// Whose it is.
        owner: u32,
    },
    /// It was told to end, and is still there.
    #[error("the WAN `{name}` has not ended within {} s of being told to: kill its process (`ps -C haul-lab`)", .waited.as_secs())]
    StillThere {
        /// The name.
        name: String,
        /// How long its end was waited for.
        waited: Duration,
    },
    /// Somebody listens, and does not answer.
    #[error("the emulator of the WAN `{name}` does not answer: {source}")]
    NoAnswer {
        /// The name.
        name: String,
        /// What the system says, or what is wrong with the answer.
        source: io::Error,
    },
    /// It says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An answer without what makes it one.
    #[error("the emulator gave no namespaces")]
    NoNamespaces,
    /// The same for counts.
    #[error("the emulator of the WAN `{name}` gave no counts")]
    NoStatus {
        /// The name.
        name: String,
    },
}

/// The namespaces that a process enters.
#[derive(Debug)]
pub struct Namespaces {
    pub(super) net: OwnedFd,
    pub(super) pid: OwnedFd,
    pub(super) mnt: OwnedFd,
}

/// The longest line of either kind.
const LINE_BYTES: usize = 1 << 20;
/// An emulator that takes longer to answer, or to end, is stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Listens in the network namespace of the calling thread.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address(name)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Asks the emulator of that name, which must be this user's.
pub fn ask(name: &str, request: &Request) -> Result<(Answer, Option<Namespaces>), AskError> {
    ask_of(name, rustix::process::geteuid().as_raw(), request)
}

/// Anybody may take an abstract name, and give namespaces of their own to whoever asks.
fn ask_of(name: &str, user: u32, request: &Request) -> Result<(Answer, Option<Namespaces>), AskError> {
    let lost = |source: io::Error| AskError::NoAnswer { name: name.to_owned(), source };
    let mut stream =
        address(name).and_then(|address| UnixStream::connect_addr(&address)).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => AskError::NoSuchWan { name: name.to_owned() },
            _ => lost(error),
        })?;
    let owner = peer_uid(&stream).map_err(lost)?;
    if owner != user {
        return Err(AskError::AnotherUsers { name: name.to_owned(), owner });
    }
    stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let mut line = serde_json::to_vec(request).map_err(|error| lost(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(lost)?;
    let (line, mut fds) = read_line(&stream).map_err(lost)?;
    match serde_json::from_slice(&line).map_err(|error| lost(error.into()))? {
        Answer::Refused(refusal) => Err(refusal.into()),
        answer => {
            let namespaces = match (fds.pop(), fds.pop(), fds.pop()) {
                (Some(mnt), Some(pid), Some(net)) => Some(Namespaces { net, pid, mnt }),
                _ => None,
            };
            Ok((answer, namespaces))
        }
    }
}

/// The emulator's side: answers one connection, whose peer must be the same user.
pub fn serve(
    stream: &UnixStream,
    answer: impl FnOnce(Request) -> Result<(Answer, Option<Namespaces>), Refusal>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (answer, namespaces) = if peer_uid(stream)? == rustix::process::geteuid().as_raw() {
        let (line, _) = read_line(stream)?;
        let request = serde_json::from_slice(&line).map_err(|_| Refusal::NotUnderstood);
        request.and_then(answer).unwrap_or_else(|refusal| (Answer::Refused(refusal), None))
    } else {
        (Answer::Refused(Refusal::AnotherUser), None)
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    let fds: Vec<BorrowedFd<'_>> = namespaces.iter().flat_map(|all| [&all.net, &all.pid, &all.mnt]).map(AsFd::as_fd).collect();
    send_line(stream, &line, &fds)
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("haul-lab/{name}"))
}

/// The user at the other end; of a listener that was asked, whoever has begun to listen. Not by rustix, which has no place for a process outside this process namespace: its number is 0 here.
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: SO_PEERCRED fills one `ucred`, which outlives the call, as does its length.
    let result = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(peer.uid) }
}

fn send_line(stream: &UnixStream, line: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let sent = sendmsg(stream, &[IoSlice::new(line)], &mut control, SendFlags::NOSIGNAL)?;
    let mut stream = stream;
    stream.write_all(line.get(sent..).unwrap_or_default())
}

fn read_line(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut line, mut fds) = (Vec::new(), Vec::new());
    let mut room = [0; 16 << 10];
    while line.last() != Some(&b'\n') {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let read = recvmsg(stream, &mut [IoSliceMut::new(&mut room)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        if read.bytes == 0 || line.len() > LINE_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(room.get(..read.bytes).unwrap_or_default());
    }
    Ok((line, fds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It gives the namespaces of this process to whoever asks, as an attacker's emulator would those of a trap.
    #[test]
    fn namespaces_of_another_user_are_not_taken() {
        let name = format!("trap-{}", std::process::id());
        let (told, listens) = std::sync::mpsc::channel();
        let trap = std::thread::spawn({
            let name = name.clone();
            move || {
                // Of this thread alone. Who is not root stays who it is, and asks in the name of another user below.
                let nobody = rustix::process::Uid::from_raw(65534);
                let user = rustix::thread::set_thread_uid(nobody).map_or_else(|_| rustix::process::geteuid(), |()| nobody);
                let listener = UnixListener::bind_addr(&address(&name).expect("a name")).expect("it is free");
                told.send(user.as_raw()).expect("waited for");
                for _ in 0..2 {
                    let (stream, _) = listener.accept().expect("somebody asks");
                    let own = std::fs::File::open("/proc/self/ns/net").expect("a namespace");
                    // Who does not want an answer has gone by now.
                    let _ = send_line(&stream, b"{\"hosts\":[]}\n", &[own.as_fd(); 3]);
                }
            }
        });
        let user = listens.recv().expect("it listens");
        let own = rustix::process::geteuid().as_raw();
        let own = if own == user { own + 1 } else { own };
        let request = Request::Enter { host: None };
        let refused = ask_of(&name, own, &request).map(drop);
        let Err(error @ AskError::AnotherUsers { owner, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(owner, user);
        assert!(error.to_string().contains(&format!("another user, {user} by number: run the command as that user")), "{error}");
        // That user's own question is answered.
        let (_, namespaces) = ask_of(&name, user, &request).expect("an answer");
        assert!(namespaces.is_some());
        trap.join().expect("ended");
    }
}
