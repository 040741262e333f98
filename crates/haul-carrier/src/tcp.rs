//! Lanes over TCP.
//!
//! ```text
//!   client  -- "haulTCP1", the carrier's name (16 bytes) -->  server
//!           <-- "haulTCP1" --------------------------------
//! ```
//! The name says which carrier a lane is for; who hands it out decides who may know it. It keeps strangers' connections short and proves nothing: what a lane brings is sealed for the
//! transport's connection, or it is dropped.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul_strangers::Strangers;
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use crate::lane::Lane;

#[cfg(target_os = "linux")]
mod congestion;

/// A carrier's name.
pub type Name = [u8; 16];

const GREETING: [u8; 8] = *b"haulTCP1";
/// How long a client may take to say which carrier it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a reader looks whether it is still wanted.
const LOOK: Duration = Duration::from_secs(2);
/// A lane on which nothing is acknowledged for so long is dead.
#[cfg(target_os = "linux")]
const DEAD_AFTER: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Clients that have not said what they want, at once, and those of one source; each has a thread.
const MAX_PENDING: usize = 128;
const MAX_PENDING_OF_SOURCE: usize = 32;
/// Connections that the kernel completes ahead.
const BACKLOG: i32 = 128;

/// Opens a lane to a listener.
pub fn connect(to: SocketAddr, from: Option<IpAddr>, name: &Name, patience: Duration) -> io::Result<Lane> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = from {
        socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
    }
    socket.connect_timeout(&to.into(), patience)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience))?;
    ask(&mut &stream, &mut &stream, name)?;
    lane(Arc::new(stream))
}

/// Asks a listener for a lane of the carrier of this name, over a connection that leads to it, whoever has made that.
pub fn ask(read: &mut impl io::Read, write: &mut impl io::Write, name: &Name) -> io::Result<()> {
    let greeting: Vec<u8> = GREETING.iter().chain(name).copied().collect();
    write.write_all(&greeting)?;
    write.flush()?;
    let mut answer = [0; GREETING.len()];
    read.read_exact(&mut answer)?;
    if answer == GREETING {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidData, "no carrier of haul's listens there"))
}

/// Listens on a port of TCP, on `[::]` for both families.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if let SocketAddr::V6(v6) = addr {
        let dual = socket.set_only_v6(!v6.ip().is_unspecified());
        tracing::trace!(?dual, "dual socket");
    }
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Takes lanes, as long as `welcome` wants any: it is told the carrier's name and who comes, and gives back whether the lane is its own; then it gets it.
pub fn accept(listener: &TcpListener, welcome: impl Welcome) {
    let (welcome, pending) = (Arc::new(welcome), Arc::new(Mutex::new(Pending::new())));
    for stream in listener.incoming() {
        if welcome.is_over() {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, for instance: those who are there may end.
            thread::park_timeout(Duration::from_millis(50));
            continue;
        };
        let Ok(from) = stream.peer_addr() else { continue };
        let stream = Arc::new(stream);
        let place = Place::take(&pending, from, &stream);
        let welcome = Arc::clone(&welcome);
        let greeted = thread::Builder::new().name("haul-lane".to_owned()).spawn(move || {
            let _place = place;
            if let Err(error) = greet(stream, from, &*welcome) {
                tracing::debug!(%error, "a TCP connection is no lane");
            }
        });
        drop(greeted);
    }
}

/// Who takes lanes.
pub trait Welcome: Send + Sync + 'static {
    /// Whether nobody is wanted any more; looked at when somebody comes.
    fn is_over(&self) -> bool;
    /// Whether there is, or may be, a carrier of this name for who comes from there.
    fn knows(&self, name: &Name, from: SocketAddr) -> bool;
    /// Its lane, and what cuts it off.
    fn take(&self, name: &Name, from: SocketAddr, lane: Lane, cut: Cut);
}

/// Cuts a connection off at once, whatever its lane waits for: a carrier that is closed lets its lanes say and hear the rest, which can take a peer as long as it likes.
#[derive(Debug)]
pub struct Cut(Arc<TcpStream>);

impl Cut {
    /// Cuts it off; both threads of its lane end.
    pub fn off(&self) {
        if let Err(error) = self.0.shutdown(Shutdown::Both) {
            tracing::debug!(%error, "it had gone by itself");
        }
    }
}

/// Those who have not said what they want.
struct Pending {
    next: u64,
    strangers: Strangers<u64>,
    cuts: HashMap<u64, Cut>,
}

impl Pending {
    fn new() -> Self {
        Self { next: 0, strangers: Strangers::new(MAX_PENDING, MAX_PENDING_OF_SOURCE), cuts: HashMap::new() }
    }
}

struct Place {
    pending: Arc<Mutex<Pending>>,
    number: u64,
}

impl Place {
    /// For one who comes; who has to go for it is cut off.
    fn take(pending: &Arc<Mutex<Pending>>, from: SocketAddr, stream: &Arc<TcpStream>) -> Self {
        let mut all = lock(pending);
        let number = all.next;
        all.next += 1;
        if let Some(loser) = all.strangers.enter(from, number).and_then(|loser| all.cuts.remove(&loser)) {
            loser.off();
        }
        all.cuts.insert(number, Cut(Arc::clone(stream)));
        Self { pending: Arc::clone(pending), number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = lock(&self.pending);
        all.strangers.leave(self.number);
        all.cuts.remove(&self.number);
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

fn greet(stream: Arc<TcpStream>, from: SocketAddr, welcome: &dyn Welcome) -> io::Result<()> {
    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
    // One read's time for all of it, or a byte a moment would hold the place for long.
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut greeting = [0; GREETING.len() + 16];
    let read = (&*stream).read(&mut greeting)?;
    let name: Option<Name> =
        greeting.strip_prefix(&GREETING).filter(|_| read == greeting.len()).and_then(|name| name.try_into().ok());
    let Some(name) = name.filter(|name| welcome.knows(name, from)) else {
        return Err(ErrorKind::InvalidData.into());
    };
    (&*stream).write_all(&GREETING)?;
    let cut = Cut(Arc::clone(&stream));
    welcome.take(&name, from, lane(stream)?, cut);
    Ok(())
}

fn lane(stream: Arc<TcpStream>) -> io::Result<Lane> {
    #[cfg(target_os = "linux")]
    congestion::choose(&stream);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK))?;
    let socket = socket2::SockRef::from(&*stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(DEAD_AFTER))?;
    let (read, write) = (stream.try_clone()?, Prompt::new(stream.try_clone()?));
    // The peer reads the end; what is still to be written gets there before it.
    let finish = Box::new(move || drop(stream.shutdown(Shutdown::Write)));
    Ok(Lane { read: Box::new(read), write: Box::new(write), finish })
}

/// What is not sent yet stays with the carrier: in the kernel's buffer, which grows to megabytes, it could neither go by another lane nor be overtaken.
struct Prompt(TcpStream);

impl Prompt {
    fn new(stream: TcpStream) -> Self {
        #[cfg(target_os = "linux")]
        if let Err(error) = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
            tracing::debug!(%error, "TCP's buffer is as large as it wants to be");
        }
        Self(stream)
    }
}

impl io::Write for Prompt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A socket that has more than that unsent is not ready; writing alone would not wait for it.
        #[cfg(target_os = "linux")]
        rustix::event::poll(&mut [rustix::event::PollFd::new(&self.0, rustix::event::PollFlags::OUT)], None)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Not sent yet, in each connection.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

#[cfg(test)]
mod tests;
