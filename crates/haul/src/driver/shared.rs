//! What the threads and handles of an endpoint share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use haul_proto::{
    ClientConfig, Connection, ConnectionId, Endpoint, EndpointConfig, Opening, PATHS_MAX, ServerConfig, TransportConfig,
};

use haul_units::Bytes;

use super::link::Link;
use super::porter::{self, Porter};
use super::{receiving, sending};
use crate::clock;
use crate::error::{AcceptError, BindError, ConnectError, ConnectionError};
use crate::waiting::Waiters;
use haul_udp::{Options, Socket};

/// An endpoint as its threads see it.
pub(crate) struct Shared {
    pub(crate) socket: Arc<Socket>,
    /// Where the sockets of further paths are bound, and how.
    further: Ports,
    options: Options,
    endpoint: Mutex<Endpoint>,
    links: RwLock<HashMap<ConnectionId, Arc<Link>>>,
    arrivals: Mutex<Arrivals>,
    accepts: bool,
    /// How long a client may wait to be admitted.
    patience: Duration,
    pub(super) porter: Arc<Porter>,
    /// No handle is left: the threads end with the last connection.
    abandoned: AtomicBool,
    myself: Weak<Shared>,
}

/// Incoming connections.
#[derive(Default)]
struct Arrivals {
    /// Complete and not accepted yet.
    ready: VecDeque<Arc<Link>>,
    waiting: Waiters,
    closed: bool,
}

/// How a link starts.
#[derive(Default)]
struct Start {
    answer_from: Option<IpAddr>,
    incoming: bool,
    /// Sockets of further paths.
    further: Vec<Arc<Socket>>,
}

/// Where an endpoint is bound.
pub(crate) enum Ports {
    /// This address.
    One(SocketAddr),
    /// The first free port of a range.
    Range(IpAddr, RangeInclusive<u16>),
}

impl Ports {
    /// Where further sockets of the same endpoint go: to any port of the same address, or to another one of the range.
    fn further(&self) -> Self {
        match self {
            Self::One(addr) => Self::One(SocketAddr::new(addr.ip(), 0)),
            Self::Range(ip, range) => Self::Range(*ip, range.clone()),
        }
    }
}

