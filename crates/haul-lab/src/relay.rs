//! The link between two UDP sockets: no root, no TUN, but for programs that talk to one address by UDP only.
//!
//! ```text
//!   clients ---> [listen] ---> player ---> [a socket for each client] ---> server
//! ```
//!
//! The server sees each client as a port of the relay. ECN marks do not cross it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_udp::{Options, Outgoing, Sent, Socket};
use rustix::event::{EventfdFlags, eventfd};

use crate::control::DirectionStats;
use crate::direction::{Delivery, Direction, Inputs, Ports, Received};
use crate::options::LinkOptions;
use crate::packet::{Layout, Part, Which};
use crate::store::Packet;

/// A relay that is up; it goes with this value.
#[derive(Debug)]
pub struct Relay {
    listens: SocketAddr,
    there: Direction,
    back: Direction,
}

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No thread, no event.
    #[error("cannot start the relay: {0}")]
    Start(#[from] io::Error),
}

impl Relay {
    /// Listens on `listen` and relays to `to`, which are addresses of one family or not.
    pub fn start(listen: SocketAddr, to: SocketAddr, link: &LinkOptions) -> Result<Self, RelayError> {
        let failed = |source| RelayError::Listen { address: listen, source };
        let socket = Arc::new(Socket::bind(listen, Options::default()).map_err(failed)?);
        socket.allow_fragmentation().map_err(failed)?;
        let listens = socket.local_addr();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        let clients = Arc::new(Clients { to, known: Mutex::default(), wake });
        let [there, back] = link.links();
        let ports = There { socket: Arc::clone(&socket), clients: Arc::clone(&clients), known: Vec::new() };
        let there = Direction::start("to server", there, ports)?;
        let back =
            Direction::start("to client", back, Back { socket, clients, known: Vec::new(), turn: 0, scratch: Vec::new() })?;
        Ok(Self { listens, there, back })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.listens
    }

    /// Towards the server, and back.
    pub fn stats(&self) -> [DirectionStats; 2] {
        [self.there.stats(), self.back.stats()]
    }
}

#[derive(Debug)]
struct Clients {
    to: SocketAddr,
    known: Mutex<Vec<Arc<Client>>>,
    /// Written when there is a new one.
    wake: OwnedFd,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    upstream: Socket,
}

/// More clients than this are not served.
const MOST_CLIENTS: usize = 256;

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, address: SocketAddr) -> io::Result<Arc<Client>> {
        let upstream = Socket::connect(self.to, Options::default())?;
        upstream.allow_fragmentation()?;
        let client = Arc::new(Client { address, upstream });
        self.lock().push(Arc::clone(&client));
        // The only failure is a counter at its limit, and then it is readable.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        Ok(client)
    }
}

/// From the clients to the server. Only this side adds clients, so its copy of the list is always the list.
struct There {
    socket: Arc<Socket>,
    clients: Arc<Clients>,
    known: Vec<Arc<Client>>,
}

impl Ports for There {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Received> {
        let Some(datagrams) = self.socket.try_receive(room)? else { return Ok(Received::Nothing) };
        let to = match self.known.iter().position(|client| client.address == datagrams.from) {
            Some(position) => position,
            None if self.known.len() >= MOST_CLIENTS => return Ok(Received::Unroutable),
            None => {
                self.known.push(self.clients.add(datagrams.from)?);
                self.known.len() - 1
            }
        };
        Ok(received(&datagrams, to))
    }

    fn deliver(&mut self, packet: &Packet, bytes: &[u8], which: Which, kind: Delivery) -> io::Result<()> {
        let Some(client) = self.known.get(packet.to as usize) else { return Ok(()) };
        send(&client.upstream, self.clients.to, packet, bytes, which, kind, &mut Vec::new())
    }

    fn inputs(&self, fds: &mut Inputs) {
        fds.add(self.socket.as_fd());
    }
}

/// From the server to the clients.
struct Back {
    socket: Arc<Socket>,
    clients: Arc<Clients>,
    known: Vec<Arc<Client>>,
    turn: usize,
    scratch: Vec<u8>,
}

impl Ports for Back {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<Received> {
        if rustix::io::read(&self.clients.wake, &mut [0u8; 8]).is_ok() {
            self.known.clone_from(&self.clients.lock());
        }
        for _ in 0..self.known.len() {
            self.turn = (self.turn + 1) % self.known.len();
            let Some(client) = self.known.get(self.turn) else { continue };
            if let Some(datagrams) = client.upstream.try_receive(room)? {
                return Ok(received(&datagrams, self.turn));
            }
        }
        Ok(Received::Nothing)
    }

    fn deliver(&mut self, packet: &Packet, bytes: &[u8], which: Which, kind: Delivery) -> io::Result<()> {
        let Some(client) = self.known.get(packet.to as usize) else { return Ok(()) };
        send(&self.socket, client.address, packet, bytes, which, kind, &mut self.scratch)
    }

    fn inputs(&self, fds: &mut Inputs) {
        fds.add(self.clients.wake.as_fd());
        self.known.iter().for_each(|client| fds.add(client.upstream.as_fd()));
    }
}

fn received(datagrams: &haul_udp::Received<'_>, to: usize) -> Received {
    // IP and UDP headers take their part of the link too.
    let overhead = if datagrams.from.is_ipv4() { 28 } else { 48 };
    let layout = Layout::datagrams(datagrams.train.len(), datagrams.segment_bytes, overhead);
    Received::Packet(datagrams.train.len(), Packet { layout, to: to as u32 })
}

fn send(
    socket: &Socket,
    to: SocketAddr,
    packet: &Packet,
    bytes: &[u8],
    which: Which,
    kind: Delivery,
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let payload = bytes.get(Part::payload(&packet.layout, which)).unwrap_or_default();
    if kind != Delivery::Corrupted {
        return hand_over(socket, to, payload, packet.layout.segment_bytes());
    }
    scratch.clear();
    scratch.extend_from_slice(payload);
    if let Some(last) = scratch.last_mut() {
        *last ^= 1;
    }
    hand_over(socket, to, scratch, scratch.len())
}

fn hand_over(socket: &Socket, to: SocketAddr, train: &[u8], segment_bytes: usize) -> io::Result<()> {
    match socket.try_send(&Outgoing { to, from: None, ecn: 0, train, segment_bytes })? {
        Sent::Taken => Ok(()),
        Sent::TooBig => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
        Sent::Lost(error) => Err(error),
    }
}