impl Shared {
    /// Binds the socket and starts the receive thread.
    pub(crate) fn start(ports: &Ports, options: Options, server: Option<ServerConfig>) -> Result<Arc<Self>, BindError> {
        let socket = bind(ports, options)?;
        let accepts = server.is_some();
        let patience = server.as_ref().map(|server| server.admission.deadline).unwrap_or_default();
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| BindError::NoRandomness)?;
        let endpoint = Endpoint::new(EndpointConfig { seed, server }).map_err(BindError::Config)?;
        let shared = Arc::new_cyclic(|myself| Self {
            socket: Arc::new(socket),
            further: ports.further(),
            options,
            endpoint: Mutex::new(endpoint),
            links: RwLock::default(),
            arrivals: Mutex::default(),
            accepts,
            patience,
            porter: Arc::default(),
            abandoned: AtomicBool::new(false),
            myself: myself.clone(),
        });
        receiving::spawn(shared.clone(), shared.socket.clone()).map_err(BindError::Thread)?;
        if accepts {
            porter::spawn(shared.clone()).map_err(BindError::Thread)?;
        }
        if let Some(warning) = shared.socket.buffers().warning() {
            tracing::debug!("{warning}");
        }
        Ok(shared)
    }

    pub(super) fn demultiplexer(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn link(&self, id: ConnectionId) -> Option<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(crate) fn admission_token(&self) -> Vec<u8> {
        self.demultiplexer().admission_token(clock::now())
    }

    /// Starts a connection; its handshake goes on in the threads.
    pub(crate) fn connect(&self, to: SocketAddr, mut config: ClientConfig) -> Result<Arc<Link>, ConnectError> {
        let further = self.prepare(&[to], &mut config.transport)?;
        let (id, connection) = self.demultiplexer().connect(clock::now(), to, config)?;
        self.run(id, connection, Start { further, ..Start::default() }).map_err(ConnectError::Thread)
    }

    /// Starts a connection that has been opened another way.
    pub(crate) fn connect_opened(&self, to: &[SocketAddr], mut opening: Opening) -> Result<Arc<Link>, ConnectError> {
        let further = self.prepare(to, &mut opening.config_mut().transport)?;
        let (id, connection) = self.demultiplexer().connect_opened(clock::now(), to, opening)?;
        self.run(id, connection, Start { further, ..Start::default() }).map_err(ConnectError::Thread)
    }

    /// What a client's connection needs here: sockets for its further paths, and someone to take what comes.
    fn prepare(&self, to: &[SocketAddr], transport: &mut TransportConfig) -> Result<Vec<Arc<Socket>>, ConnectError> {
        if let Some(&addr) = to.iter().find(|addr| addr.port() == 0 || addr.ip().is_unspecified()) {
            return Err(ConnectError::InvalidAddress { addr });
        }
        if !(1..=PATHS_MAX).contains(&transport.paths) {
            return Err(ConnectError::Paths { asked: transport.paths });
        }
        let further = self.further_sockets(transport.paths - 1);
        transport.paths = 1 + further.len() as u8;
        Ok(further)
    }

    /// Answers an opening that came another way; the connection goes on in the threads.
    pub(crate) fn answer(&self, opening: &[u8], client: Option<IpAddr>) -> Result<Vec<u8>, AcceptError> {
        let (id, connection, answer) = self.demultiplexer().answer(clock::now(), opening, client)?;
        if self.take_in(id, connection, None) { Ok(answer) } else { Err(AcceptError::Closed) }
    }

    /// Sockets for a client's further paths. Where the system has no more, there are fewer paths.
    fn further_sockets(&self, wanted: u8) -> Vec<Arc<Socket>> {
        let bind = |_| match bind(&self.further, self.options) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(%error, "no socket for another path");
                None
            }
        };
        (0..wanted).map_while(bind).collect()
    }

    /// Takes a new incoming connection in, if that is possible.
    pub(super) fn take_in(&self, id: ConnectionId, mut connection: Connection, answer_from: Option<IpAddr>) -> bool {
        connection.expect_admission(clock::now() + self.patience);
        let start = Start { answer_from, incoming: true, ..Start::default() };
        let taken = self.accepts && !self.abandoned.load(Ordering::Acquire) && {
            let result = self.run(id, connection, start);
            result.inspect_err(|error| tracing::warn!(%error, "no thread for an incoming connection")).is_ok()
        };
        if !taken {
            self.demultiplexer().forget(id);
        }
        taken
    }

    fn run(&self, id: ConnectionId, connection: Connection, start: Start) -> io::Result<Arc<Link>> {
        let Some(myself) = self.myself.upgrade() else { return Err(io::Error::other("the endpoint is gone")) };
        let porter = self.porter.clone();
        let link = Link::new(id, connection, porter, self.socket.clone(), start.further.clone());
        link.look(|state| {
            state.answer_from = start.answer_from;
            (state.accepted, state.incoming) = (start.incoming, start.incoming);
        });
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        links.insert(id, link.clone());
        if start.incoming {
            self.porter.call(id);
            return Ok(link);
        }
        link.set_has_thread(true);
        let receivers = start.further.into_iter().try_for_each(|socket| receiving::spawn(myself.clone(), socket));
        if let Err(error) = receivers.and_then(|()| sending::spawn(myself, link.clone())) {
            link.stop_further_sockets();
            links.remove(&id);
            return Err(error);
        }
        Ok(link)
    }

    /// The application admits the client of an incoming connection: it gets a send thread.
    pub(crate) fn admit(&self, link: &Arc<Link>, memory: Option<Bytes>) {
        let admitted = link.act(|state, _| {
            let is_stranger = !state.connection.is_admitted();
            state.connection.admit(memory);
            if is_stranger {
                state.queues.set_memory(state.connection.memory());
                link.set_has_thread(true);
            }
            is_stranger
        });
        let Some(myself) = self.myself.upgrade().filter(|_| admitted) else { return };
        if let Err(error) = sending::spawn(myself, link.clone()) {
            tracing::warn!(%error, "no thread for a connection");
            link.set_has_thread(false);
            self.porter.call(link.id);
        }
        self.demultiplexer().on_admitted(link.id);
    }

    /// Clients that have not been admitted.
    pub(crate) fn strangers(&self) -> usize {
        self.demultiplexer().strangers()
    }

    /// A connection's client gives its place up.
    pub(super) fn evict(&self, id: ConnectionId) {
        if let Some(link) = self.link(id) {
            link.evict();
        }
    }

    /// An incoming connection is complete.
    pub(super) fn announce(&self, link: Arc<Link>) {
        let mut woken = Vec::new();
        let mut arrivals = self.arrivals();
        if arrivals.closed || arrivals.ready.len() >= MAX_UNACCEPTED {
            drop(arrivals);
            link.close(0, b"nobody accepts connections here");
            return;
        }
        arrivals.ready.push_back(link);
        arrivals.waiting.drain_into(&mut woken);
        drop(arrivals);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn poll_accept(&self, cx: &Context<'_>) -> Poll<Result<Arc<Link>, AcceptError>> {
        if !self.accepts {
            return Poll::Ready(Err(AcceptError::NotListening));
        }
        let mut arrivals = self.arrivals();
        while let Some(link) = arrivals.ready.pop_front() {
            if link.look(|state| state.closed.is_some()) {
                continue;
            }
            return Poll::Ready(Ok(link));
        }
        if arrivals.closed {
            return Poll::Ready(Err(AcceptError::Closed));
        }
        arrivals.waiting.add(cx);
        Poll::Pending
    }

    /// Takes no more connections and closes those there are.
    pub(crate) fn close(&self) {
        self.refuse_arrivals();
        for link in self.all_links() {
            link.close(0, b"endpoint closed");
        }
    }

    /// Ends whoever waits in `accept`, and the connections that nobody has taken.
    fn refuse_arrivals(&self) {
        let mut woken = Vec::new();
        let mut arrivals = self.arrivals();
        arrivals.closed = true;
        arrivals.waiting.drain_into(&mut woken);
        let ready = std::mem::take(&mut arrivals.ready);
        drop(arrivals);
        woken.into_iter().for_each(Waker::wake);
        for link in ready {
            link.close(0, b"endpoint closed");
        }
    }

    /// The last handle is gone.
    pub(crate) fn abandon(&self) {
        self.refuse_arrivals();
        self.abandoned.store(true, Ordering::Release);
        for link in self.all_links() {
            // Those in their handshake have no handle that could close them.
            if link.look(|state| state.incoming) {
                link.close(0, b"endpoint closed");
            }
        }
        self.stop_if_idle();
    }

    /// A connection is over: nobody looks after it any more.
    pub(super) fn forget(&self, id: ConnectionId) {
        self.links.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.demultiplexer().forget(id);
        self.arrivals().ready.retain(|link| link.id != id);
        self.stop_if_idle();
    }

    fn stop_if_idle(&self) {
        let idle = self.links.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        if idle && self.abandoned.load(Ordering::Acquire) {
            self.socket.stop();
            self.porter.stop();
        }
    }

    /// The socket is broken.
    pub(super) fn fail(&self, error: &io::Error) {
        self.refuse_arrivals();
        for link in self.all_links() {
            link.fail(&ConnectionError::Socket { kind: error.kind() });
        }
    }

    /// A connection is complete: its peer may reset it from now on.
    pub(super) fn on_connected(&self, id: ConnectionId, reset_token: Option<[u8; 16]>) {
        self.demultiplexer().on_connected(id, reset_token);
    }

    fn all_links(&self) -> Vec<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

fn bind(ports: &Ports, options: Options) -> Result<Socket, BindError> {
    match ports {
        Ports::One(addr) => Socket::bind(*addr, options).map_err(|source| BindError::Address { addr: *addr, source }),
        Ports::Range(ip, range) => {
            for port in range.clone() {
                match Socket::bind(SocketAddr::new(*ip, port), options) {
                    Ok(socket) => return Ok(socket),
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    Err(source) => return Err(BindError::Address { addr: SocketAddr::new(*ip, port), source }),
                }
            }
            Err(BindError::NoFreePort { ip: *ip, first: *range.start(), last: *range.end() })
        }
    }
}

/// Complete connections that wait to be accepted; more are refused.
const MAX_UNACCEPTED: usize = 1024;
